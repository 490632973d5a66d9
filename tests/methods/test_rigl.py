import math
from typing import Any

import pytest
import torch

from fastglt import InputError
from fastglt.masks import Mask, Masks
from fastglt.methods import RigL
from fastglt.models import GCN
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, counts, method_of, training_of


def rigl(graph: float, weight: float, **options: Any) -> RigL:
    method = method_of("rigl", graph, weight, **options)
    assert isinstance(method, RigL)
    return method


class TestStart:
    def test_layers_share_by_their_ends(self) -> None:
        """Matrices of 12×8 and 8×3 share 12 weights as 20 to 11: 7.74 and 4.26."""
        training = training_of()
        rigl(0.5, 0.9).begin(training)
        assert [mask.count for mask in training.masks.weights.values()] == [8, 4]

    def test_edges_are_those_of_random(self) -> None:
        ours, random = training_of(), training_of()
        rigl(0.5, 0.9).begin(ours)
        method_of("random", 0.5, 0.9).begin(random)
        assert ours.masks.edges == random.masks.edges
        assert ours.masks.weights != random.masks.weights
        assert (ours.stage, ours.target, ours.weight_decay) == (random.stage, random.target, random.weight_decay)
        assert ours.soft_edge_mask is not None

    def test_training_starts_at_the_initial_weights(self) -> None:
        training, network = training_of(), GCN(12, 8, 3)
        rigl(0.5, 0.9).begin(training)
        for name, mask in training.masks.weights.items():
            assert torch.equal(training.weights[name].detach(), network.get_parameter(name).detach() * mask.kept)


class TestSwap:
    """Two weights of each layer are kept; after epoch 4 of 24 one of them is swapped."""

    def swapped(self) -> Training:
        training = training_of(network=GCN(12, 2, 3))
        first, second = torch.zeros(12, 2), torch.zeros(2, 3)
        first[0], second[0, :2] = 1, 1
        weights = {"layer1.weight": Mask(first), "layer2.weight": Mask(second)}
        training.apply(Masks(edges=training.masks.edges, weights=weights))
        # 0.8/2·(1 + cos(π·4/18)) = 0.706 of 2 is 1
        method, training.epoch = rigl(0.0, 0.5, swap_fraction=0.8), 4
        gradients = {"layer1.weight": torch.zeros(12, 2), "layer2.weight": torch.zeros(2, 3)}
        with torch.no_grad():
            training.weights["layer1.weight"][0] = torch.tensor([-0.1, 0.2])
            training.weights["layer2.weight"][0, :2] = torch.tensor([5.0, -4.0])
        gradients["layer1.weight"][0] = 9.0  # of kept ones: no matter
        gradients["layer1.weight"][7, 1], gradients["layer1.weight"][3, 0] = 0.5, 0.4
        gradients["layer2.weight"][1, 2] = 0.01  # small, but the largest of its layer
        training.method_state = gradients
        method.after_epoch(training)
        return training

    def test_in_each_layer_small_weights_go_and_large_gradients_return(self) -> None:
        training = self.swapped()
        kept = {name: mask.kept.nonzero().tolist() for name, mask in training.masks.weights.items()}
        assert kept == {"layer1.weight": [[0, 1], [7, 1]], "layer2.weight": [[0, 0], [1, 2]]}

    def test_what_is_grown_starts_at_zero(self) -> None:
        training = self.swapped()
        values = {name: weight.detach()[weight != 0].tolist() for name, weight in training.weights.items()}
        assert values == {"layer1.weight": [pytest.approx(0.2)], "layer2.weight": [5.0]}

    def test_the_gradients_are_forgotten(self) -> None:
        training = self.swapped()
        assert training.method_state == {}


class TestSchedule:
    def test_swaps_happen_every_interval_in_the_first_three_quarters(self) -> None:
        """Of 96 and 24 weights 39 and 21 are kept: 60·20/31 = 38.7 and 60·11/31 = 21.3, which is below 24.

        Shares 0.3/2·(1 + cos(π·t/18)) after epochs 4, 8, 12, 16: 0.265, 0.176, 0.075, 0.009, of 39: 10, 6, 2, 0;
        of 21: 5, 3, 1, 0, but only 3 of the second layer are pruned.
        """
        training = training_of()
        train(training, rigl(0.0, 0.5))
        swaps = {
            record.epoch: (record.weights_dropped, record.weights_grown)
            for record in training.history
            if record.weights_dropped
        }
        assert swaps == {4: (13, 13), 8: (9, 9), 12: (3, 3)}
        assert {record.weight_sparsity for record in training.history} == {0.5}

    def test_the_end_of_the_swaps_is_an_option(self) -> None:
        training = training_of()
        train(training, rigl(0.0, 0.5, swap_until=0.3))
        assert [record.epoch for record in training.history if record.weights_dropped] == [4]

    def test_layers_keep_their_counts(self) -> None:
        training = training_of()
        best = train(training, rigl(0.5, 0.5))
        assert [mask.count for mask in best.masks.weights.values()] == [39, 21]
        assert counts(best.masks) == (30, 60)

    def test_nothing_is_noted_or_swapped_where_all_weights_stay(self) -> None:
        training, method = training_of(), rigl(0.5, 0.0)
        method.begin(training)
        training.epoch = 3
        training.run_epoch(method)
        assert training.method_state == {}
        method.after_epoch(training)
        assert counts(training.masks) == (30, 120)


def test_the_gradient_is_the_dense_one_of_the_step_before_the_swap() -> None:
    training, twin, method = training_of(), training_of(), rigl(0.0, 0.9)

    class Noting(Hooks):
        seen: dict[str, torch.Tensor]

        def before_step(self, training: Any) -> None:
            self.seen = {name: weight.grad.abs() for name, weight in training.weights.items()}

    noting = Noting()
    method.begin(training)
    method.begin(twin)
    for epoch in range(1, 5):
        training.run_epoch(method)
        twin.run_epoch(noting)
        assert bool(training.method_state) == (epoch == 4)
    for name, gradient in noting.seen.items():
        assert torch.equal(training.method_state[name], gradient)
        assert bool(gradient[~training.masks.weights[name].kept].any())


def test_a_layer_left_out_of_a_step_is_not_swapped() -> None:
    training, method = training_of(), rigl(0.0, 0.5)
    method.begin(training)
    before, training.epoch = training.masks, 4
    training.method_state = {"layer1.weight": torch.ones(12, 8)}
    method.after_epoch(training)
    assert training.masks.weights["layer1.weight"] != before.weights["layer1.weight"]
    assert training.masks.weights["layer2.weight"] == before.weights["layer2.weight"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"swap_fraction": 1.5}, r"swap_fraction must lie in \[0, 1\] \(got 1.5\)"),
        ({"swap_until": 0.0}, r"swap_until must lie in \(0, 1\] \(got 0.0\)"),
        ({"swap_until": math.nan}, r"swap_until must lie in \(0, 1\] \(got nan\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rigl(0.1, 0.1, **options)


def test_the_budget_is_that_of_every_search() -> None:
    assert rigl(0.1, 0.1).epochs == BUDGET.epochs
