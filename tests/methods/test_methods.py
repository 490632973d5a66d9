"""What holds for every method: names, targets, budgets."""

import dataclasses

import pytest

from fastglt import InputError
from fastglt.graph import Graph
from fastglt.methods import METHODS, Budget, FixedMasks, Targets
from fastglt.training import train
from tests.helpers import BUDGET, columns, counts, method_of, toy_task, training_of


def test_names_are_those_of_the_registry() -> None:
    assert {name: method.name for name, method in METHODS.items()} == {name: name for name in METHODS}


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown method \(got 'fastgtl'\); did you mean 'fastglt'\?"):
        method_of("fastgtl", 0.1, 0.1)


def test_an_option_of_another_method_is_refused() -> None:
    with pytest.raises(InputError, match="method 'random' has no option 'start'; it takes none"):
        method_of("random", 0.1, 0.1, start="random")


def test_fixed_masks_keep_everything() -> None:
    assert counts(train(training_of(), FixedMasks(budget=BUDGET)).masks) == (60, 120)


@pytest.mark.parametrize("name", ["graph_sparsity", "weight_sparsity"])
@pytest.mark.parametrize("value", [-0.1, 1.0, float("nan")])
def test_targets_outside_zero_to_one_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"{name} must lie in \[0, 1\) \(got {value}\)"):
        Targets(**{name: value})


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
