"""`fastglt reproduce`: the paper's tables and figures, its numbers beside ours."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import RUN
from fastglt.cli.shared.dry_run import told_dry_run
from fastglt.cli.shared.series import executed_by, tell_failures, teller, told_how_to_go_on
from fastglt.errors import InputError, unknown_name
from fastglt.report.tables import say

if TYPE_CHECKING:
    from fastglt.studies.paper import Reproduction

EXAMPLES = (
    "Examples: [bold]fastglt reproduce list[/] · [bold]fastglt reproduce table6 --quick[/] (two seeds) · "
    "[bold]fastglt reproduce fig1 table1 table7 --seeds 0-4 --figures out[/] · "
    "[bold]fastglt reproduce table8 --full[/] (all graphs and backbones)"
)


def reproduce(
    items: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Names from [bold]fastglt reproduce list[/].")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, few sparsities, GCN, one graph.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Ten seeds, all graphs at hand and backbones.")] = False,
    seeds: Annotated[str | None, typer.Option(help="Instead of the default's, as in 0-4 or 0,2,5.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for its pictures, as SVG.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the tables in LaTeX (booktabs).")] = False,
    hidden: arguments.Hidden = 512,
    oneshot_epochs: arguments.OneshotEpochs = None,
    denoise_epochs: arguments.DenoiseEpochs = None,
    jobs: arguments.Jobs = 0,
    threads: arguments.ThreadsOfEach = 1,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the runs' folders (default: as compare's).", rich_help_panel=RUN)
    ] = None,
    data_root: arguments.DataRoot = None,
    store: arguments.Store = arguments.STORE,
    engine: arguments.Engine = "local",
    ray_address: arguments.RayAddress = None,
    dry_run: arguments.DryRun = False,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
    wide: arguments.Wide = False,
) -> None:
    """Make tables and figures of the FastGLT paper again, with its numbers beside ours.

    Runs are those of compare and extreme, in the same store: what is there is not computed again, an interrupted
    command goes on. Each of our scores is tested against the published one: they agree if the whole 90 % interval
    of the difference lies within one point. Without the paper's graphs at hand it takes the bundled digits, beside
    which no published number stands.
    """
    from fastglt.studies.lists import read_seeds
    from fastglt.studies.paper import ITEMS, Scope

    if items == ["list"]:
        _list(data_root, as_json=json_output)
        return
    for name in items:
        if name not in ITEMS:
            raise unknown_name("table or figure", name, ITEMS)
    if quick and full:
        raise InputError("--quick must come without --full (got both)")
    budget = {"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs}
    settings = {
        "hidden": hidden,
        "budget": {name: value for name, value in budget.items() if value is not None},
        "threads": threads,
        "out": out,
        "data_root": data_root,
        "store": store,
        **executed_by(engine, ray_address, jobs=jobs, threads=threads, device="cpu"),
        "dry_run": dry_run,
        "progress": teller(quiet=quiet),
    }
    size = "quick" if quick else "full" if full else "normal"
    scope = Scope(size=size, seeds=() if seeds is None else read_seeds(seeds), settings=settings)
    with told_how_to_go_on(), told_dry_run(as_json=json_output):
        found = [ITEMS[name].make(scope) for name in dict.fromkeys(items)]
    _tell(found, figures=figures, latex=latex, as_json=json_output)


def _list(data_root: Path | None, *, as_json: bool) -> None:
    from fastglt.data.named import data_root as root_of
    from fastglt.studies.paper import ITEMS
    from fastglt.studies.paper.scope import SUBSTITUTE, at_hand

    rows: list[dict[str, Any]] = []
    for name, item in ITEMS.items():
        there = [graph for graph in item.graphs if at_hand(graph, root_of(data_root))]
        rows.append(
            {"id": name, "about": item.about, "graphs": list(item.graphs), "at_hand": there, "cost": item.cost}
        )
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        taken = f"at hand: {', '.join(row['at_hand'])}" if row["at_hand"] else f"none at hand, {SUBSTITUTE} instead"
        say(f"{row['id']}: {row['about']}. Needs {', '.join(row['graphs'])} ({taken}); {row['cost']}.")


def _tell(found: "list[Reproduction]", *, figures: Path | None, latex: bool, as_json: bool) -> None:
    from rich.console import Console

    for one in found:
        for number, picture in enumerate(one.pictures if figures is not None else (), 1):
            assert figures is not None
            picture.save(figures / f"{one.name}-{number}.svg")
    if as_json:
        typer.echo(json.dumps([one.document() for one in found]))
    for one in found:
        if latex and not as_json:
            typer.echo(one.latex(), nl=False)
        elif not as_json:
            one.print(Console())
    tell_failures([failure for one in found for failure in one.failures])
