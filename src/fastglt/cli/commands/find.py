"""`fastglt find`: from a dataset and a model to a ticket on disk."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments, preferring
from fastglt.cli.shared.arguments import HOW, RUN, WHAT
from fastglt.cli.shared.completion import complete, methods
from fastglt.cli.shared.dry_run import told_dry_run
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.judging import print_verdict
from fastglt.cli.shared.options import from_config, given, method_options
from fastglt.cli.shared.preferring import refuse_choices
from fastglt.cli.shared.series import told_how_to_go_on
from fastglt.cli.shared.setup import Setup
from fastglt.cli.shared.tables import print_metrics
from fastglt.cli.shared.torchrun import shared_out
from fastglt.errors import require
from fastglt.report.tables import say
from fastglt.system.storage import as_file_name

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared

EXAMPLES = (
    "Examples: [bold]fastglt find[/] (a ticket on the bundled digits graph) · "
    "[bold]fastglt find --dataset cora --weight-sparsity 0.95 --out runs/a[/] (a folder of your choice) · "
    "[bold]fastglt find --dataset my/edges.csv --dry-run[/] (your own graph: how long would it take?) · "
    "[bold]fastglt find --dataset cora --method forest --graph-sparsity 0.5[/] "
    "(half of the edges, by another method) · "
    "[bold]fastglt find --dataset cora --distill[/] (the dense network teaches the ticket) · "
    "[bold]fastglt evaluate runs/a[/] (afterwards: is it a winning ticket?)"
)


@gather
def find(
    context: typer.Context,
    setup: Setup,
    graph_sparsity: Annotated[
        float, typer.Option(help="Share of edges to remove, in [0, 1).", rich_help_panel=WHAT)
    ] = 0.2,
    weight_sparsity: Annotated[
        float, typer.Option(help="Share of weights to remove, in [0, 1).", rich_help_panel=WHAT)
    ] = 0.9,
    prefer: Annotated[
        str | None,
        typer.Option(
            help="Let fastglt choose: the small, fast or sparse network that is no worse than dense. Sparsities, "
            "structure and teacher are tried on validation scores, and the ticket is proved on fresh seeds.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="A name from [bold]fastglt methods[/], or module:Class of your own.",
            autocompletion=complete(methods),
            rich_help_panel=WHAT,
        ),
    ] = "fastglt",
    seed: Annotated[int, typer.Option(help="Random seed (initial weights, dropout).", rich_help_panel=WHAT)] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Any option of the method, as often as needed; [bold]fastglt methods NAME[/] lists them.",
            rich_help_panel=HOW,
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Denoise from oneshot or random masks.", rich_help_panel=HOW)
    ] = None,
    swap_fraction: Annotated[
        float | None, typer.Option(help="Share of kept elements swapped at first.", rich_help_panel=HOW)
    ] = None,
    decay: Annotated[float | None, typer.Option(help="How fast that share falls.", rich_help_panel=HOW)] = None,
    edge_score: Annotated[
        str | None,
        typer.Option(
            help="Edges of low degree or high similarity return first; or the forest rule chooses them.",
            rich_help_panel=HOW,
        ),
    ] = None,
    ramp: Annotated[
        float | None,
        typer.Option(help="Share of the intervals after which the target is reached.", rich_help_panel=HOW),
    ] = None,
    robust: Annotated[
        bool | None,
        typer.Option(
            "--robust",
            help="Of forest: edges that somebody has probably added go first ([bold]fastglt suspects[/]).",
            rich_help_panel=HOW,
        ),
    ] = None,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of this run (default: runs/ and the settings).", rich_help_panel=RUN),
    ] = None,
    checkpoint_every: arguments.CheckpointEvery = 10.0,
    store: arguments.Store = arguments.STORE,
    config: arguments.Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, how long, how much memory.", rich_help_panel=RUN)
    ] = False,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Find a ticket: search, retrain it from its initial weights, train the dense network likewise, and compare.

    With --distill the dense network comes first and teaches the ticket, which is
    compared with it and with a dense network that was taught in the same way.
    Writes ticket.safetensors, metrics.json and history.csv to the run's folder. Stopped or killed, the same
    command goes on where it was; finished, it prints the result again.
    """
    from fastglt.methods import Targets

    require("not be negative", checkpoint_every=checkpoint_every)
    setup, threads = shared_out(setup, threads, prefer=prefer, out=out)
    if prefer is not None:
        refuse_choices(context)
        run = _Run(seed=seed, threads=threads, out=out, store=store, checkpoint_every=checkpoint_every, quiet=quiet)
        _find_preferred(prefer, setup, run, dry_run=dry_run, json_output=json_output)
        return
    options = {
        "start": start,
        "swap_fraction": swap_fraction,
        "decay": decay,
        "edge_score": edge_score,
        "ramp": ramp,
        "robust": robust,
    }
    experiment = setup.experiment(
        method=method,
        options=method_options(method, option or [], beside=given(options), in_file=from_config(context)),
        targets=Targets(graph_sparsity=graph_sparsity, weight_sparsity=weight_sparsity),
        seed=seed,
        threads=threads,
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    folder = out or _default_folder(prepared)
    if dry_run:
        from fastglt.cli.shared.dry_run import describe

        describe(prepared, folder, as_json=json_output)
        return
    metrics = _run(prepared, folder, store=store, checkpoint_every=checkpoint_every, quiet=quiet)
    if not metrics:
        return
    if json_output:
        typer.echo(json.dumps(metrics))
    else:
        outside = [place for place in (experiment.model, experiment.task) if place and ":" in place]
        print_metrics(metrics, folder, use=outside)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Where and how a run is made."""

    seed: int
    threads: int
    out: Path | None
    store: Path
    checkpoint_every: float
    quiet: bool


def _find_preferred(preference: str, setup: Setup, run: _Run, *, dry_run: bool, json_output: bool) -> None:
    """Choose on validation scores, find that ticket, prove it on fresh seeds."""
    kept: dict[str, Any] = {"store": run.store, "checkpoint_every": run.checkpoint_every, "quiet": run.quiet}
    with told_how_to_go_on(), told_dry_run(as_json=json_output):
        found = preferring.choose(preference, setup, seed=run.seed, dry_run=dry_run, **kept)
    document: dict[str, Any] = found.document()
    if not run.quiet:
        preferring.tell_chosen(found, setup, seed=run.seed, threads=run.threads)
    if found.way is None or found.targets is None:
        say(preferring.nothing_found(found), err=json_output)
        if json_output:
            typer.echo(json.dumps({**document, "ticket": None, "verdict": None}))
        return
    chosen = replace(setup, structure=found.way.structure, distill=found.way.taught)
    experiment = chosen.experiment(
        method=found.way.method, options={}, targets=found.targets, seed=run.seed, threads=run.threads
    )
    experiment.use_machine()
    prepared = experiment.prepare()
    folder = run.out or _default_folder(prepared)
    metrics = _run(prepared, folder, **kept)
    where: dict[str, Any] = {"threads": run.threads, "device": setup.device, "store": run.store}
    told, verdict = preferring.prove(folder, preferring.fresh_seeds(run.seed), **where, quiet=run.quiet)
    if json_output:
        typer.echo(json.dumps({**document, "ticket": str(folder), "metrics": metrics, "verdict": told}))
        return
    print_metrics(metrics, folder)
    print_verdict(told, verdict)
    say(preferring.proof(preference, verdict))


def _run(prepared: "Prepared", out: Path, *, store: Path, checkpoint_every: float, quiet: bool) -> dict[str, Any]:
    """The metrics of a run that is finished and in the store; nothing in a process that helps another one."""
    from fastglt.cli.shared.guide import tell_graph
    from fastglt.cli.shared.progress import Reporter, stop_cleanly
    from fastglt.cli.shared.tables import check_metrics
    from fastglt.cli.shared.torchrun import help_first, run_together
    from fastglt.runs.entries import entries_of_find
    from fastglt.runs.ranked import RankedJournal
    from fastglt.runs.run_folder import RunFolder
    from fastglt.runs.store import Store
    from fastglt.system import ranks

    if not ranks.world().writes:
        return help_first(prepared)
    results = Store(store)  # whatever is wrong with it is better found now than at the end
    folder = RunFolder(out, prepared.settings, checkpoint_every=checkpoint_every, origin=prepared.origin)
    journal = RankedJournal(folder) if ranks.world().size > 1 else folder
    with journal.open() as finished:
        if finished is not None:
            check_metrics(finished, out)
            if not quiet:
                say(f"'{out}' is finished; printing its result again.", err=True)
            metrics, keep = finished, results.ensure
        else:
            if not quiet:
                tell_graph(prepared)
            with stop_cleanly(journal), Reporter(quiet=quiet) as reporter:
                prepared.warm_up()
                metrics, keep = run_together(prepared, folder, journal, reporter.after_epoch), results.record
        settings, twins = prepared.settings, prepared.twins
        for entry in entries_of_find(settings, twins, metrics, command="find", folder=out):
            keep(entry)
    return metrics


def _default_folder(prepared: "Prepared") -> Path:
    """A name that tells the run, and a digest of all settings that tells it from every other."""
    from fastglt.runs.run_folder import settings_digest

    settings = prepared.settings
    name = f"{as_file_name(prepared.dataset.name)}-{prepared.network.spec['name']}-{prepared.method.name}"
    name += f"-g{100 * settings['graph_sparsity']:g}-w{100 * settings['weight_sparsity']:g}"
    name += "-units" if "structure" in settings else ""
    name += (
        f"{'-distilled' * ('distill' in settings)}{'-inductive' * ('inductive' in settings)}-s{settings['seed']}"
    )
    return Path("runs") / f"{name}-{settings_digest(settings)}"
