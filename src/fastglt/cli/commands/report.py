"""`fastglt report`: finished runs as one page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.completion import complete, datasets
from fastglt.cli.shared.options import asked_for
from fastglt.errors import InputError
from fastglt.report.tables import say
from fastglt.report.wording import counted
from fastglt.system.terminal import warn

if TYPE_CHECKING:
    from fastglt.pages import Material

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


def read_places(context: typer.Context, places: list[Path] | None, store: Path) -> "Material":
    """The runs of all places, or of the store without any; each that cannot be read is told.

    If somebody has named them and none can be read, that is refused.
    """
    from fastglt.pages import gather

    found = gather(places or [store])
    is_named = not {"places", "store"}.isdisjoint(asked_for(context))
    refused = found.unread[-1] if is_named and len(found.unread) == len(found.sources) else None
    for note in dict.fromkeys(found.notes):
        if note != refused:
            warn(note)
    if refused is not None:
        raise InputError(refused)
    return found


def report(
    context: typer.Context,
    places: Places = None,
    out: Annotated[Path, typer.Option(help="The page's file, .html.")] = Path("report.html"),
    dataset: OwnDataset = None,
    data_root: arguments.DataRoot = None,
    store: arguments.Store = arguments.STORE,
) -> None:
    """Write finished runs as one page: what was found, verdicts, curves, the graph, the search, cost and tables.

    The page holds all it needs and opens without a network. It follows the system's light or dark colours, fits a
    phone, and can be used by keyboard and screen reader. What cannot be read is told on the page, and refused where
    nothing of what was named can be.
    """
    from fastglt.pages import report_page
    from fastglt.system.storage import write_atomically

    if out.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out must end in .html (got '{out}'); `fastglt plot` writes .svg, .png and .pdf")
    material = read_places(context, places, store)
    write_atomically(out, report_page(material, data_root=data_root, dataset=dataset).encode())
    say(f"{counted(len(material.rows), 'run')} in '{out}'")
