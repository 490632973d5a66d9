import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch_geometric import nn as pyg

from fastglt.masks import flatten
from fastglt.methods import GraSP
from fastglt.models import PyGNetwork
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, method_of, node_task, training_of
from tests.methods.references import by_hand, dense_loss, flat, kept_weights
from tests.toy_data import seeded


def grasp(graph: float, weight: float) -> GraSP:
    method = method_of("grasp", graph, weight)
    assert isinstance(method, GraSP)
    return method


def exact(loss: Tensor, weights: list[Tensor], edges: Tensor) -> tuple[Tensor, Tensor]:
    """What autograd gives for Hg in edge masks and weights, g being the gradient in the weights."""
    gradients = torch.autograd.grad(loss, weights, create_graph=True)
    half_norm = sum((part.square().sum() for part in gradients), loss.new_zeros(())) / 2
    in_edges, *in_weights = torch.autograd.grad(half_norm, [edges, *weights])
    return in_edges, torch.cat([part.flatten() for part in in_weights])


def relative_error(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


class TestHessianTimesGradient:
    def test_by_hand(self) -> None:
        """Along g, the class scores of node 0 move by |h|²·s = (−5/2, 5/2), so p by a quarter of ∓5: (−5/4, 5/4).

        Hg is h_f·dp_c in weights. In the mask of 0–1 it is dp·(4, 0) + s·g_1 = −5 + 1/2, in that of 0–2, with
        x_2·W = (2, 6) and x_2·g = (−2, 2), it is dp·(2, 6) + s·(−2, 2) = 5 + 2.
        """
        edges, weights = grasp(0.5, 0.5).hessian_times_gradient(by_hand())
        assert edges is not None
        assert edges.tolist() == pytest.approx([-4.5, 7.0, 0.0], rel=1e-3)
        assert weights.tolist() == pytest.approx([-1.25, 1.25, -2.5, 2.5], rel=1e-3)

    def test_our_kernels_against_a_dense_model_differentiated_twice(self) -> None:
        """In float32 central differences are good to about a thousandth, if no hidden unit changes sides."""
        training = training_of()
        edges = torch.ones(60, dtype=torch.float64, requires_grad=True)
        weights = {name: weight.detach().double().requires_grad_() for name, weight in training.weights.items()}
        in_edges, in_weights = exact(dense_loss(training, weights, edges), list(weights.values()), edges)
        found = grasp(0.5, 0.9).hessian_times_gradient(training)
        assert found.edges is not None
        assert relative_error(found.edges, in_edges) < 1e-3
        assert relative_error(found.weights, in_weights) < 1e-3

    def test_a_users_model_in_double_precision(self) -> None:
        """In float64 they are good to six digits and more."""
        model = seeded(lambda: pyg.GCN(12, 8, num_layers=2, out_channels=3, act="tanh", dropout=0.5)).double()
        training = training_of(network=PyGNetwork(model))
        edges = torch.ones(60, requires_grad=True)
        weights = {name: weight.detach().requires_grad_() for name, weight in training.weights.items()}
        task, network = node_task(training), training.network.eval()
        scores = functional_call(network, weights, (task.x, task.graph, edges, task.train))
        in_edges, in_weights = exact(task.label_loss(scores, task.y[task.train]), list(weights.values()), edges)
        found = grasp(0.5, 0.9).hessian_times_gradient(training)
        assert found.edges is not None
        assert relative_error(found.edges, in_edges) < 1e-7
        assert relative_error(found.weights, in_weights) < 1e-7

    def test_a_flat_loss_has_none(self) -> None:
        training = training_of()
        with torch.no_grad():
            for weight in training.weights.values():
                weight.zero_()
        edges, weights = grasp(0.5, 0.5).hessian_times_gradient(training)
        assert edges is not None
        assert not edges.any()
        assert not weights.any()


class TestBegin:
    def test_the_largest_minus_w_times_hg_go(self) -> None:
        """w·Hg is −5, 0, −5/2 and 15/2: the weights 4 and 1 go, and the edge 0–1 with −9/2."""
        training = by_hand()
        grasp(1 / 3, 0.5).begin(training)
        assert kept_weights(training) == [False, True, False, True]
        assert flat(training.masks.edges) == [False, True, True]

    def test_the_sign_decides_not_the_size(self) -> None:
        training = training_of()
        edges, weights = grasp(0.5, 0.9).strengths(training)
        grasp(0.5, 0.9).begin(training)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert edges is not None
        for score, chosen in ((edges, training.masks.edges.kept), (weights, kept)):
            assert float(score.min()) < 0 < float(score.max())
            assert float(score[chosen].min()) >= float(score[~chosen].max())

    def test_edges_alone_are_scored_by_the_weights_gradient_too(self) -> None:
        training: Training = by_hand()
        grasp(1 / 3, 0.0).begin(training)
        assert flat(training.masks.edges) == [False, True, True]
        assert kept_weights(training) == [True] * 4


def test_the_masks_stay_through_all_epochs() -> None:
    training = training_of()
    best = train(training, grasp(0.5, 0.9))
    assert [record.stage for record in training.history] == ["train"] * BUDGET.epochs
    assert not any(record.edges_dropped or record.weights_dropped for record in training.history)
    assert training.soft_edge_mask is None
    assert best.masks == training.masks
