from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.masks import Mask, Masks, unflatten
from fastglt.methods import ACE
from fastglt.methods.base import best_soft_masks, get_masks, set_masks
from fastglt.models import GCN
from fastglt.training.loop import Training, train
from tests.helpers import counts, method_of, training_of


def ace(graph: float, weight: float, **options: Any) -> ACE:
    """Rounds of 2 + 1 + 2 epochs."""
    chosen = {"round_epochs": 2, "erase_epochs": 1, "edge_share": 0.3, "weight_share": 0.6, **options}
    method = method_of("ace", graph, weight, **chosen)
    assert isinstance(method, ACE)
    return method


def epochs(training: Training, method: ACE, count: int) -> None:
    for _ in range(count):
        training.run_epoch(method)
        method.after_epoch(training)


def chosen(*indices: int, of: int) -> Tensor:
    found = torch.zeros(of, dtype=torch.bool)
    found[list(indices)] = True
    return found


class TestStages:
    def test_erasing_stands_between_the_cut_and_the_tickets_training(self) -> None:
        method = ace(0.5, 0.8)
        ends = [(1, "mask", 2), (1, "erase", 3), (1, "train", 5), (2, "mask", 7), (2, "erase", 8), (2, "train", 10)]
        assert method.stages == tuple(ends)
        training = training_of()
        train(training, method)
        one = ["mask"] * 2 + ["erase"] + ["train"] * 2
        assert [record.stage for record in training.history] == one * 2
        assert [counts(snapshot.masks) for snapshot in training.rounds] == [(42, 48), (30, 24)]

    def test_where_tickets_on_the_way_are_not_trained_they_still_swap(self) -> None:
        stages = ace(0.5, 0.8, train_rounds=False).stages
        assert [name for _, name, _ in stages] == ["mask", "erase", "mask", "erase", "train"]


class TestComplement:
    def erasing(self, graph: float, weight: float) -> tuple[Training, Masks, GCN]:
        """At the start of the first erasing, with the masks that were cut."""
        network = GCN(12, 8, 3)
        training, method = training_of(network=network), ace(graph, weight)
        method.begin(training)
        epochs(training, method, 1)
        training.run_epoch(method)
        sizes = best_soft_masks(training)
        method.after_epoch(training)
        assert training.stage == "erase"
        for part, size in zip(("edges", "weights"), sizes, strict=True):
            key = f"size of {part}"
            assert (key in training.method_state) == (size is not None)
            assert size is None or torch.equal(training.method_state[key], size)
        edges, weights = (
            training.method_state["edges"],
            unflatten(training.method_state["weights"], training.weights),
        )
        masks = Masks(edges=Mask(edges), weights={name: Mask(part) for name, part in weights.items()})
        return training, masks, network

    def test_it_is_what_has_been_pruned_from_the_initial_weights(self) -> None:
        training, masks, network = self.erasing(0.5, 0.8)
        assert counts(masks) == (42, 48)
        assert counts(training.masks) == (18, 72)
        assert torch.equal(training.masks.edges.kept, ~masks.edges.kept)
        for name, mask in masks.weights.items():
            assert torch.equal(training.masks.weights[name].kept, ~mask.kept)
            start = network.get_parameter(name).detach()
            assert torch.equal(training.weights[name].detach(), start * ~mask.kept)
        assert training.soft_edge_mask is not None
        assert set(training.soft_weight_masks) == set(masks.weights)

    def test_the_history_tells_of_the_cut_and_not_of_the_complement(self) -> None:
        training, _, _ = self.erasing(0.5, 0.8)
        last = training.history[-1]
        assert (last.edges_dropped, last.edges_grown, last.weights_dropped, last.weights_grown) == (18, 0, 72, 0)

    def test_what_is_not_pruned_stays_whole(self) -> None:
        training, masks, _ = self.erasing(0.0, 0.8)
        assert (masks.edges.count, training.masks.edges.count) == (60, 60)
        assert training.soft_edge_mask is None
        training, masks, _ = self.erasing(0.5, 0.0)
        assert (masks.weights_kept, training.masks.weights_kept) == (120, 120)
        assert training.soft_weight_masks == {}

    def test_so_does_a_matrix_that_lost_nothing(self) -> None:
        training, method = training_of(), ace(0.5, 0.8)
        method.begin(training)
        set_masks(training, chosen(*range(42), of=60), chosen(*range(40), *range(96, 120), of=120))
        method.enter(training, "erase", 1)
        assert training.masks.weights["layer1.weight"].count == 56
        assert training.masks.weights["layer2.weight"].count == 24


