"""`fastglt compare`: methods side by side, over seeds and sparsities."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli import arguments
from fastglt.cli.arguments import HOW, RUN, WHAT
from fastglt.cli.lists import read_methods, read_options, read_pairs, read_seeds
from fastglt.cli.options import as_file_name, build_experiment, given
from fastglt.errors import FastGLTError, require

if TYPE_CHECKING:
    from fastglt.compare import Outcome, Results, Run

EXAMPLES = (
    "Examples: [bold]fastglt compare --methods fastglt,oneshot,random --seeds 0-2[/] (the bundled digits graph) · "
    "[bold]fastglt compare --dataset cora --model gcn --methods all --graph-sparsity 0.2,0.05 "
    "--weight-sparsity 0.9,0.95 --jobs 4 --csv cora.csv[/]"
)


def compare(
    dataset: arguments.Dataset = "digits",
    model: arguments.Model = "gcn",
    methods: Annotated[
        str,
        typer.Option(
            help="Names from [bold]fastglt methods[/] or module:Class of your own, commas between; or all.",
            rich_help_panel=WHAT,
        ),
    ] = "fastglt,oneshot,random",
    graph_sparsity: Annotated[
        str, typer.Option(help="Shares of edges to remove, commas between.", rich_help_panel=WHAT)
    ] = "0.2",
    weight_sparsity: Annotated[
        str,
        typer.Option(
            help="Shares of weights to remove, paired with those of edges; one alone goes with all.",
            rich_help_panel=WHAT,
        ),
    ] = "0.9",
    seeds: Annotated[str, typer.Option(help="As in 0-4 or 0,2,5.", rich_help_panel=WHAT)] = "0-4",
    split_seed: arguments.SplitSeed = 0,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD.NAME=VALUE",
            help="An option of one of the methods, as often as needed; [bold]fastglt methods METHOD[/] lists them.",
            rich_help_panel=HOW,
        ),
    ] = None,
    oneshot_epochs: arguments.OneshotEpochs = None,
    denoise_epochs: arguments.DenoiseEpochs = None,
    interval: arguments.Interval = None,
    lr: arguments.LearningRate = None,
    weight_decay: arguments.WeightDecay = None,
    hidden: arguments.Hidden = 512,
    jobs: Annotated[
        int, typer.Option(help="Runs at a time; 0: as many as cores allow, or one on a GPU.", rich_help_panel=RUN)
    ] = 0,
    threads: Annotated[int, typer.Option(help="Of each run; 0: all cores.", rich_help_panel=RUN)] = 1,
    device: arguments.Device = "cpu",
    data_root: arguments.DataRoot = None,
    directed: arguments.Directed = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the runs' folders (default: runs/compare- and dataset and model).", rich_help_panel=RUN
        ),
    ] = None,
    checkpoint_every: arguments.CheckpointEvery = 10.0,
    config: arguments.Config = None,
    rounds: Annotated[
        bool,
        typer.Option(
            "--rounds", help="Print the sparsity curves of methods that have rounds.", rich_help_panel=RUN
        ),
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="File for a table of all runs.", rich_help_panel=RUN)] = None,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Compare methods: the same graph, model, seeds and sparsities, mean and deviation over seeds.

    Every ticket is found and trained in isolation in a process and a folder of its own; the dense network of a
    seed is trained once, for all methods. Stopped or killed, the same command goes on where it was; what is
    finished is never computed again. A run that fails is told at the end, and the others are kept.
    """
    require("not be negative", checkpoint_every=checkpoint_every)
    training = {"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs, "interval": interval}
    options = read_options(read_methods(methods), option or [])
    experiments = [
        build_experiment(
            method=method,
            options=chosen,
            seed=seed,
            graph_sparsity=graph,
            weight_sparsity=weight,
            training=given({**training, "lr": lr, "weight_decay": weight_decay}),
            dataset=dataset,
            model=model,
            split_seed=split_seed,
            hidden=hidden,
            threads=threads,
            device=device,
            data_root=data_root,
            directed=directed,
        )
        for seed in read_seeds(seeds)
        for graph, weight in read_pairs(graph_sparsity, weight_sparsity)
        for method, chosen in options.items()
    ]
    from fastglt.compare import Results, plan

    folder = out or Path("runs") / f"compare-{as_file_name(dataset)}-{model}"
    runs = plan(experiments, folder)
    outcomes = _run(runs, folder, _jobs(jobs, threads, device), checkpoint_every, quiet=quiet)
    _report(Results(runs, outcomes), rounds=rounds, csv=csv, json_output=json_output)


def _run(runs: "list[Run]", out: Path, jobs: int, checkpoint_every: float, *, quiet: bool) -> "list[Outcome]":
    """Run what is not finished yet, and tell of each run as it ends."""
    from fastglt.cli.progress import stop_cleanly
    from fastglt.compare import Workers

    outcomes = _finished(runs)
    done = {outcome.run.folder for outcome in outcomes}
    left = [run for run in runs if run.folder not in done]
    if outcomes and not quiet:
        typer.echo(f"{len(outcomes)} of {len(runs)} runs are finished already", err=True)
    if left and not quiet:
        typer.echo(f"{len(left)} runs, {min(jobs, len(left))} at a time, in '{out}'", err=True)
    workers = Workers(jobs, logs=out / "logs", checkpoint_every=checkpoint_every)
    with stop_cleanly(workers):
        for outcome in workers.run(left):
            outcomes.append(outcome)
            if not quiet:
                typer.echo(f"{_line(outcome)}; {len(runs) - len(outcomes)} left", err=True)
    return outcomes


def _finished(runs: "list[Run]") -> "list[Outcome]":
    from fastglt.compare import Outcome

    found = []
    for run in runs:
        with contextlib.suppress(FastGLTError):  # its process will say what is wrong with the folder
            metrics = run.result()
            if metrics is not None:
                found.append(Outcome(run=run, metrics=metrics))
    return found


def _line(outcome: "Outcome") -> str:
    from fastglt.compare.table import percent

    run, metrics = outcome.run, outcome.metrics
    if metrics is None:
        return f"{run.name}: failed: {outcome.reason}"
    phases = ("dense",) if run.is_dense else ("search", "isolated")
    scores = ", ".join(f"{phase} {percent(metrics[f'{phase}_test'])} %" for phase in phases)
    return f"{run.name}: {scores}, {sum(metrics[f'{phase}_seconds'] for phase in phases):.1f} s"


def _report(results: "Results", *, rounds: bool, csv: Path | None, json_output: bool) -> None:
    from fastglt.storage import write_atomically

    document = results.document()
    if csv is not None:
        write_atomically(csv, results.csv().encode())
    if json_output:
        typer.echo(json.dumps(document))
    else:
        from rich.console import Console

        from fastglt.compare.table import print_cells, print_rounds

        console = Console()
        print_cells(document, console)
        if rounds:
            print_rounds(document, console)
    if document["failures"]:
        for failure in document["failures"]:
            typer.echo(f"failed: {failure['run']}: {failure['reason']}", err=True)
        typer.echo("the same command tries again what failed, and nothing else", err=True)
        raise typer.Exit(1)


def _jobs(jobs: int, threads: int, device: str) -> int:
    from fastglt.experiment import available_threads

    require("not be negative", jobs=jobs)
    cores = available_threads()
    return jobs or (max(1, cores // (threads or cores)) if device == "cpu" else 1)
