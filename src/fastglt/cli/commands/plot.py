"""`fastglt plot`: finished runs as figures for papers."""

from pathlib import Path
from typing import Annotated

import typer

from fastglt.cli.commands.report import OwnDataset, Places, read_places
from fastglt.cli.shared import arguments
from fastglt.errors import InputError, require
from fastglt.report.tables import say

EXAMPLES = (
    "Examples: [bold]fastglt plot list[/] · [bold]fastglt plot sparsity --out fig.svg[/] · "
    "[bold]fastglt plot training runs/a --out search.pdf[/] · [bold]fastglt plot graph runs/a --out graph.png[/]"
)


def plot(
    context: typer.Context,
    figure: Annotated[str, typer.Argument(help="A name from [bold]fastglt plot list[/].")],
    places: Places = None,
    out: Annotated[
        Path | None, typer.Option(help="The picture's file: .svg, .png, .pdf, or .json for Vega-Lite.")
    ] = None,
    number: Annotated[int, typer.Option(help="Which one, where runs give several pictures; from 1.")] = 1,
    dark: Annotated[bool, typer.Option("--dark", help="For dark slides.")] = False,
    width: Annotated[int, typer.Option(help="In points.")] = 560,
    dataset: OwnDataset = None,
    data_root: arguments.DataRoot = None,
    store: arguments.Store = arguments.STORE,
) -> None:
    """Draw a figure of finished runs, without a browser."""
    from fastglt.pages.plots import PLOTS, pictures

    if figure == "list":
        for name, known in PLOTS.items():
            say(f"{name}: {known.about}")
        return
    require("be positive", width=width)
    material = read_places(context, places, store)
    found = pictures(figure, material, data_root=data_root, dataset=dataset)
    if not 1 <= number <= len(found):
        raise InputError(f"--number must be one of {len(found)} pictures (got {number})")
    if out is None:
        for place, picture in enumerate(found, 1):
            say(f"{place}: {picture.title}. {picture.text}")
        say("--out FILE.svg writes the first, --number another", err=True)
        return
    found[number - 1].save(out, dark=dark, width=width)
    others = f", the first of {len(found)}; --number takes another" if len(found) > 1 and number == 1 else ""
    say(f"'{out}': {found[number - 1].title}{others}")