class TestSwap:
    # Kept: edges 0–29 and weights 0–39. A share of 0.1 is 3 of 30 edges, and 4 of the 40 kept weights (80 are not).

    def swapped(self, share: float = 0.1, graph: float = 0.5, weight: float = 0.8) -> Training:
        training, method = training_of(), ace(graph, weight, swap_share=share)
        method.begin(training)
        training.run_epoch(method)
        edges = chosen(*range(30), of=60) if graph else torch.ones(60, dtype=torch.bool)
        set_masks(training, edges, chosen(*range(40), of=120))
        training.method_state = {
            "size of edges": torch.arange(60.0) + 1,  # the weakest kept ones come first
            "size of weights": -(torch.arange(120.0) - 200),  # the weakest kept ones come last
        }
        method.enter(training, "erase", 1)
        with torch.no_grad():
            if training.soft_edge_mask is not None:
                training.soft_edge_mask.copy_(-torch.arange(60.0))  # by size, the last ones are the best
                training.soft_edge_mask[45] = 1000
            for name, part in unflatten((torch.arange(120.0) - 70).abs(), training.weights).items():
                training.soft_weight_masks[name].copy_(100 - part)  # the nearer to 70 the better
        training.measure("erase")
        method.leave(training, "erase", 1)
        return training

    def test_the_complements_best_take_the_places_of_the_weakest(self) -> None:
        edges, weights = get_masks(self.swapped())
        assert edges.nonzero().flatten().tolist() == [*range(3, 30), 45, 58, 59]
        grown = weights.nonzero().flatten()[36:].tolist()
        assert weights.nonzero().flatten()[:36].tolist() == list(range(36))
        assert set(grown) > {69, 70, 71}  # and one of 68 and 72, which are equally near
        assert set(grown) <= {68, 69, 70, 71, 72}

    def test_counts_stay_and_the_history_tells_of_the_swap(self) -> None:
        training = self.swapped()
        assert counts(training.masks) == (30, 40)
        last = training.history[-1]
        assert (last.edges_dropped, last.edges_grown, last.weights_dropped, last.weights_grown) == (3, 3, 4, 4)
        assert training.method_state == {}

    def test_the_fewer_ones_decide_how_many(self) -> None:
        training, method = training_of(), ace(0.5, 0.8, swap_share=0.1)
        method.begin(training)
        training.run_epoch(method)
        sizes = {"size of edges": torch.ones(60), "size of weights": torch.ones(120)}
        training.method_state = sizes
        set_masks(training, chosen(*range(50), of=60), chosen(*range(20), of=120))
        method.enter(training, "erase", 1)
        training.run_epoch(method)
        method.leave(training, "erase", 1)
        last = training.history[-1]
        assert (last.edges_grown, last.weights_grown) == (1, 2)  # of 10 pruned edges, of 20 kept weights

    def test_no_share_swaps_nothing(self) -> None:
        edges, weights = get_masks(self.swapped(share=0.0))
        assert torch.equal(edges, chosen(*range(30), of=60))
        assert torch.equal(weights, chosen(*range(40), of=120))

    def test_edges_that_are_not_pruned_are_not_swapped(self) -> None:
        training = self.swapped(graph=0.0)
        assert counts(training.masks) == (60, 40)
        assert training.history[-1].weights_grown == 4


def test_a_run_trains_the_swapped_tickets() -> None:
    training = training_of()
    train(training, ace(0.5, 0.8, swap_share=0.5))
    swaps = {r.epoch: (r.edges_grown, r.weights_grown) for r in training.history if r.stage == "erase"}
    # Half of 18 pruned edges and of 48 kept weights; then half of 30 and of 24.
    assert swaps == {3: (9, 24), 8: (15, 12)}
    for number, snapshot in enumerate(training.rounds):
        assert training.history[5 * number + 3].stage == "train"
        assert 5 * number + 3 < snapshot.epoch <= 5 * number + 5
    assert training.masks == training.rounds[-1].masks


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("erase_epochs", 0, "erase_epochs must be at least 1"),
        ("swap_share", -0.1, r"swap_share must lie in \[0, 1\]"),
        ("swap_share", 1.1, r"swap_share must lie in \[0, 1\]"),
        ("edge_l1", -1.0, "edge_l1 must not be negative"),
    ],
)
def test_impossible_options_are_refused(option: str, value: float, rule: str) -> None:
    with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
        ace(0.5, 0.8, **{option: value})
