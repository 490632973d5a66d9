"""The paper's tables and figures by name. A new one is two functions and a line here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastglt.errors import InputError
from fastglt.studies.paper import curves, denoising, extremes, scores, tickets
from fastglt.studies.paper.reproduction import Reproduction
from fastglt.studies.paper.scope import BACKBONES, GRAPHS, Answer, Ask, Scope

DEEP = ("resgcn",)  # of OGB's sets
Make = Callable[[Scope, Sequence[Answer]], Reproduction]


@dataclass(frozen=True)
class Item:
    """A table or figure: which runs it needs, what it makes of them, which graphs and backbones it can be about."""

    asks: Callable[[Scope], list[Ask]]
    from_answers: Make
    graphs: tuple[str, ...]
    backbones: tuple[str, ...] = BACKBONES
    of_one: bool = False  # graph and one backbone

    @property
    def about(self) -> str:
        """What it shows."""
        return str(self.from_answers.__doc__).strip().rstrip(".")

    def check(self, name: str, scope: Scope) -> None:
        """Refuse graphs and backbones that were asked for and cannot be taken."""
        asked = self._asked_graphs(name, scope)
        if self.of_one:
            for kind, names in (("graph", asked), ("backbone", scope.only_models)):
                if len(names) > 1:
                    given = ",".join(names)
                    raise InputError(f"{name} must be about one {kind} (got {given}); ask for one after the other")
        missing = [graph for graph in asked if not scope.has(graph)]
        if missing:
            rule = f"graphs that are asked for must be at hand (got {', '.join(missing)})"
            raise InputError(f"{rule}; --data-root or FASTGLT_DATA names a folder of raw sets")
        known = DEEP if set(asked) & set(extremes.SETS) else self.backbones
        if not set(scope.only_models) <= set(known):
            about = name if known == self.backbones else f"{name} on {','.join(asked)}"
            given = ",".join(scope.only_models)
            raise InputError(f"the backbones of {about} must be among {', '.join(known)} (got {given})")

    def _asked_graphs(self, name: str, scope: Scope) -> list[str]:
        alike = GRAPHS if set(self.graphs) & set(GRAPHS) else ()  # any of them can be taken for another
        known = list(dict.fromkeys((*alike, *self.graphs)))
        asked = [graph for graph in scope.only_graphs if graph in known]
        if scope.only_graphs and not asked:
            given = ",".join(scope.only_graphs)
            raise InputError(f"the graphs of {name} must be among {', '.join(known)} (got {given})")
        return asked

    def make(self, scope: Scope) -> Reproduction:
        """Have its runs made that are not there yet, and put together what they say."""
        return self.from_answers(scope, [scope.answer(ask) for ask in self.asks(scope)])


ITEMS = {
    "fig1": Item(scores.fig1_asks, scores.fig1, ("cora",), of_one=True),
    "fig2": Item(tickets.fig2_asks, tickets.fig2, ("cora",), ("gcn",), of_one=True),
    "fig4": Item(curves.fig4_asks, curves.fig4, GRAPHS),
    "table1": Item(scores.table1_asks, scores.table1, GRAPHS),
    "table2": Item(extremes.table2_asks, extremes.table2, extremes.SETS, DEEP),
    "table4": Item(extremes.table4_asks, extremes.table4, extremes.SETS, DEEP),
    "fig5": Item(curves.fig5_asks, curves.fig5, ("ogbn-arxiv", "cora"), of_one=True),
    "table5": Item(extremes.table5_asks, extremes.table5, ("citeseer",)),
    "fig6": Item(denoising.fig6_asks, denoising.fig6, ("citeseer",), of_one=True),
    "table6": Item(scores.table6_asks, scores.table6, ("cora", "citeseer")),
    "table7": Item(scores.table7_asks, scores.table7, GRAPHS),
    "table8": Item(extremes.table8_asks, extremes.table8, ("cora", "pubmed")),
    "speedup": Item(tickets.speedup_asks, tickets.speedup, GRAPHS),
}
