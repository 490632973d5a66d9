"""The paper's tables and figures by name. A new one is a function and a line here."""

from collections.abc import Callable
from dataclasses import dataclass

from fastglt.studies.paper.extremes import table5, table8
from fastglt.studies.paper.reproduction import Reproduction
from fastglt.studies.paper.scope import Scope
from fastglt.studies.paper.scores import fig1, table1, table6, table7
from fastglt.studies.paper.tickets import fig2, speedup


@dataclass(frozen=True)
class Item:
    """A table or figure: what makes it, and which of the paper's graphs it is about."""

    make: Callable[[Scope], Reproduction]
    graphs: tuple[str, ...]
    cost: str  # on two cores, with Cora at hand and the default scope

    @property
    def about(self) -> str:
        """What it shows."""
        return str(self.make.__doc__).strip().rstrip(".")


ITEMS = {
    "fig1": Item(fig1, ("cora",), "40 FastGLT searches and 40 of UGS, each of 20 trainings"),
    "fig2": Item(fig2, ("cora",), "90 searches, a third of them UGS's"),
    "table1": Item(table1, ("cora", "citeseer", "pubmed"), "5 searches"),
    "table5": Item(table5, ("citeseer",), "some 10 sparsities with 10 searches each"),
    "table6": Item(table6, ("cora", "citeseer"), "15 searches"),
    "table7": Item(table7, ("cora", "citeseer", "pubmed"), "10 searches"),
    "table8": Item(table8, ("cora", "pubmed"), "some 5 sparsities with 10 searches each"),
    "speedup": Item(speedup, ("cora", "citeseer", "pubmed"), "5 searches, and a minute of measuring"),
}
