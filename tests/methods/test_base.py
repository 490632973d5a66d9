import dataclasses

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask, Masks, flatten, unflatten
from fastglt.methods import Budget, FixedMasks, Targets
from fastglt.methods.base import (
    cut_lowest,
    cut_random,
    cut_smallest,
    draw_lowest,
    train_soft_masks,
    train_sparse,
)
from fastglt.models import PyGNetwork
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, columns, counts, method_of, randn, toy_task, training_of
from tests.toy_data import seeded


def test_fixed_masks_keep_everything() -> None:
    assert counts(train(training_of(), FixedMasks(budget=BUDGET)).masks) == (60, 120)


@pytest.mark.parametrize("name", ["graph_sparsity", "weight_sparsity"])
@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_targets_outside_zero_to_one_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{name} must lie in \[0, 1\) \(got {value}\)"):
        Targets(graph_sparsity=value) if name == "graph_sparsity" else Targets(weight_sparsity=value)


def test_targets_that_leave_nothing_are_refused() -> None:
    with pytest.raises(InputError, match=r"graph_sparsity must leave at least one of 60 elements \(got 0.999"):
        Targets(graph_sparsity=0.999, weight_sparsity=0.5).check(toy_task(), 120)
    with pytest.raises(InputError, match=r"weight_sparsity must leave at least one of 120 elements \(got 0.999"):
        Targets(graph_sparsity=0.5, weight_sparsity=0.999).check(toy_task(), 120)
    Targets(graph_sparsity=0.9, weight_sparsity=0.99).check(toy_task(), 120)


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        ("oneshot_epochs", 0, "oneshot_epochs must be at least 1"),
        ("denoise_epochs", 0, "denoise_epochs must be at least 1"),
        ("interval", 0, "interval must be at least 1"),
        ("oneshot_epochs", 2.5, "oneshot_epochs must be a whole number"),
        ("denoise_epochs", 2.5, "denoise_epochs must be a whole number"),
        ("interval", 401, "interval must not exceed the 400 denoise_epochs"),
        ("lr", -1.0, "lr must be positive"),
        ("weight_decay", -1.0, "weight_decay must not be negative"),
    ],
)
def test_impossible_budgets_are_refused(setting: str, value: float, rule: str) -> None:
    with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
        Budget(**{setting: value})  # type: ignore[arg-type]


def test_the_budget_holds_the_recipe() -> None:
    assert (BUDGET.epochs, BUDGET.recipe.lr, BUDGET.recipe.weight_decay) == (24, 0.01, 5e-4)


def test_a_graph_without_edges_has_none_to_remove() -> None:
    task = dataclasses.replace(toy_task(), graph=Graph.from_edge_index(columns([]), num_nodes=30))
    with pytest.raises(InputError, match=r"graph_sparsity must be 0 on a graph without edges \(got 0.2\)"):
        Targets(graph_sparsity=0.2).check(task, 120)
    Targets(graph_sparsity=0.0).check(task, 120)


@pytest.mark.parametrize("name", ["fastglt", "oneshot"])
def test_the_weight_decay_of_a_sparse_search_is_that_of_its_share_of_weights(name: str) -> None:
    training = training_of()
    method = method_of(name, 0.0, 0.9)
    method.begin(training)
    assert training.weight_decay == training.recipe.weight_decay
    while training.epoch <= BUDGET.oneshot_epochs:
        training.run_epoch(method)
        method.after_epoch(training)
    assert training.weight_decay == pytest.approx(training.recipe.weight_decay / 10)
    assert training.optimizer.groups[0][1] == training.weight_decay


@pytest.mark.parametrize(("prunable", "share"), [(None, 0.1), (["lin_l.weight"], 0.55), ([], 1.0)])
def test_matrices_that_are_spared_stay_in_the_share(prunable: list[str] | None, share: float) -> None:
    """Of two matrices of 36 weights each."""
    network = PyGNetwork(seeded(pyg.SAGEConv, 12, 3), prunable=prunable)
    training = Training(network, toy_task(), BUDGET.recipe, seed=0)
    train_sparse(training, Targets(graph_sparsity=0.2, weight_sparsity=0.9 if network.prunable else 0.0), stage="x")
    assert training.weight_decay == pytest.approx(training.recipe.weight_decay * share, rel=0.05)


def pruned(*, edges: Tensor, weights: Tensor) -> Training:
    """A training under these masks."""
    parts = unflatten(weights, training_of().weights)
    masks = Masks(edges=Mask(edges), weights={name: Mask(part) for name, part in parts.items()})
    return training_of(masks=masks)


def kept_by(training: Training) -> tuple[Tensor, Tensor]:
    return training.masks.edges.kept, flatten({name: mask.kept for name, mask in training.masks.weights.items()})


