"""`fastglt compare`: methods side by side, over seeds and sparsities."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli import arguments
from fastglt.cli.arguments import RUN, WHAT
from fastglt.cli.batch import Batch, how_many, tell_failures
from fastglt.cli.lists import read_methods, read_options, read_pairs, read_seeds
from fastglt.cli.options import as_file_name, build_experiment, given

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
    methods: arguments.Methods = "fastglt,oneshot,random",
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
    option: arguments.MethodOptions = None,
    oneshot_epochs: arguments.OneshotEpochs = None,
    denoise_epochs: arguments.DenoiseEpochs = None,
    interval: arguments.Interval = None,
    lr: arguments.LearningRate = None,
    weight_decay: arguments.WeightDecay = None,
    hidden: arguments.Hidden = 512,
    jobs: arguments.Jobs = 0,
    threads: arguments.ThreadsOfEach = 1,
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
    batch = Batch(
        command="compare",
        out=out or Path("runs") / f"compare-{as_file_name(dataset)}-{model}",
        store=store,
        jobs=how_many(jobs, threads, device),
        checkpoint_every=checkpoint_every,
        quiet=quiet,
    )
    _report(batch.results(experiments), rounds=rounds, csv=csv, json_output=json_output)


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
    tell_failures(document["failures"])
