"""What a search does where nobody says otherwise: the same for `fastglt find` and for `find_ticket`."""

from collections.abc import Mapping
from dataclasses import asdict
from numbers import Integral
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.methods.base import Budget
from fastglt.methods.settings.paper import budget_for
from fastglt.methods.settings.published import options_for

SomeBudget = Budget | Mapping[str, Any] | None  # whole, or what differs from the default


def with_defaults(
    method: str,
    dataset: str,
    model: str,
    *,
    budget: SomeBudget = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Budget, dict[str, Any]]:
    """The paper's budget and the method's published options for a graph and a backbone; what is given wins.

    >>> budget, options = with_defaults("ugs", "cora", "gat", budget={"lr": 0.01}, options={"edge_l1": 0.5})
    >>> budget.denoise_epochs, budget.lr, options["edge_l1"], options["weight_l1"]
    (600, 0.01, 0.5, 0.001)
    """
    dataset = dataset.lower()
    if not isinstance(budget, Budget | Mapping | None):
        raise InputError(
            f"budget must be a Budget, or name what differs from the default (got {budget!r}); "
            'as in {"denoise_epochs": 100}'
        )
    given = asdict(budget) if isinstance(budget, Budget) else dict(budget or {})
    defaults = asdict(budget_for(dataset, model))
    for name in given:
        if name not in defaults:
            raise unknown_name("part of a budget", name, defaults)
    chosen = {**defaults, **given}
    if "interval" not in given and isinstance(chosen["denoise_epochs"], Integral):
        chosen["interval"] = min(chosen["interval"], max(1, int(chosen["denoise_epochs"])))
    return Budget(**chosen), {**options_for(method, dataset, model), **(options or {})}