class TestCuts:
    def test_the_lowest_scores_go_over_all_matrices(self) -> None:
        training, edges, weights = training_of(), torch.arange(60.0), -torch.arange(120.0)
        cut_lowest(training, 0.5, 0.9, edges=edges, weights=weights)
        kept_edges, kept_weights = kept_by(training)
        assert kept_edges.nonzero().squeeze(1).tolist() == list(range(30, 60))
        assert kept_weights.nonzero().squeeze(1).tolist() == list(range(12))

    def test_what_is_pruned_stays_so_however_high_its_score(self) -> None:
        halves = torch.arange(60) % 2 == 0, torch.arange(120) % 2 == 0
        training = pruned(edges=halves[0], weights=halves[1])
        cut_lowest(training, 0.75, 0.75, edges=-torch.arange(60.0), weights=-torch.arange(120.0))
        kept_edges, kept_weights = kept_by(training)
        assert kept_edges.nonzero().squeeze(1).tolist() == list(range(0, 30, 2))
        assert kept_weights.nonzero().squeeze(1).tolist() == list(range(0, 60, 2))

    def test_what_is_pruned_stays_so_where_there_are_no_scores(self) -> None:
        halves = torch.arange(60) % 2 == 0, torch.arange(120) % 2 == 0
        training = pruned(edges=halves[0], weights=halves[1])
        cut_random(training, 0.75, 0.75)
        assert counts(training.masks) == (15, 30)
        for kept, half in zip(kept_by(training), halves, strict=True):
            assert not (kept & ~half).any()

    @pytest.mark.parametrize("scored", [False, True])
    def test_a_cut_brings_nothing_back(self, scored: bool) -> None:
        """Half is gone already; a quarter less is no reason to return."""
        halves = torch.arange(60) % 2 == 0, torch.arange(120) % 2 == 0
        training = pruned(edges=halves[0], weights=halves[1])
        scores = {"edges": randn(60), "weights": randn(120)} if scored else {}
        cut_lowest(training, 0.25, 0.25, **scores)
        assert all(torch.equal(kept, half) for kept, half in zip(kept_by(training), halves, strict=True))

    def test_scores_that_are_no_numbers_are_told(self) -> None:
        edges = torch.arange(60.0)
        edges[:2] = torch.nan
        with pytest.raises(InputError, match=r"strengths to cut by must be numbers \(got NaN for 2 of 60\)"):
            cut_lowest(training_of(), 0.5, 0.0, edges=edges)

    def test_without_scores_the_seed_draws(self) -> None:
        one, again, other = training_of(seed=1), training_of(seed=1), training_of(seed=2)
        for training in (one, again, other):
            cut_random(training, 0.5, 0.5)
            assert counts(training.masks) == (30, 60)
        assert one.masks == again.masks
        assert one.masks.edges != other.masks.edges
        assert one.masks.weights != other.masks.weights

    def test_one_may_be_scored_and_the_other_drawn(self) -> None:
        training, drawn = training_of(), training_of()
        cut_lowest(training, 0.5, 0.5, edges=torch.arange(60.0))
        cut_random(drawn, 0.5, 0.5)
        assert kept_by(training)[0].nonzero().squeeze(1).tolist() == list(range(30, 60))
        assert training.masks.weights == drawn.masks.weights

    def test_a_draw_changes_nothing(self) -> None:
        training = training_of()
        edges, weights = draw_lowest(training, 0.5, 0.9, edges=torch.arange(60.0))
        assert (int(edges.sum()), int(weights.sum())) == (30, 12)
        assert counts(training.masks) == (60, 120)

    def test_the_smallest_soft_masks_of_the_best_epoch_go_and_the_stage_ends(self) -> None:
        training = training_of()
        train_soft_masks(training, Targets(graph_sparsity=0.5, weight_sparsity=0.9))
        training.run_epoch(Hooks())
        best = training.best
        assert best is not None
        assert best.soft_edge_mask is not None
        best.soft_edge_mask.copy_(-torch.arange(60.0))  # sizes count, not signs
        best.soft_weight_masks["layer1.weight"].fill_(0.5)
        best.soft_weight_masks["layer2.weight"].copy_(torch.arange(24.0).view(8, 3))
        cut_smallest(training, 0.5, 0.9)
        kept_edges, kept_weights = kept_by(training)
        assert kept_edges.nonzero().squeeze(1).tolist() == list(range(30, 60))
        assert kept_weights.nonzero().squeeze(1).tolist() == list(range(96 + 12, 120))
        assert training.best is None
        assert not training.optimizer.state

    def test_the_history_tells_of_a_cut(self) -> None:
        training = training_of()
        training.run_epoch(Hooks())
        cut_random(training, 0.5, 0.9)
        record = training.history[-1]
        assert (record.edges_dropped, record.weights_dropped) == (30, 108)
        assert (record.edges_grown, record.weights_grown) == (0, 0)
