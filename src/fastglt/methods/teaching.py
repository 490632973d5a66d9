"""How a teacher teaches where nobody says otherwise, and what users say of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastglt.errors import require, unknown_name
from fastglt.methods.budget import Budget

Distill = bool | float | Mapping[str, Any] | None

# One default for all graphs, chosen on nodes that count in no test score: docs/taught.md.
TEACHING: dict[str, Any] = {
    "weight": 100.0,
    "search": 0.01,  # share of the weight in the search
    "temperature": 1.0,
    "labels": 1.0,
    "lr": 0.01,
    "nodes": "all",
}
_IN_BUDGET = {name: "distill" if name == "weight" else f"distill_{name}" for name in TEACHING}


def with_teacher(budget: Budget, distill: Distill) -> Budget:
    """A budget with a teacher: as usual (True), with parts of that changed, or as in 0.1 (its weight alone).

    The usual learning rate is for budgets whose own is lower.

    >>> taught = with_teacher(Budget(), {"temperature": 2})
    >>> taught.distill, taught.distill_temperature, taught.distill_lr
    (100.0, 2, 0.01)
    >>> with_teacher(Budget(), 1.0) == Budget(distill=1.0), with_teacher(Budget(lr=0.01), True).distill_lr
    (True, 0.0)
    """
    if distill is None or distill is False:
        return budget
    if distill is not True and not isinstance(distill, Mapping):
        require("not be negative", distill=distill)
        return replace(budget, distill=float(distill))
    said = {} if distill is True else dict(distill)
    for name in said:
        if name not in TEACHING:
            raise unknown_name("part of a teacher", name, TEACHING)
    chosen = {**TEACHING, **({"lr": 0.0} if budget.lr >= TEACHING["lr"] else {}), **said}
    require("be positive", weight=chosen["weight"])
    return replace(budget, **{_IN_BUDGET[name]: value for name, value in chosen.items()})
