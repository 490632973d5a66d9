"""Experiments from what a user says."""

from typing import Any

from fastglt.methods import Budget, Targets
from fastglt.runs.build import build_experiment
from fastglt.runs.experiment import Experiment


def build(dataset: str, training: dict[str, Any] | Budget | None = None, **options: float) -> Experiment:
    given: dict[str, Any] = {"dataset": dataset, "model": "gat", "method": "ugs", "seed": 3}
    return build_experiment(graph_sparsity=0.1, weight_sparsity=0.2, training=training, options=options, **given)


def test_published_options_are_the_defaults() -> None:
    options = build("Citeseer").make_method().options
    assert (options["edge_l1"], options["weight_l1"]) == (1e-7, 1e-3)
    assert build("digits").make_method().options["edge_l1"] == 1e-2


def test_a_users_own_win() -> None:
    options = build("cora", edge_l1=0.5).make_method().options
    assert (options["edge_l1"], options["weight_l1"], options["search_lr"]) == (0.5, 1e-3, 0.008)


def test_the_rest_is_handed_on() -> None:
    found = build("cora", {"lr": 0.1, "denoise_epochs": 5})
    assert found.budget == Budget(oneshot_epochs=30, denoise_epochs=5, interval=5, lr=0.1)
    assert (found.dataset, found.seed) == ("cora", 3)
    assert found.targets == Targets(graph_sparsity=0.1, weight_sparsity=0.2)
