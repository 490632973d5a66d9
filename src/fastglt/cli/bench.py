"""`fastglt bench`: speed and memory on this machine, against stock PyG."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.arguments import RUN, STORE, AsJson, DataRoot, Quiet, Store
from fastglt.cli.options import build_experiment, given
from fastglt.errors import InputError, require, unknown_name

if TYPE_CHECKING:
    from fastglt.bench import Note
    from fastglt.cli.tables import Columns
    from fastglt.experiment import Experiment
    from fastglt.store import Entry

app = typer.Typer(help="Measure speed and memory against stock PyG, both sides in one run.", no_args_is_help=True)

TRAIN_EXAMPLES = (
    "Examples: [bold]fastglt bench train[/] (the bundled digits graph) · "
    "[bold]fastglt bench train --datasets cora,citeseer,pubmed --models gcn,gin,gat --out train.json[/]"
)
SEARCH_EXAMPLES = (
    "Examples: [bold]fastglt bench search --datasets cora --models gcn,gat[/] · "
    "a quick look: [bold]fastglt bench search --oneshot-epochs 10 --denoise-epochs 40 --repeats 1[/]"
)

_WHAT, _HOW = "What to measure", "How to measure"

Datasets = Annotated[
    str,
    typer.Option(
        "--datasets",
        "--dataset",
        help="Names from [bold]fastglt data list[/], synthetic:nodes=…, .npz files, edges.csv; commas between.",
        rich_help_panel=_WHAT,
    ),
]
Models = Annotated[
    str, typer.Option("--models", "--model", help="gcn, gin, gat; commas between.", rich_help_panel=_WHAT)
]
GraphSparsity = Annotated[float, typer.Option(help="Share of edges to remove, in [0, 1).", rich_help_panel=_WHAT)]
WeightSparsity = Annotated[
    float, typer.Option(help="Share of weights to remove, in [0, 1).", rich_help_panel=_WHAT)
]
Hidden = Annotated[int, typer.Option(help="Width of the hidden layer.", rich_help_panel=_WHAT)]
Seed = Annotated[int, typer.Option(help="Decides Θ0 and training noise.", rich_help_panel=_WHAT)]
Directed = Annotated[
    bool, typer.Option("--directed", help="Do not symmetrise a graph from files.", rich_help_panel=_WHAT)
]
Threads = Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)]
Device = Annotated[str, typer.Option(help="cpu, cuda, or auto: cuda where there is one.", rich_help_panel=RUN)]
Out = Annotated[
    Path | None,
    typer.Option(
        help="JSON file for the rows, written after each; those it has already are not measured again.",
        rich_help_panel=RUN,
    ),
]

_MEMORY: "Columns" = {
    "ours MB": lambda row: f"{row['peak_mb_ours']:,.0f}",
    "PyG MB": lambda row: f"{row['peak_mb_pyg_edge_index']:,.0f}",
    "PyG CSR MB": lambda row: f"{row['peak_mb_pyg_csr']:,.0f}",
}
_TRAIN: "Columns" = {
    "ours ms": lambda row: f"{row['ours_ms']:,.1f}",
    "soft ms": lambda row: f"{row['soft_ms']:,.1f}",
    "hard ms": lambda row: f"{row['hard_ms']:,.1f}",
    "dense ms": lambda row: f"{row['dense_ms']:,.1f}",
    "PyG ms": lambda row: f"{row['pyg_edge_index_ms']:,.1f}",
    "PyG CSR ms": lambda row: f"{row['pyg_csr_ms']:,.1f}",
    "as fast": lambda row: f"{row['ratio_to_pyg']:,.1f}×",
    **_MEMORY,
}
_SEARCH: "Columns" = {
    "epochs": lambda row: f"{row['epochs']:,}",
    "search s": lambda row: f"{row['search_seconds']:,.1f}",
    "dense s": lambda row: f"{row['dense_seconds']:,.1f}",
    "PyG s": lambda row: f"{row['pyg_dense_seconds']:,.1f}",
    "÷ dense": lambda row: f"{row['ratio_to_dense']:.2f}",
    "÷ PyG": lambda row: f"{row['ratio_to_pyg']:.3f}",
    **_MEMORY,
}


@app.command("train", epilog=TRAIN_EXAMPLES)
def train(
    datasets: Datasets = "digits",
    models: Models = "gcn",
    graph_sparsity: GraphSparsity = 0.2,
    weight_sparsity: WeightSparsity = 0.9,
    hidden: Hidden = 512,
    seed: Seed = 0,
    directed: Directed = False,
    repeats: Annotated[int, typer.Option(help="Rounds in which each side has its turn.", rich_help_panel=_HOW)] = 5,
    threads: Threads = 0,
    device: Device = "auto",
    data_root: DataRoot = None,
    out: Out = None,
    store: Store = STORE,
    quiet: Quiet = False,
    json_output: AsJson = False,
) -> None:
    """One epoch of ours, masks on, against one of stock PyG: the same network, dropout and evaluation.

    A search trains with soft masks, then with hard ones; the mean epoch of both
    is compared with the faster of PyG's two forms of a graph, edge_index and
    CSR. Times are medians over rounds in which each side has its turn;
    compilation is not counted. Peak memory is that of a process of its own.
    """
    from fastglt.bench.train import measure

    settings = {
        "graph_sparsity": graph_sparsity,
        "weight_sparsity": weight_sparsity,
        "hidden": hidden,
        "seed": seed,
        "directed": directed,
    }
    require("be at least 1", repeats=repeats)
    experiments = _experiments(datasets, models, settings, {}, threads, device, data_root)
    _run(
        {"command": "train", "settings": {**settings, "repeats": repeats}},
        experiments,
        lambda experiment, note: measure(experiment, repeats=repeats, note=note),
        _TRAIN,
        out=out,
        store=store,
        quiet=quiet,
        json_output=json_output,
    )


@app.command("search", epilog=SEARCH_EXAMPLES)
def search(
    datasets: Datasets = "digits",
    models: Models = "gcn",
    graph_sparsity: GraphSparsity = 0.2,
    weight_sparsity: WeightSparsity = 0.9,
    hidden: Hidden = 512,
    seed: Seed = 0,
    directed: Directed = False,
    oneshot_epochs: Annotated[
        int | None, typer.Option(help="Epochs before the cut (default: the paper's).", rich_help_panel=_HOW)
    ] = None,
    denoise_epochs: Annotated[
        int | None, typer.Option(help="Epochs after the cut (default: the paper's).", rich_help_panel=_HOW)
    ] = None,
    interval: Annotated[
        int | None, typer.Option(help="Epochs between two swaps (default: the paper's).", rich_help_panel=_HOW)
    ] = None,
    repeats: Annotated[int, typer.Option(help="Whole searches to take medians of.", rich_help_panel=_HOW)] = 3,
    pyg_epochs: Annotated[
        int, typer.Option(help="Epochs of stock PyG to time during each of them.", rich_help_panel=_HOW)
    ] = 20,
    pyg_seconds: Annotated[
        float, typer.Option(help="They come in blocks, which end after so many seconds.", rich_help_panel=_HOW)
    ] = 20.0,
    threads: Threads = 0,
    device: Device = "auto",
    data_root: DataRoot = None,
    out: Out = None,
    store: Store = STORE,
    quiet: Quiet = False,
    json_output: AsJson = False,
) -> None:
    """A whole search against dense training of as many epochs: our own, and stock PyG's.

    Ratios are the search's time by the other's: below 1 the search is quicker.
    Cut, swaps and evaluation count; compilation does not. Search and dense
    training take turns of a few epochs; stock PyG's is sampled in between,
    since the whole could take hours. Peak memory is that of a process of its
    own.
    """
    from fastglt.bench.search import Sample, measure

    settings = {
        "graph_sparsity": graph_sparsity,
        "weight_sparsity": weight_sparsity,
        "hidden": hidden,
        "seed": seed,
        "directed": directed,
    }
    budget = given({"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs, "interval": interval})
    sample = Sample(epochs=pyg_epochs, seconds=pyg_seconds)
    require("be at least 1", repeats=repeats)
    effort = {"repeats": repeats, "pyg_epochs": pyg_epochs, "pyg_seconds": pyg_seconds}
    experiments = _experiments(datasets, models, settings, budget, threads, device, data_root)
    _run(
        {"command": "search", "settings": {**settings, **budget, **effort}},
        experiments,
        lambda experiment, note: measure(experiment, repeats=repeats, sample=sample, note=note),
        _SEARCH,
        out=out,
        store=store,
        quiet=quiet,
        json_output=json_output,
    )


def _run(
    about: dict[str, Any],
    experiments: "list[Experiment]",
    measure: "Callable[[Experiment, Note], dict[str, Any]]",
    columns: "Columns",
    *,
    out: Path | None,
    store: Path,
    quiet: bool,
    json_output: bool,
) -> None:
    """Measure every pair that has not been measured yet, and record and print each as soon as it is there."""
    from fastglt.bench.results import Results, machine
    from fastglt.cli.progress import Notes
    from fastglt.cli.tables import RowPrinter
    from fastglt.store import Store

    recorded = Store(store)
    threads = experiments[0].use_machine()
    results = Results(out, {"machine": machine(threads=threads, device=experiments[0].device), **about})
    for experiment in experiments:  # a mistake in the last pair is better found now than in an hour
        if results.find(experiment.dataset, experiment.model) is None:
            experiment.prepare()
    printer = RowPrinter(columns, [(experiment.dataset, experiment.model) for experiment in experiments])
    rows = []
    for experiment in experiments:
        row = results.find(experiment.dataset, experiment.model)
        keep = recorded.record if row is None else recorded.ensure
        if row is None:
            with Notes(f"{experiment.dataset} {experiment.model}", quiet=quiet) as notes:
                row = measure(experiment, notes.tell)
            results.add(row)
        keep(_entry(results.about, row, out))
        rows.append(row)
        if not json_output:
            printer.print(row)
    document = results.document(rows)
    typer.echo(json.dumps(document) if json_output else _machine_line(document["machine"]))


def _entry(about: Mapping[str, Any], row: dict[str, Any], out: Path | None) -> "Entry":
    """A row in the results store, where it is listed and never taken instead of measuring."""
    from fastglt.store import Entry, key_of

    pair, machine = {name: row[name] for name in ("dataset", "model")}, about["machine"]
    used = {name: machine[name] for name in ("threads", "device", "fastglt")}
    settings = {"bench": about["command"], **pair, **about["settings"], **used}
    place = None if out is None else str(out.absolute())
    command = f"bench {about['command']}"
    return Entry(key=key_of(settings), kind="bench", command=command, settings=settings, metrics=row, folder=place)


def _experiments(
    datasets: str,
    models: str,
    settings: dict[str, Any],
    budget: dict[str, int],
    threads: int,
    device: str,
    data_root: Path | None,
) -> "list[Experiment]":
    """Every pair of a dataset and a model."""
    machine: dict[str, Any] = {"threads": threads, "device": _device(device), "data_root": data_root}
    return [
        build_experiment(dataset=dataset, model=model, training=budget, options={}, **settings, **machine)
        for dataset in _names("datasets", datasets)
        for model in _names("models", models)
    ]


def _names(what: str, text: str) -> list[str]:
    """What stands between the commas; those within a synthetic graph's recipe belong to it.

    >>> _names("datasets", "cora, synthetic:nodes=60,edges=90,digits,cora")
    ['cora', 'synthetic:nodes=60,edges=90', 'digits']
    """
    names: list[str] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        if names and names[-1].lower().startswith("synthetic:") and re.fullmatch(r"\w+=[\d.]*", part):
            names[-1] += f",{part}"
        else:
            names.append(part)
    if not names:
        raise InputError(f"{what} must name at least one (got '{text}')")
    return list(dict.fromkeys(names))


def _device(name: str) -> str:
    import torch

    kind = name.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda"):
        raise unknown_name("device", name, ("auto", "cpu", "cuda"))
    if kind == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    return name


def _machine_line(machine: dict[str, Any]) -> str:
    threads = f"{machine['threads']} thread{'s' if machine['threads'] > 1 else ''} on {machine['cores']} cores"
    names = {"torch": "torch", "torch_geometric": "PyG", "numba": "numba", "fastglt": "fastglt"}
    versions = ", ".join(f"{name} {machine[package]}" for package, name in names.items())
    where = [machine["cpu"], threads, *([] if machine["device"] == "cpu" else [machine["device"]])]
    return f"{', '.join(where)}; {versions}"
