import pytest
import torch
from torch import Tensor

from fastglt.masks import flatten
from fastglt.methods import SNIP
from fastglt.models import GCN, PyGNetwork
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, counts, method_of, training_of
from tests.methods.references import SumOfNeighbours, by_hand, dense_loss, flat, kept_weights


def snip(graph: float, weight: float) -> SNIP:
    method = method_of("snip", graph, weight)
    assert isinstance(method, SNIP)
    return method


class TestScores:
    def test_by_hand(self) -> None:
        """|h_f·s_c·w| of weights; of edges |s·(1, 0)·W| = |−4/2 + 0|, |s·(0, 2)·W| = |−2/2 + 6/2|, and nothing."""
        edges, weights = snip(0.5, 0.5).strengths(by_hand())
        assert edges is not None
        assert edges.tolist() == pytest.approx([2.0, 2.0, 0.0])
        assert weights.tolist() == pytest.approx([2.0, 0.0, 1.0, 3.0])

    def test_they_are_those_of_masks_on_an_equivalent_dense_model(self) -> None:
        training = training_of()
        edges = torch.ones(60, requires_grad=True)
        masks = {name: torch.ones_like(weight, requires_grad=True) for name, weight in training.weights.items()}
        masked = {name: weight.detach() * masks[name] for name, weight in training.weights.items()}
        wanted = torch.autograd.grad(dense_loss(training, masked, edges), [edges, *masks.values()])
        scores = snip(0.5, 0.9).strengths(training)
        assert scores.edges is not None
        torch.testing.assert_close(scores.edges, wanted[0].abs(), rtol=1e-4, atol=1e-7)
        torch.testing.assert_close(
            scores.weights, torch.cat([part.flatten() for part in wanted[1:]]).abs(), rtol=1e-4, atol=1e-7
        )

    def test_a_model_that_is_random_even_in_evaluation_has_one_gradient(self) -> None:
        class Restless(SumOfNeighbours):
            def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
                return super().forward(x + torch.randn_like(x), edge_index)

        training, other = (Training(PyGNetwork(Restless()), by_hand().task, BUDGET.recipe, seed=s) for s in (0, 4))
        first, again, others = (snip(0.5, 0.5).gradient(one) for one in (training, training, other))
        assert torch.equal(first.weights, again.weights)
        assert not torch.equal(first.weights, others.weights)

    def test_edges_that_stay_have_none(self) -> None:
        assert snip(0.0, 0.5).strengths(by_hand()).edges is None

    def test_the_network_the_hooks_and_the_soft_masks_are_left_alone(self) -> None:
        training, network = training_of(), GCN(12, 8, 3)
        snip(0.5, 0.9).strengths(training)
        for name, value in training.network.state_dict().items():
            assert torch.equal(value, network.state_dict()[name])
        assert type(training.hooks) is Hooks
        assert training.soft_edge_mask is None
        assert all(parameter.grad is None for parameter in training.network.parameters())


class TestBegin:
    def test_the_lowest_scores_go(self) -> None:
        training = by_hand()
        snip(1 / 3, 0.5).begin(training)
        assert flat(training.masks.edges) == [True, True, False]
        assert kept_weights(training) == [True, False, False, True]

    def test_training_starts_at_the_initial_weights_without_soft_masks(self) -> None:
        training, network = training_of(), GCN(12, 8, 3)
        snip(0.5, 0.9).begin(training)
        assert training.soft_edge_mask is None
        assert training.soft_weight_masks == {}
        assert (training.stage, training.target) == ("train", (30, 12))
        assert training.weight_decay == pytest.approx(training.recipe.weight_decay / 10)
        for name, mask in training.masks.weights.items():
            assert torch.equal(training.weights[name].detach(), network.get_parameter(name).detach() * mask.kept)

    def test_edges_and_weights_are_ranked_apart(self) -> None:
        training = training_of()
        edges, weights = snip(0.5, 0.9).strengths(training)
        snip(0.5, 0.9).begin(training)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert edges is not None
        for score, chosen in ((edges, training.masks.edges.kept), (weights, kept)):
            assert float(score[chosen].min()) >= float(score[~chosen].max())
        assert counts(training.masks) == (30, 12)


def test_the_masks_stay_through_all_epochs() -> None:
    training = training_of()
    best = train(training, snip(0.5, 0.9))
    assert [record.stage for record in training.history] == ["train"] * BUDGET.epochs
    assert not any(record.edges_dropped or record.weights_dropped for record in training.history)
    fresh = training_of()
    snip(0.5, 0.9).begin(fresh)
    assert best.masks == fresh.masks
