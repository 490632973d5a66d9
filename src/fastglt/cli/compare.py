"""`fastglt compare`: methods side by side, over seeds and sparsities."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli import arguments
from fastglt.cli.arguments import HOW, RUN, WHAT
from fastglt.cli.batch import finish, how_many
from fastglt.cli.lists import read_methods, read_options, read_pairs, read_seeds
from fastglt.cli.options import as_file_name, build_experiment, given
from fastglt.errors import require

if TYPE_CHECKING:
    from fastglt.compare import Results

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
    store: arguments.Store = arguments.STORE,
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
    finished, here or in the results store, is never computed again. A run that fails is told at the end, and
    the others are kept.
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
    from fastglt.batch import plan
    from fastglt.compare import Results

    folder = out or Path("runs") / f"compare-{as_file_name(dataset)}-{model}"
    runs = plan(experiments, folder)
    at_a_time = how_many(jobs, threads, device)
    outcomes = finish(runs, folder, at_a_time, checkpoint_every, command="compare", store=store, quiet=quiet)
    _report(Results(runs, outcomes), rounds=rounds, csv=csv, json_output=json_output)


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
