"""`fastglt reproduce`: the paper's tables and figures, its numbers beside ours."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import RUN
from fastglt.cli.shared.dry_run import print_plan
from fastglt.cli.shared.series import executed_by, tell_failures, teller, told_how_to_go_on
from fastglt.errors import InputError, unknown_name
from fastglt.report.tables import say
from fastglt.report.wording import duration
from fastglt.system.storage import write_atomically

if TYPE_CHECKING:
    from fastglt.studies.paper import Item, Reproduction, Scope

EXAMPLES = (
    "Examples: [bold]fastglt reproduce list[/] · [bold]fastglt reproduce table6 --quick[/] (two seeds) · "
    "[bold]fastglt reproduce fig4 --quick --seeds 0-2 --results out[/] (JSON, SVG and Markdown) · "
    "[bold]fastglt reproduce table1 --graphs cora,citeseer --models gin[/] · "
    "[bold]fastglt reproduce table8 --full[/] (all graphs and backbones)"
)


def reproduce(
    items: Annotated[
        list[str], typer.Argument(metavar="ID...", help="Names from [bold]fastglt reproduce list[/].")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, few sparsities, GCN, one graph.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Ten seeds, all graphs at hand and backbones.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Take what the store has, and train nothing.")
    ] = False,
    seeds: Annotated[str | None, typer.Option(help="Instead of the default's, as in 0-4 or 0,2,5.")] = None,
    graphs: Annotated[
        str | None,
        typer.Option(help="Instead of the first at hand: cora,citeseer, …; also where the paper has others."),
    ] = None,
    models: Annotated[str | None, typer.Option(help="Instead of GCN alone: gcn,gin,gat.")] = None,
    results: Annotated[Path | None, typer.Option(help="Folder for ID.json, ID.md and ID-1.svg, … of each.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder for its pictures alone, as SVG.")] = None,
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
    from fastglt.studies.lists import read_names, read_seeds
    from fastglt.studies.paper import ITEMS, Scope, forecast_of
    from fastglt.studies.paper.scope import BACKBONES

    if "list" in items and len(items) > 1:
        raise InputError(f"list must come alone (got {' '.join(items)}); leave the others out, or list")
    for name in items if items != ["list"] else []:
        if name not in ITEMS:
            raise unknown_name("table or figure", name, {"list", *ITEMS})
    for pair in (("quick", quick, "full", full), ("recorded", recorded, "dry-run", dry_run)):
        if pair[1] and pair[3]:
            raise InputError(f"--{pair[0]} must come without --{pair[2]} (got both)")
    budget = {"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs}
    settings = {
        "hidden": hidden,
        "budget": {name: value for name, value in budget.items() if value is not None},
        "threads": threads,
        "out": out,
        "data_root": data_root,
        "store": store,
        **executed_by(engine, ray_address, jobs=jobs, threads=threads, device="cpu"),
        "progress": teller(quiet=quiet),
    }
    scope = Scope(
        size="quick" if quick else "full" if full else "normal",
        seeds=() if seeds is None else read_seeds(seeds),
        only_graphs=() if graphs is None else _known("graph", read_names("graphs", graphs), _graph_names()),
        only_models=() if models is None else _known("backbone", read_names("models", models), BACKBONES),
        recorded_only=recorded,
        settings=settings,
    )
    if items == ["list"]:
        _list(scope, as_json=json_output)
        return
    chosen = {name: ITEMS[name] for name in items}
    for name, item in chosen.items():
        item.check(name, scope)
    if dry_run:
        print_plan(forecast_of([*chosen.values()], scope).as_dict(), as_json=json_output)
        return
    found = []
    with told_how_to_go_on():
        for item in chosen.values():  # each is written as soon as it is there
            found.append(item.make(scope))
            _write(found[-1], scope, results=results, figures=figures)
    _tell(found, scope, latex=latex, as_json=json_output)


def _graph_names() -> list[str]:
    from fastglt.studies.paper.extremes import SETS
    from fastglt.studies.paper.scope import GRAPHS

    return [*GRAPHS, *SETS]


def _known(kind: str, names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)
    return names


def _list(scope: "Scope", *, as_json: bool) -> None:
    from fastglt.studies.paper import ITEMS, cost_of, recorded_rows

    recorded, rows = recorded_rows(scope), list[dict[str, Any]]()
    for name, item in ITEMS.items():
        rows.append({"id": name, **_facts(item, scope), **asdict(cost_of(item, scope, recorded))})
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        say(f"{row['id']}: {row['about']}. {_needs(row)} {_takes(row)}")
        typer.echo()
    say("--quick, --full, --seeds, --graphs and --models change what is counted; --dry-run measures it", err=True)


def _facts(item: "Item", scope: "Scope") -> dict[str, Any]:
    from fastglt.studies.paper.scope import at_hand

    there = [graph for graph in item.graphs if at_hand(graph, scope.root)]
    taken = list(dict.fromkeys(ask.graph for ask in item.asks(scope)))
    return {"about": item.about, "graphs": list(item.graphs), "at_hand": there, "taken": taken}


def _needs(row: Mapping[str, Any]) -> str:
    missing = [graph for graph in row["graphs"] if graph not in row["at_hand"]]
    told = f" ({', '.join(missing)} not at hand)" if missing else ""
    return f"About {', '.join(row['graphs'])}{told}; takes {', '.join(row['taken'])}."


def _takes(row: Mapping[str, Any]) -> str:
    time = "" if not row["seconds"] else f", about {duration(row['seconds'])} at the pace of recorded runs"
    more = " for the first sparsities alone; more follow, as results decide" if row["hunts"] else ""
    left = f"{row['epochs']:,} epochs are left{time}" if row["epochs"] else "nothing is left"
    return f"{row['tickets']} tickets, {row['recorded']} recorded; {left}{more}."


def _write(one: "Reproduction", scope: "Scope", *, results: Path | None, figures: Path | None) -> None:
    for folder in (results, figures):
        for number, picture in enumerate(one.pictures if folder is not None else (), 1):
            picture.save((folder or Path()) / f"{one.name}-{number}.svg")
    if results is not None:
        document = json.dumps({**_origin(scope), **one.document()}, indent=1)
        write_atomically(results / f"{one.name}.json", f"{document}\n".encode())
        write_atomically(results / f"{one.name}.md", one.markdown().encode())


def _origin(scope: "Scope") -> dict[str, Any]:
    """The command that was given, without where it wrote; its seeds; what it ran on."""
    from fastglt.system import provenance

    words = ["fastglt", *sys.argv[1:]]
    for option in ("--results", "--figures", "--out", "--store", "--data-root"):
        while option in words:
            del words[(place := words.index(option)) : place + 2]
    return {
        "command": " ".join(words),
        "seeds": list(scope.all_seeds),
        "versions": provenance.versions(),
        "machine": provenance.machine(),
        "revision": provenance.revision(),
    }


def _tell(found: "list[Reproduction]", scope: "Scope", *, latex: bool, as_json: bool) -> None:
    from rich.console import Console

    if as_json:
        typer.echo(json.dumps({**_origin(scope), "results": [one.document() for one in found]}))
    for one in found:
        if latex and not as_json:
            typer.echo(one.latex(), nl=False)
        elif not as_json:
            one.print(Console())
    tell_failures([failure for one in found for failure in one.failures])
