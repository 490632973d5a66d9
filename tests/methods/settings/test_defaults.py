from typing import Any

import pytest

from fastglt.errors import InputError
from fastglt.methods import Budget
from fastglt.methods.settings import budget_for, with_defaults


def test_the_papers_budget_and_the_published_options() -> None:
    budget, options = with_defaults("ugs", "CiteSeer", "gat")
    assert budget == Budget(oneshot_epochs=50, denoise_epochs=400, interval=3) == budget_for("citeseer", "gat")
    assert options == {"search_lr": 0.01, "search_weight_decay": 5e-4, "edge_l1": 1e-7, "weight_l1": 1e-3}


def test_what_nobody_published_takes_the_defaults() -> None:
    assert with_defaults("ugs", "digits", "gcn") == with_defaults("ugs", "", "") == (Budget(), {})


def test_what_is_given_wins() -> None:
    budget, options = with_defaults("ugs", "cora", "gat", budget={"lr": 0.02}, options={"edge_l1": 0.5})
    assert budget == Budget(oneshot_epochs=30, denoise_epochs=600, interval=10, lr=0.02)
    assert (options["edge_l1"], options["weight_l1"]) == (0.5, 1e-3)
    whole = Budget(oneshot_epochs=1, denoise_epochs=2, interval=1)
    assert with_defaults("fastglt", "cora", "gat", budget=whole)[0] == whole


def test_an_interval_that_nobody_gave_fits_into_a_short_budget() -> None:
    assert with_defaults("fastglt", "cora", "gcn", budget={"denoise_epochs": 4})[0].interval == 4
    with pytest.raises(InputError, match=r"interval must not exceed the 4 denoise_epochs \(got 10\)"):
        with_defaults("fastglt", "cora", "gcn", budget={"denoise_epochs": 4, "interval": 10})
    with pytest.raises(InputError, match=r"denoise_epochs must be at least 1 \(got 0\)"):
        with_defaults("fastglt", "cora", "gcn", budget={"denoise_epochs": 0})
    with pytest.raises(InputError, match=r"denoise_epochs must be a number \(got 'long'\)"):
        with_defaults("fastglt", "cora", "gcn", budget={"denoise_epochs": "long"})


def test_a_budget_has_no_other_parts() -> None:
    with pytest.raises(InputError, match=r"unknown part of a budget \(got 'epochs'\)"):
        with_defaults("fastglt", "cora", "gcn", budget={"epochs": 4})


def test_a_budget_is_no_number() -> None:
    budget: Any = 3
    with pytest.raises(InputError, match=r"budget must be a Budget, or name what differs .* \(got 3\); as in"):
        with_defaults("fastglt", "cora", "gcn", budget=budget)
