"""Tables of a page: what is shown in each cell, and the value it is sorted by."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fastglt.pages.cells import Cell, Row
from fastglt.report.wording import OUTCOMES, mean_and_deviation, percent, signed
from fastglt.studies.compare.figures import SCORES

Entry = tuple[str, float | None]  # as people read it, and the number behind it
MOST_RUNS = 2000  # rows of the table of runs


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table that can be sorted and downloaded; the first column names a row."""

    name: str  # of the file that is downloaded
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    note: str = ""


def cell_table(cells: Iterable[Cell]) -> PageTable:
    """A row for each setting, over its seeds."""
    headings = ("method", "graph", "model", "edges −%", "weights −%", "n", "dense", *SCORES.values())
    headings += ("verdict at end of search", "verdict alone", "alone − dense", "interval", "search s", "MACs %")
    return PageTable(
        name="settings",
        title="Every setting over its seeds",
        headings=headings,
        rows=[_cell_row(cell) for cell in cells],
        note="Scores on test nodes in %, mean ± standard deviation; differences and intervals in points.",
    )


def run_table(rows: Sequence[Row]) -> PageTable:
    """A row for each run, the newest first."""
    headings = ("finished (UTC)", "kind", "graph", "model", "method", "edges −%", "weights −%", "seed")
    shown = list(reversed(rows))[:MOST_RUNS]
    left = len(rows) - len(shown)
    return PageTable(
        name="runs",
        title="Every run",
        headings=(*headings, "dense", *SCORES.values(), "seconds"),
        rows=[_run_row(row) for row in shown],
        note=f"The newest {len(shown):,}; {left:,} older ones are left out, `fastglt runs` has them."
        if left
        else "",
    )


def _cell_row(cell: Cell) -> list[Entry]:
    mean, std = cell["mean"], cell["std"]
    scored = [
        (mean_and_deviation(mean[f"{s}_test"], std[f"{s}_test"]), mean[f"{s}_test"]) for s in ("dense", *SCORES)
    ]
    alone = cell["verdicts"]["isolated"]
    return [
        *(_text(cell[name]) for name in ("label", "dataset", "model")),
        *(_share(cell[name]) for name in ("graph_sparsity", "weight_sparsity")),
        (str(cell["n"]), cell["n"]),
        *scored,
        *(_outcome(cell["verdicts"][score]) for score in SCORES),
        *_difference(alone),
        _plain(mean["search_seconds"], "{:,.1f}"),
        _plain(_ratio(mean["macs_ticket"], mean["macs_dense"]), "{:.1f}"),
    ]


def _run_row(row: Row) -> list[Entry]:
    return [
        _text((row["finished"] or "")[:16].replace("T", " ") or None),
        _text(f"{row['kind']}{', distilled' * ('distill' in row['settings'])}"),
        *(_text(row[name]) for name in ("dataset", "model", "method")),
        *(_share(row[name]) for name in ("graph_sparsity", "weight_sparsity")),
        _plain(row["seed"], "{}"),
        *((percent(row[f"{score}_test"]), row[f"{score}_test"]) for score in ("dense", *SCORES)),
        _plain(row["seconds"], "{:,.1f}"),
    ]


def _difference(verdict: Any) -> list[Entry]:
    if verdict is None:
        return [_NONE, _NONE]
    low, high = verdict["ci_low"], verdict["ci_high"]
    interval = ("–", None) if low is None else (f"{signed(low)} to {signed(high)}", low)
    return [(signed(verdict["difference"]), verdict["difference"]), interval]


def _outcome(verdict: Any) -> Entry:
    return _NONE if verdict is None else (OUTCOMES[verdict["outcome"]], list(OUTCOMES).index(verdict["outcome"]))


def _text(value: Any) -> Entry:
    return ("–" if value is None else str(value)), None


def _share(value: float | None) -> Entry:
    return ("–" if value is None else f"{100 * value:g}"), value


def _plain(value: Any, form: str) -> Entry:
    return _NONE if value is None else (form.format(value), float(value))


def _ratio(part: float | None, whole: float | None) -> float | None:
    return 100 * part / whole if part is not None and whole else None


_NONE: Entry = ("–", None)
