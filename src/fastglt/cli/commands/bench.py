"""`fastglt bench`: speed and memory on this machine, against stock PyG."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared.arguments import RUN
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.help_text import as_lines
from fastglt.cli.shared.measuring import HOW, WHAT, Kept, Measurement, Pairs, measure_all, pair_of
from fastglt.cli.shared.options import given
from fastglt.errors import require

if TYPE_CHECKING:
    from fastglt.bench import Note
    from fastglt.bench.results import Row
    from fastglt.cli.shared.tables import Columns
    from fastglt.runs.experiment import Experiment

app = typer.Typer(help="Measure speed and memory against stock PyG, both sides in one run.", no_args_is_help=True)

TRAIN_EXAMPLES = (
    "Examples: [bold]fastglt bench train[/] (the bundled digits graph) · "
    "[bold]fastglt bench train --datasets cora,citeseer,pubmed --models gcn,gin,gat --out train.json[/]"
)
SEARCH_EXAMPLES = (
    "Examples: [bold]fastglt bench search --datasets cora --models gcn,gat[/] · "
    "a quick look: [bold]fastglt bench search --oneshot-epochs 10 --denoise-epochs 40 --repeats 1[/]"
)
INFER_EXAMPLES = (
    "Examples: [bold]fastglt bench infer runs/mine[/] (a ticket that is there) · "
    "[bold]fastglt bench infer --datasets cora,citeseer --weight-sparsity 0.95[/] (finds them first)"
)

SCALE_EXAMPLES = (
    "Examples: [bold]fastglt bench scale[/] (10^5 and 10^6 edges) · "
    "[bold]fastglt bench scale --edges 1e5,1e6,1e7 --out scale.json[/] (some minutes, 8 GB)"
)


def _count(number: int | None) -> str:
    """A number, if there is one: a model without a program has none."""
    return "–" if number is None else f"{number:,}"


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
_INFER: "Columns" = {
    "weights": lambda row: f"−{100 * row['weight_sparsity']:.4g} %",
    "edges": lambda row: f"−{100 * row['graph_sparsity']:.4g} %",
    "ticket ms": lambda row: f"{row['ticket_ms']:,.2f}",
    "p99": lambda row: f"{row['ticket_p99_ms']:,.2f}",
    "dense ms": lambda row: f"{row['dense_ms']:,.2f}",
    "compiled": lambda row: f"{row['compiled_dense_ms']:,.2f}",
    "PyG ms": lambda row: f"{row['pyg_edge_index_ms']:,.1f}",
    "PyG CSR ms": lambda row: f"{row['pyg_csr_ms']:,.1f}",
    "to dense": lambda row: f"{row['ratio_to_dense']:,.2f}×",
    "to compiled": lambda row: f"{row['ratio_to_compiled_dense']:,.2f}×",
    "in a row": lambda row: f"{row['in_a_row_ratio_to_compiled_dense']:,.2f}×",
    "to PyG": lambda row: f"{row['ratio_to_pyg']:,.1f}×",
    "units": lambda row: _count(row["live_units"]),
    "features": lambda row: _count(row["used_features"]),
    "ticket kB": lambda row: f"{row['ticket_bytes'] / 1000:,.0f}",
    "dense kB": lambda row: f"{row['dense_bytes'] / 1000:,.0f}",
    "ticket MB": lambda row: f"{row['peak_mb_ticket']:,.0f}",
    "PyG MB": lambda row: f"{row['peak_mb_pyg']:,.0f}",
}


_SCALE: "Columns" = {
    "edges": lambda row: f"{row['edges']:,}",
    "prepare s": lambda row: f"{row['prepare_seconds']:,.2f}",
    "epoch s": lambda row: f"{row['seconds_per_epoch']:,.3f}",
    "swap s": lambda row: f"{row['swap_seconds']:,.3f}",
    "CPU s": lambda row: f"{row['cpu_seconds_per_epoch']:,.3f}",
    "µs/edge": lambda row: f"{1e6 * row['cpu_seconds_per_epoch'] / row['edges']:,.2f}",
    "bytes/edge": lambda row: f"{row['bytes_per_edge']:,.0f}",
    "peak MB": lambda row: f"{row['peak_mb']:,.0f}",
}


@app.command("train", epilog=as_lines(TRAIN_EXAMPLES))
@gather
def train(
    pairs: Pairs,
    kept: Kept,
    repeats: Annotated[int, typer.Option(help="Rounds in which each side has its turn.", rich_help_panel=HOW)] = 5,
) -> None:
    """One epoch of ours, masks on, against one of stock PyG: the same network, dropout and evaluation.

    A search trains with soft masks, then with hard ones; the mean epoch of both
    is compared with the faster of PyG's two forms of a graph, edge_index and
    CSR. Times are medians over rounds in which each side has its turn;
    compilation is not counted. Peak memory is that of a process of its own.
    """
    from fastglt.bench.train import measure

    require("be at least 1", repeats=repeats)
    measurements = [
        _of_pair(experiment, partial(measure, experiment, repeats=repeats)) for experiment in pairs.experiments({})
    ]
    settings = {**pairs.settings, "repeats": repeats}
    measure_all("train", settings, measurements, _TRAIN, kept, threads=pairs.threads, device=pairs.chosen_device)


@app.command("search", epilog=as_lines(SEARCH_EXAMPLES))
@gather
def search(
    pairs: Pairs,
    kept: Kept,
    oneshot_epochs: Annotated[
        int | None, typer.Option(help="Epochs before the cut (default: the paper's).", rich_help_panel=HOW)
    ] = None,
    denoise_epochs: Annotated[
        int | None, typer.Option(help="Epochs after the cut (default: the paper's).", rich_help_panel=HOW)
    ] = None,
    interval: Annotated[
        int | None, typer.Option(help="Epochs between two swaps (default: the paper's).", rich_help_panel=HOW)
    ] = None,
    repeats: Annotated[int, typer.Option(help="Whole searches to take medians of.", rich_help_panel=HOW)] = 3,
    pyg_epochs: Annotated[
        int, typer.Option(help="Epochs of stock PyG to time during each of them.", rich_help_panel=HOW)
    ] = 20,
    pyg_seconds: Annotated[
        float, typer.Option(help="They come in blocks, which end after so many seconds.", rich_help_panel=HOW)
    ] = 20.0,
) -> None:
    """A whole search against dense training of as many epochs: our own, and stock PyG's.

    Ratios are the search's time by the other's: below 1 the search is quicker.
    Cut, swaps and evaluation count; compilation does not. Search and dense
    training take turns of a few epochs; stock PyG's is sampled in between,
    since the whole could take hours. Peak memory is that of a process of its
    own.
    """
    from fastglt.bench.search import Sample, measure

    budget = given({"oneshot_epochs": oneshot_epochs, "denoise_epochs": denoise_epochs, "interval": interval})
    sample = Sample(epochs=pyg_epochs, seconds=pyg_seconds)
    require("be at least 1", repeats=repeats)
    measurements = [
        _of_pair(experiment, partial(measure, experiment, repeats=repeats, sample=sample))
        for experiment in pairs.experiments(budget)
    ]
    effort = {"repeats": repeats, "pyg_epochs": pyg_epochs, "pyg_seconds": pyg_seconds}
    settings = {**pairs.settings, **budget, **effort}
    measure_all("search", settings, measurements, _SEARCH, kept, threads=pairs.threads, device=pairs.chosen_device)


@app.command("infer", epilog=as_lines(INFER_EXAMPLES))
@gather
def infer(
    pairs: Pairs,
    kept: Kept,
    tickets: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Ticket files, or runs' folders; without any, tickets are found first.", metavar="TICKET"
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Rounds in which each side has its turn.", rich_help_panel=HOW)] = 50,
) -> None:
    """The outputs for all nodes: a compiled ticket against our dense network and stock PyG's.

    Times are medians over rounds in which each side has its turn; compilation
    is not counted. Our dense network is timed as training evaluates it, and
    compiled as the ticket is: what pruning alone gives is the ratio to that.
    A first call finds the caches as the other sides left them; "in a row" is
    that ratio over calls that follow each other at once, as a server has them.
    Stock PyG has its faster form of a graph, edge_index or CSR. Also told:
    percentiles, the hidden units and features that are still used, the size of
    the ticket's file and of the dense network's numbers, and the peak memory of
    a process of its own.
    """
    from fastglt.cli.shared.infer import measurements_of

    require("be at least 1", repeats=repeats)
    measurements = measurements_of(pairs, tickets or [], kept, repeats=repeats)
    named = {} if not tickets else {"tickets": [str(path) for path in tickets]}
    settings = {**(named or pairs.settings), "repeats": repeats}
    measure_all("infer", settings, measurements, _INFER, kept, threads=pairs.threads, device=pairs.chosen_device)


@app.command("scale", epilog=as_lines(SCALE_EXAMPLES))
@gather
def scale(
    kept: Kept,
    edges: Annotated[
        str, typer.Option(help="How many undirected edges; comma-separated, 1e6 is a number.", rich_help_panel=WHAT)
    ] = "1e5,1e6",
    degree: Annotated[int, typer.Option(help="Edges of each node, on average.", rich_help_panel=WHAT)] = 12,
    features: Annotated[int, typer.Option(help="Node features.", rich_help_panel=WHAT)] = 128,
    hidden: Annotated[int, typer.Option(help="Width of the hidden layer.", rich_help_panel=WHAT)] = 128,
    seed: Annotated[int, typer.Option(help="Random seed of graph, split and training.", rich_help_panel=WHAT)] = 0,
    repeats: Annotated[int, typer.Option(help="Epochs of each stage to take medians of.", rich_help_panel=HOW)] = 3,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 1,
) -> None:
    """What a search costs by the size of its graph: seconds and bytes for each edge, on generated graphs.

    FastGLT with a GCN of two layers, both masks on, three fifths of the nodes to
    train on. Preparing is all before the second epoch: generating the graph,
    digests, who hears whom. Epochs are medians of the soft and of the hard
    stage, their mean; a swap is what it adds, the new graph included. Memory is
    the most that a process of its own takes, less what it has before the graph.
    Where others use the cores too, trust the seconds of the processor (cpu_… in
    the JSON).
    """
    from fastglt.bench.scale import measure, read_sizes
    from fastglt.runs.experiment import thread_count

    shape = {"degree": degree, "features": features, "hidden": hidden, "seed": seed, "repeats": repeats}
    sizes = read_sizes(edges, threads=thread_count(threads), **shape)
    measurements = [
        Measurement(what={"dataset": size.dataset, "model": "gcn"}, measure=partial(measure, size))
        for size in sizes
    ]
    measure_all("scale", shape, measurements, _SCALE, kept, threads=threads, device="cpu")


def _of_pair(experiment: "Experiment", measure: Any) -> Measurement:
    def run(note: "Note") -> "Row":
        found: Row = measure(note=note)
        return found

    return Measurement(what=pair_of(experiment.prepare()), measure=run)
