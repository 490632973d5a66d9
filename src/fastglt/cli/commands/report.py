"""`fastglt report`: finished runs as one page."""

from pathlib import Path
from typing import Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.completion import complete, datasets
from fastglt.report.tables import say
from fastglt.system.terminal import warn

EXAMPLES = (
    "Examples: [bold]fastglt report[/] (all runs) · [bold]fastglt report runs/a --out a.html[/] (one run) · "
    "[bold]fastglt report runs/compare-cora-gcn lab.sqlite --out both.html[/] (several places)"
)
Places = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN|STORE]...",
        help="Stores, runs' folders, folders of those, or ticket files (default: the results store).",
    ),
]
OwnDataset = Annotated[
    str | None,
    typer.Option(help="The ticket's graph (default: what its run names).", autocompletion=complete(datasets)),
]


def report(
    places: Places = None,
    out: Annotated[Path, typer.Option(help="The page's file.")] = Path("report.html"),
    dataset: OwnDataset = None,
    data_root: arguments.DataRoot = None,
    store: arguments.Store = arguments.STORE,
) -> None:
    """Write finished runs as one page: what was found, verdicts, curves, the graph, the search, cost and tables.

    The page holds all it needs and opens without a network. It follows the system's light or dark colours, fits a
    phone, and can be used by keyboard and screen reader. What cannot be read is told on the page.
    """
    from fastglt.pages import gather, report_page
    from fastglt.system.storage import write_atomically

    material = gather(places or [store])
    for note in material.notes:
        warn(note)
    write_atomically(out, report_page(material, data_root=data_root, dataset=dataset).encode())
    say(f"{len(material.rows):,} runs in '{out}'")
