"""`fastglt find`: from a dataset and a model to a ticket on disk."""

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.options import build_experiment, given, read_config
from fastglt.errors import InputError

if TYPE_CHECKING:
    from fastglt.experiment import Experiment, Prepared

EXAMPLES = (
    "Examples: [bold]fastglt find[/] (a ticket on the bundled digits graph) · "
    "[bold]fastglt find --dataset cora --model gat --weight-sparsity 0.98 --graph-sparsity 0[/] · "
    "[bold]fastglt find --dataset my/graph.npz --out runs/mine[/]"
)

_WHAT, _HOW, _LONG, _RUN = "What to prune", "The method's options", "Training", "The run"


def find(
    dataset: Annotated[
        str,
        typer.Option(
            help="A name from [bold]fastglt data list[/], synthetic:nodes=…, a .npz file or edges.csv.",
            rich_help_panel=_WHAT,
        ),
    ] = "digits",
    model: Annotated[str, typer.Option(help="gcn, gin or gat.", rich_help_panel=_WHAT)] = "gcn",
    graph_sparsity: Annotated[
        float, typer.Option(help="Share of edges to remove, in [0, 1).", rich_help_panel=_WHAT)
    ] = 0.2,
    weight_sparsity: Annotated[
        float, typer.Option(help="Share of weights to remove, in [0, 1).", rich_help_panel=_WHAT)
    ] = 0.9,
    method: Annotated[str, typer.Option(help="fastglt, oneshot or random.", rich_help_panel=_WHAT)] = "fastglt",
    seed: Annotated[int, typer.Option(help="Decides Θ0 and training noise.", rich_help_panel=_WHAT)] = 0,
    split_seed: Annotated[int, typer.Option(help="Decides a split that is not given.", rich_help_panel=_WHAT)] = 0,
    start: Annotated[
        str | None, typer.Option(help="Denoise from oneshot or random masks.", rich_help_panel=_HOW)
    ] = None,
    swap_fraction: Annotated[
        float | None, typer.Option(help="Share of kept elements swapped at first.", rich_help_panel=_HOW)
    ] = None,
    decay: Annotated[float | None, typer.Option(help="How fast that share falls.", rich_help_panel=_HOW)] = None,
    edge_score: Annotated[
        str | None, typer.Option(help="Edges of low degree or high similarity return first.", rich_help_panel=_HOW)
    ] = None,
    ramp: Annotated[
        float | None,
        typer.Option(help="Share of the intervals after which the target is reached.", rich_help_panel=_HOW),
    ] = None,
    oneshot_epochs: Annotated[
        int | None, typer.Option(help="Epochs before the cut (default: the paper's).", rich_help_panel=_LONG)
    ] = None,
    denoise_epochs: Annotated[
        int | None, typer.Option(help="Epochs after the cut (default: the paper's).", rich_help_panel=_LONG)
    ] = None,
    interval: Annotated[
        int | None, typer.Option(help="Epochs between two swaps (default: the paper's).", rich_help_panel=_LONG)
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Adam's learning rate.", rich_help_panel=_LONG)] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Of weights, not of masks.", rich_help_panel=_LONG)
    ] = None,
    hidden: Annotated[int, typer.Option(help="Width of the hidden layer.", rich_help_panel=_LONG)] = 512,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=_RUN)] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, ….", rich_help_panel=_RUN)] = "cpu",
    data_root: Annotated[
        Path | None, typer.Option(help="Folder of raw datasets.", envvar="FASTGLT_DATA", rich_help_panel=_RUN)
    ] = None,
    directed: Annotated[
        bool, typer.Option(help="Do not symmetrise a graph from files.", rich_help_panel=_RUN)
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of this run (default: runs/ and the settings).", rich_help_panel=_RUN),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints; 0: every epoch.", rich_help_panel=_RUN)
    ] = 10.0,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with any of these options.", callback=read_config, is_eager=True, rich_help_panel=_RUN
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run, how long, how much memory.", rich_help_panel=_RUN)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.", rich_help_panel=_RUN)] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="One JSON document on standard output.", rich_help_panel=_RUN)
    ] = False,
) -> None:
    """Find a ticket: search, train it in isolation, train its dense twin, and compare.

    Writes ticket.safetensors, metrics.json and history.csv to the run's folder. Stopped or killed, the same
    command goes on where it was; finished, it prints the result again.
    """
    options = {
        "start": start,
        "swap_fraction": swap_fraction,
        "decay": decay,
        "edge_score": edge_score,
        "ramp": ramp,
    }
    training = {"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs, "interval": interval}
    experiment = build_experiment(
        options=given(options),
        training=given({**training, "lr": lr, "weight_decay": weight_decay}),
        graph_sparsity=graph_sparsity,
        weight_sparsity=weight_sparsity,
        dataset=dataset,
        model=model,
        method=method,
        seed=seed,
        split_seed=split_seed,
        hidden=hidden,
        threads=threads,
        device=device,
        data_root=data_root,
        directed=directed,
    )
    if not checkpoint_every >= 0:
        raise InputError(f"checkpoint_every must not be negative (got {checkpoint_every})")
    prepared = _prepare(experiment)
    if dry_run:
        from fastglt.cli.dry_run import describe

        describe(prepared, as_json=json_output)
        return
    metrics = _run(prepared, out or _default_folder(prepared), checkpoint_every, quiet=quiet)
    if json_output:
        typer.echo(json.dumps(metrics))
    else:
        from fastglt.cli.tables import print_metrics

        print_metrics(metrics)


def _prepare(experiment: "Experiment") -> "Prepared":
    from fastglt.experiment import available_threads
    from fastglt.kernels import set_threads
    from fastglt.process import keep_freed_memory

    keep_freed_memory()
    set_threads(experiment.threads or available_threads())
    return experiment.prepare()


def _run(prepared: "Prepared", out: Path, checkpoint_every: float, *, quiet: bool) -> dict[str, Any]:
    from fastglt.cli.progress import Reporter, stop_cleanly
    from fastglt.run_folder import RunFolder

    folder = RunFolder(out, prepared.settings, checkpoint_every=checkpoint_every)
    with folder.open() as finished:
        if finished is not None:
            if not quiet:
                typer.echo(f"'{out}' is finished; printing its result again.", err=True)
            return finished
        with stop_cleanly(folder), Reporter(quiet=quiet) as reporter:
            return prepared.run(folder, reporter.after_epoch)


def _default_folder(prepared: "Prepared") -> Path:
    """A name that tells the run, and a digest of all settings that tells it from every other."""
    settings = prepared.settings
    dataset = re.sub(r"[^\w.-]", "_", prepared.dataset.name.partition(":")[0])
    name = f"{dataset}-{prepared.network.name}-{prepared.method.name}"
    name += f"-g{100 * settings['graph_sparsity']:g}-w{100 * settings['weight_sparsity']:g}-s{settings['seed']}"
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return Path("runs") / f"{name}-{digest[:8]}"
