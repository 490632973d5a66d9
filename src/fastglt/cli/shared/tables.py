"""Results as tables for people: per cent here, fractions everywhere else."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console

from fastglt.cli.shared.guide import hint, outcome_lines, tell_next
from fastglt.errors import InputError
from fastglt.report import wording
from fastglt.report.picture import picture_lines
from fastglt.report.tables import PlainTable, print_table, print_text

Columns = Mapping[str, Callable[[Mapping[str, Any]], str]]  # each heading, and its cell in a row


_NUMBERS = (
    *("seed", "edges_kept", "edges_total", "weights_kept", "weights_total", "search_seconds"),
    *("macs_dense", "macs_ticket", "macs_paper_dense", "macs_paper_ticket", "dense_seconds"),
)
_SCORES = ("dense_test", "search_test", "isolated_test")


def check_metrics(metrics: Mapping[str, Any], place: object) -> None:
    """Refuse metrics from a file that are not those of a `fastglt find`: nobody knows what else was changed."""
    texts = all(isinstance(metrics.get(name), str) for name in ("dataset", "model", "method", "metric"))
    numbers = all(_is_number(metrics.get(name)) for name in _NUMBERS)
    scores = all(name in metrics and (metrics[name] is None or _is_number(metrics[name])) for name in _SCORES)
    verdicts = all(metrics.get(f"winning_{run}", "") in (True, False, None) for run in ("search", "isolated"))
    if not (texts and numbers and scores and verdicts):
        rule = "metrics.json must be as `fastglt find` wrote it"
        raise InputError(f"{rule} (got '{place}' with another); remove it to run again what it told")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def print_metrics(metrics: Mapping[str, Any], folder: Path, *, use: Sequence[str] = ()) -> None:
    """Dense against ticket; then the outcome in words, where all of it is, and what to do next.

    `use` names the classes from outside that the next command has to be told of.
    """
    twins = [twin for twin in wording.OPPONENTS if f"{twin}_test" in metrics]
    kind = f"{metrics['method']}{', distilled' * ('distill' in metrics)}"
    title = f"{metrics['dataset']} · {metrics['model']} · {kind} · seed {metrics['seed']}"
    table = PlainTable(title=title, title_justify="left", caption_justify="left")
    for name in ("", "dense", "ticket", *(twin.replace("_", " ") for twin in twins[1:])):
        table.add_column(name, justify="left" if name == "" else "right")
    from fastglt.tasks.metrics import title_of

    label = f"test {title_of(metrics['metric'])}"
    dense, *second = (percent(metrics[f"{twin}_test"]) for twin in twins)
    table.add_row(f"{label}, end of search", dense, percent(metrics["search_test"]), *second)
    table.add_row(f"{label}, retrained from initial weights", dense, percent(metrics["isolated_test"]), *second)
    if "inductive" in metrics:
        _add_hidden(table, metrics, twins)
    table.add_row("edges", f"{metrics['edges_total']:,}", _kept(metrics["edges_kept"], metrics["edges_total"]))
    table.add_row(
        "weights", f"{metrics['weights_total']:,}", _kept(metrics["weights_kept"], metrics["weights_total"])
    )
    table.add_row("MACs", millions(metrics["macs_dense"]), millions(metrics["macs_ticket"]))
    paper = (millions(metrics["macs_paper_dense"]), millions(metrics["macs_paper_ticket"]))
    table.add_row("MACs as papers count", *paper)
    trained, *more = (f"{metrics[f'{twin}_seconds']:.1f} s" for twin in twins)
    found = metrics["search_seconds"] + metrics.get("teacher_seconds", 0.0)
    table.add_row("time", trained, f"{found:.1f} s to find", *more)
    console = Console()
    print_table(table, console)
    if "edge_rule" in metrics:
        print_text(f"Edge rule: {metrics['edge_rule']}, the best of those on trial.", console)
    for line in (*picture_lines(metrics), *outcome_lines(metrics), hint(metrics)):
        if line:
            print_text(line, console)
    tell_next(metrics, folder, console, use=use)


def _add_hidden(table: PlainTable, metrics: Mapping[str, Any], twins: Sequence[str]) -> None:
    """What dense and the ticket alone score on nodes that they had never seen."""
    dense, *second = (percent(metrics[f"{twin}_new"]) for twin in twins)
    about = f"… of {metrics['new_test_nodes']:,} hidden nodes, with"
    table.add_row(f"{about} all their edges", dense, percent(metrics["isolated_new"]), *second)
    table.add_row("… with edges that the ticket's rule keeps", "", percent(metrics["isolated_new_kept"]))


def percent(value: float | None) -> str:
    """A fraction as per cent."""
    return wording.percent(value) + ("" if value is None else " %")


def millions(value: float) -> str:
    """A count in millions."""
    return f"{value / 1e6:,.1f} M"


def _kept(kept: int, total: int) -> str:
    share = f" (−{100 * (1 - kept / total):.2f} %)" if total else ""
    return f"{kept:,}{share}"


class RowPrinter:
    """A table of datasets and models that is printed row by row, as rows come in; nothing is cut off."""

    def __init__(self, columns: Columns, pairs: Sequence[tuple[str, str]]) -> None:
        self._columns: Columns = {
            "dataset": lambda row: str(row["dataset"]),
            "model": lambda row: str(row["model"]),
            **columns,
        }
        self._widths = {heading: max(len(heading), 7) for heading in self._columns}
        for heading, names in zip(("dataset", "model"), zip(*pairs, strict=True), strict=True):
            self._widths[heading] = max(len(heading), *map(len, names))
        self._console, self._begun = Console(), False
        needed = sum(width + 3 for width in self._widths.values())
        self._stacked = self._console.is_terminal and needed > self._console.width  # with its headings, each row
        if not self._stacked:
            self._console.width = max(self._console.width, needed)

    def print(self, row: Mapping[str, Any]) -> None:
        """Print a row, the first one with its headings."""
        headings = self._stacked or not self._begun
        table = PlainTable(box=box.SIMPLE_HEAD, show_header=headings, show_edge=False, pad_edge=False)
        for heading, width in self._widths.items():
            left = heading in ("dataset", "model")
            table.add_column(heading, justify="left" if left else "right", min_width=width, no_wrap=True)
        table.add_row(*(cell(row) for cell in self._columns.values()))
        if self._stacked:
            print_table(table, self._console)
        else:
            self._console.print(table, highlight=False)
        self._begun = True
