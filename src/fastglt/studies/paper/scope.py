"""How much of a table or figure is computed: graphs, backbones, seeds, and where runs are made and kept.

A quick reproduction is a part of a full one, run for run: what it has computed is never computed again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastglt.data.named import NAMED, data_root
from fastglt.studies.compare import Comparison, compare
from fastglt.studies.extreme import ExtremeResult, extreme

SUBSTITUTE = "digits"  # needs no download, and never stands beside a published number
GRAPHS = ("cora", "citeseer", "pubmed")
_SEEDS = {"quick": (0, 1), "normal": (0, 1, 2, 3, 4), "full": tuple(range(10))}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What is asked for. `settings` go to `fastglt.compare` and `fastglt.extreme` as they are."""

    size: str = "normal"  # quick, normal or full
    seeds: Sequence[int] = ()  # instead of the size's own
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """Those asked for, or the size's."""
        return tuple(self.seeds) or _SEEDS[self.size]

    @property
    def backbones(self) -> tuple[str, ...]:
        """All three only in full."""
        return ("gcn", "gin", "gat") if self.size == "full" else ("gcn",)

    def graphs(self, *wanted: str) -> list[str]:
        """Those of the wanted graphs that are at hand, in full all of them; else the one that needs nothing."""
        root = data_root(self.settings.get("data_root"))
        there = [name for name in wanted or GRAPHS if at_hand(name, root)]
        return (there if self.size == "full" else there[:1]) or [SUBSTITUTE]

    def few(self, values: Sequence[float]) -> list[float]:
        """All values, or of a quick reproduction the first, one in the middle and the last."""
        if self.size != "quick" or len(values) <= 3:
            return list(values)
        return [values[0], values[len(values) // 2], values[-1]]

    def compare(self, graph: str, model: str, methods: Sequence[str], edges: Any, weights: Any) -> Comparison:
        """Methods side by side."""
        sparsities = {"graph_sparsity": edges, "weight_sparsity": weights}
        return compare(
            graph, model=model, methods=list(methods), seeds=self.all_seeds, **sparsities, **self.settings
        )

    def extreme(self, graph: str, model: str, methods: Sequence[str], **levels: str) -> ExtremeResult:
        """How sparse methods can go by the papers' rule, at the end of the search, not confirmed."""
        rule = {"rules": "plain", "scores": "search", "seeds": self.all_seeds, "fresh_seeds": ()}
        return extreme(graph, model=model, methods=list(methods), **rule, **levels, **self.settings)  # type: ignore[arg-type]


def at_hand(name: str, root: Path | None) -> bool:
    """Whether a named graph can be loaded without a download."""
    where: Callable[[Path | None], str] = NAMED[name].source.where
    return where(root) != "would be downloaded"


def published(graph: str, number: float | None) -> float | None:
    """A published per cent as a fraction; none beside a substitute."""
    return None if number is None or graph == SUBSTITUTE else round(number / 100, 6)
