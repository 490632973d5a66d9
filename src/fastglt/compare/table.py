"""A comparison as tables for people: one for each pair of sparsities, one row for each method."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

Cell = Mapping[str, Any]
_HEADINGS = ("method", "n", "dense", "search", "isolated", "edges", "weights", "epochs", "seconds", "× dense")
_NOTE = (
    "n: seeds · dense, search (at its end), isolated (alone from Θ0): {metric} of the test nodes in %, "
    "mean ± standard deviation · epochs, seconds, × dense: of the search"
)
_FLAG = "! not exactly the count that was asked for, for all seeds"


def print_cells(document: Mapping[str, Any], console: Console) -> None:
    """A table for each pair of sparsities, and what its columns mean."""
    for pair, cells in _by_pair(document["cells"]):
        table = _empty(_HEADINGS)
        for cell in cells:
            table.add_row(*_row(cell))
        _print(f"{document['dataset']} · {document['model']} · {_removed(*pair)}", table, console)
    flagged = any("!" in part for cell in document["cells"] for part in _kept(cell))
    note = _NOTE.format(metric=(document["metric"] or "score").replace("_", " "))
    console.print(f"{note}\n{_FLAG}" if flagged else note, highlight=False, soft_wrap=True)


def print_rounds(document: Mapping[str, Any], console: Console) -> None:
    """The sparsity curves of methods that have rounds."""
    for cell in document["cells"]:
        if cell["rounds"]:
            title = f"{cell['method']} · on the way to {_removed(cell['graph_sparsity'], cell['weight_sparsity'])}"
            table = _empty(("round", "n", "edges removed", "weights removed", "search"))
            for point in cell["rounds"]:
                removed = (f"{100 * point[key]:.2f} %" for key in ("graph_sparsity", "weight_sparsity"))
                table.add_row(str(point["round"]), str(point["n"]), *removed, _score(point, "search_test"))
            _print(title, table, console)


def percent(value: float | None) -> str:
    """A score as per cent, without the sign."""
    return "–" if value is None else f"{100 * value:.2f}"


def _by_pair(cells: Sequence[Cell]) -> Iterator[tuple[tuple[float, float], list[Cell]]]:
    pairs = dict.fromkeys((cell["graph_sparsity"], cell["weight_sparsity"]) for cell in cells)
    for pair in pairs:
        yield pair, [cell for cell in cells if (cell["graph_sparsity"], cell["weight_sparsity"]) == pair]


def _row(cell: Cell) -> list[str]:
    mean, few = cell["mean"], f" (n {cell['n_dense']})" if cell["n_dense"] != cell["n"] else ""
    scores = [_score(cell, f"{run}_test") for run in ("dense", "search", "isolated")]
    costs = {"search_epochs": "{:,.0f}", "search_seconds": "{:,.1f}", "relative_time": "{:.2f}×"}
    return [
        cell["method"],
        str(cell["n"]),
        f"{scores[0]}{few}",
        *scores[1:],
        *_kept(cell),
        *("–" if mean[key] is None else text.format(mean[key]) for key, text in costs.items()),
    ]


def _score(cell: Cell, key: str) -> str:
    mean, std = cell["mean"][key], cell["std"][key]
    return percent(mean) if std is None else f"{percent(mean)} ± {percent(std)}"


def _kept(cell: Cell) -> list[str]:
    """Kept edges and weights, with a flag where a seed has not exactly the count that was asked for."""
    found = []
    for part in ("edges", "weights"):
        counts, totals = cell[f"{part}_kept"], cell[f"{part}_total"]
        several = " to ".join(dict.fromkeys(f"{count:,}" for count in (counts[0], counts[-1]))) if counts else "–"
        found.append(several + (f" of {totals[-1]:,}" if totals else "") + ("" if cell[f"{part}_exact"] else " !"))
    return found


def _removed(graph_sparsity: float, weight_sparsity: float) -> str:
    return f"{100 * graph_sparsity:g} % of edges and {100 * weight_sparsity:g} % of weights removed"


def _empty(headings: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    return table


def _print(title: str, table: Table, console: Console) -> None:
    """Print it as wide as it needs to be: a terminal wraps, nothing is cut off."""
    wide = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    before, console.width = console.width, max(console.width, wide)
    console.print(title, style="italic", highlight=False, soft_wrap=True)
    console.print(table, highlight=False)
    console.print()
    console.width = before
