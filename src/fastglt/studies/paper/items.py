"""The paper's tables and figures by name. A new one is two functions and a line here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fastglt.studies.paper import curves, denoising, extremes, scores, tickets
from fastglt.studies.paper.reproduction import Reproduction
from fastglt.studies.paper.scope import Answer, Ask, Scope

Make = Callable[[Scope, Sequence[Answer]], Reproduction]
_PLANETOID = ("cora", "citeseer", "pubmed")


@dataclass(frozen=True)
class Item:
    """A table or figure: which runs it needs, what it makes of them, which of the paper's graphs it is about."""

    asks: Callable[[Scope], list[Ask]]
    from_answers: Make
    graphs: tuple[str, ...]

    @property
    def about(self) -> str:
        """What it shows."""
        return str(self.from_answers.__doc__).strip().rstrip(".")

    def make(self, scope: Scope) -> Reproduction:
        """Have its runs made that are not there yet, and put together what they say."""
        return self.from_answers(scope, [scope.answer(ask) for ask in self.asks(scope)])


ITEMS = {
    "fig1": Item(scores.fig1_asks, scores.fig1, ("cora",)),
    "fig2": Item(tickets.fig2_asks, tickets.fig2, ("cora",)),
    "fig4": Item(curves.fig4_asks, curves.fig4, _PLANETOID),
    "table1": Item(scores.table1_asks, scores.table1, _PLANETOID),
    "table2": Item(extremes.table2_asks, extremes.table2, extremes.SETS),
    "table4": Item(extremes.table4_asks, extremes.table4, extremes.SETS),
    "fig5": Item(curves.fig5_asks, curves.fig5, ("ogbn-arxiv", "cora")),
    "table5": Item(extremes.table5_asks, extremes.table5, ("citeseer",)),
    "fig6": Item(denoising.fig6_asks, denoising.fig6, ("citeseer",)),
    "table6": Item(scores.table6_asks, scores.table6, ("cora", "citeseer")),
    "table7": Item(scores.table7_asks, scores.table7, _PLANETOID),
    "table8": Item(extremes.table8_asks, extremes.table8, ("cora", "pubmed")),
    "speedup": Item(tickets.speedup_asks, tickets.speedup, _PLANETOID),
}
