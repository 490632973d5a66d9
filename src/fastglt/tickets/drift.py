"""How far a ticket has drifted from the search that found it, and whether a new search would pay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LOST, CHANGED, AGREED = 0.01, 0.2, 0.9  # the rule's three bounds


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What is measured after an update; no test label is looked at.

    The rule: a new search pays once one of these holds. The validation score lies more than a point below the one
    that the search ended with; more than a fifth as many edges as the search had have come or gone since; fewer
    than nine in ten of the nodes are predicted to be what they were before this update.
    """

    lost: float  # validation score of the search, less that of now
    changed: float  # edges that have come or gone since the search, as a share of those it had
    agreed: float  # share of the nodes of before that are predicted to be what they were

    @property
    def reasons(self) -> list[str]:
        """Why a new search would pay, in words; empty: it would not."""
        found = {
            f"the validation score has fallen by {100 * self.lost:.1f} points since the search": self.lost > LOST,
            f"{100 * self.changed:.0f} % of the edges have come or gone since the search": self.changed > CHANGED,
            f"{100 * (1 - self.agreed):.0f} % of the nodes are predicted otherwise": self.agreed < AGREED,
        }
        return [reason for reason, holds in found.items() if holds]


def since_search(update: Mapping[str, Any] | None, *, val: float, edges: int) -> dict[str, Any]:
    """What the search left, and what has changed since, from the record of the update before; None: there was none.

    A record may come from anybody: what is no such record is none.
    """
    fresh: dict[str, Any] = {"number": 0, "search_val": val, "search_edges": edges, "edges_changed": 0}
    if not isinstance(update, Mapping):
        return fresh
    kinds = {"number": int, "search_val": float, "search_edges": int, "edges_changed": int}
    fits = all(isinstance(update.get(name), kind) for name, kind in kinds.items())
    return {name: update[name] for name in fresh} if fits else fresh
