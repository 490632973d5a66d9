"""Figures by name, for papers: `fastglt plot NAME` and `fastglt plot list`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastglt.errors import InputError, unknown_name
from fastglt.pages.cells import Cell, cells_of
from fastglt.pages.headline import featured_run, headline
from fastglt.pages.material import Material
from fastglt.pages.one_ticket import OneTicket
from fastglt.report.charts import Picture
from fastglt.studies.compare import figures

OfCells = Callable[[str, Sequence[Cell]], Iterator[Picture]]
OfTicket = Callable[[OneTicket], Iterator[Picture]]


@dataclass(frozen=True)
class Plot:
    """A figure: what it shows, and what makes it from the cells of a graph and model, or from one ticket."""

    about: str
    of_cells: OfCells | None = None
    of_ticket: OfTicket | None = None


PLOTS = {
    "sparsity": Plot("scores over edges or weights removed, with bands", of_cells=figures.over_sparsity),
    "verdicts": Plot("ticket minus dense with intervals", of_cells=figures.verdicts),
    "methods": Plot("methods side by side at equal sparsities", of_cells=figures.side_by_side),
    "front": Plot("score against multiplications, with the Pareto front", of_cells=figures.fronts),
    "training": Plot("a search's scores, cuts and swaps", of_ticket=OneTicket.training),
    "graph": Plot("the graph with kept and pruned edges", of_ticket=OneTicket.graph),
    "effects": Plot(
        "neighbours of a node, and edges within a class, before and after", of_ticket=OneTicket.effects
    ),
    "cost": Plot("multiplications by layer, dense beside ticket", of_ticket=OneTicket.cost),
}


def pictures(
    name: str, material: Material, *, data_root: Path | None = None, dataset: str | None = None
) -> list[Picture]:
    """All pictures of a kind that runs give; refused where they give none."""
    if name not in PLOTS:
        raise unknown_name("figure", name, PLOTS)
    plot, cells, found = PLOTS[name], cells_of(material.rows), list[Picture]()
    if plot.of_cells is not None:
        found = [picture for panel in figures.panels(cells) for picture in plot.of_cells(*panel)]
    if plot.of_ticket is not None:
        run = featured_run(cells, headline(cells).cell)
        if run is None:
            raise InputError(f"the figure '{name}' needs a ticket's file (got runs without); name a run's folder")
        found = list(plot.of_ticket(OneTicket(Path(run["ticket"]), run["settings"], dataset, data_root)))
    if not found:
        told = f"{len(cells)} settings" + ", which have too little for it" * bool(cells)
        raise InputError(f"the figure '{name}' shows {plot.about}, for which runs must be there (got {told})")
    return found
