"""Figures of many runs, from cells: verdicts, scores over sparsity, methods side by side, and the front.

A cell here also has the label of its method, its metric, and the mean multiplications of its tickets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastglt.report.charts import Picture, scores
from fastglt.report.wording import OUTCOMES, mean_and_deviation
from fastglt.tasks.metrics import title_of

SCORES = {"search": "end of search", "isolated": "retrained alone"}
_SIDES = {"graph_sparsity": "edges", "weight_sparsity": "weights"}
_MOST_ROWS = 24  # of a chart with a row for each cell
_MOST_PAIRS = 3  # of sparsities, at which methods are shown side by side
Cell = dict[str, Any]
Panel = tuple[str, list[Cell]]


def panels(cells: Sequence[Cell]) -> list[Panel]:
    """Cells by graph and model, with the name of both; those with the most cells first."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(f"{cell['dataset'] or 'a graph'} · {cell['model']}", []).append(cell)
    return sorted(found.items(), key=lambda panel: -len(panel[1]))


def verdicts(name: str, cells: Sequence[Cell]) -> Iterator[Picture]:
    """Ticket minus dense with its interval, for the cells that have a dense twin."""
    rows, judged = [], [cell for cell in cells if any(cell["verdicts"].values())]
    judged = sorted(
        judged, key=lambda cell: (str(cell["label"]), cell["graph_sparsity"] or 0, cell["weight_sparsity"] or 0)
    )
    for cell in judged[:_MOST_ROWS]:
        for score, title in SCORES.items():
            verdict = cell["verdicts"][score]
            if verdict is not None:
                rows.append(_verdict_row(cell, title, verdict))
    if rows:
        first = next(one for cell in judged for one in cell["verdicts"].values() if one)
        yield scores.intervals(
            rows,
            margin=100 * first["margin"],
            confidence=100 * (1 - 2 * first["level"]),
            title=f"{name}: ticket against dense",
        )


def _verdict_row(cell: Cell, title: str, verdict: Mapping[str, Any]) -> dict[str, Any]:
    low, high = (None if verdict[end] is None else 100 * verdict[end] for end in ("ci_low", "ci_high"))
    interval = "one seed, no interval" if low is None else f"{low:+.2f} to {high:+.2f}"
    about = f"{row_label(cell)}, {title}: {100 * verdict['difference']:+.2f} points ({interval}), "
    return {
        "label": row_label(cell),
        "score": title,
        "difference": 100 * verdict["difference"],
        "low": low,
        "high": high,
        "about": about + f"{OUTCOMES[verdict['outcome']]}, n = {verdict['n']}",
    }


def over_sparsity(name: str, cells: Sequence[Cell]) -> Iterator[Picture]:
    """Scores over the share of edges, and of weights, that is removed, wherever the other one stays the same."""
    for varied, fixed in (("graph_sparsity", "weight_sparsity"), ("weight_sparsity", "graph_sparsity")):
        for level in dict.fromkeys(cell[fixed] for cell in cells):
            here = [cell for cell in cells if cell[fixed] == level and cell[varied] is not None]
            several = {label for label in {c["label"] for c in here} if sum(c["label"] == label for c in here) > 1}
            if not several or level is None:
                continue
            for score, title in SCORES.items():
                rows = sorted(_points(here, score, varied), key=lambda row: row["sparsity"])
                if rows:
                    yield scores.over_sparsity(
                        rows,
                        dense=_dense(here),
                        removed=_SIDES[varied],
                        metric=f"test {_metric(here)}",
                        title=f"{name}: {title}, {100 * level:g} % of {_SIDES[fixed]} removed",
                    )


def _points(cells: Sequence[Cell], score: str, varied: str) -> list[dict[str, Any]]:
    return [
        {"method": cell["label"], "sparsity": 100 * cell[varied], **_band(cell, f"{score}_test")}
        for cell in cells
        if cell["mean"][f"{score}_test"] is not None
    ]


def _band(cell: Cell, key: str) -> dict[str, Any]:
    """A mean with one standard deviation on either side, in per cent."""
    middle, spread = cell["mean"][key], cell["std"][key]
    count = sum(run[key] is not None for run in cell["runs"])
    return {
        "mean": 100 * middle,
        "low": None if spread is None else 100 * (middle - spread),
        "high": None if spread is None else 100 * (middle + spread),
        "about": f"{row_label(cell)}: {mean_and_deviation(middle, spread)} % (n = {count})",
    }


def _dense(cells: Sequence[Cell]) -> dict[str, Any] | None:
    """The dense twins of cells that share them: those of the cell with the most."""
    known = [cell for cell in cells if cell["mean"]["dense_test"] is not None]
    return _band(max(known, key=lambda cell: cell["n"]), "dense_test") if known else None


def side_by_side(name: str, cells: Sequence[Cell]) -> Iterator[Picture]:
    """Methods at equal sparsities, where there are several."""
    pairs: dict[tuple[Any, Any], list[Cell]] = {}
    for cell in cells:
        pairs.setdefault((cell["graph_sparsity"], cell["weight_sparsity"]), []).append(cell)
    several = sorted((pair for pair in pairs.items() if len(pair[1]) > 1), key=lambda pair: -len(pair[1]))
    for (graph, weight), here in several[:_MOST_PAIRS]:
        titles = {"dense": "dense", **SCORES}
        rows = [
            {"method": cell["label"], "score": title, **_band(cell, f"{score}_test")}
            for cell in here[:_MOST_ROWS]
            for score, title in titles.items()
            if cell["mean"][f"{score}_test"] is not None
        ]
        if rows:
            title = f"{name}: {removed(graph, weight)}"
            yield scores.side_by_side(rows, metric=f"test {_metric(here)}", title=title)


def fronts(name: str, cells: Sequence[Cell]) -> Iterator[Picture]:
    """Scores over the multiplications that a ticket needs, as a share of what the dense network needs."""
    for score, title in SCORES.items():
        key, points = f"{score}_test", []
        for cell in cells:
            dense, ticket = cell["mean"]["macs_dense"], cell["mean"]["macs_ticket"]
            if cell["mean"][key] is not None and dense and ticket:
                points.append((100 * ticket / dense, cell))
        if len(points) < 3:
            continue
        best = scores.on_front([(cost, cell["mean"][key]) for cost, cell in points])
        rows = [
            {"method": cell["label"], "cost": cost, **_band(cell, key), "on_front": good}
            for (cost, cell), good in zip(points, best, strict=True)
        ]
        rows = [{**row, "about": f"{row['about']}, {row['cost']:.1f} % of the MACs"} for row in rows]
        metric = f"test {_metric(cells)}"
        yield scores.front(rows, cost="MACs", metric=metric, title=f"{name}: {title}, score against cost")


def row_label(cell: Cell) -> str:
    """A cell in a few words."""
    graph, weight = cell["graph_sparsity"], cell["weight_sparsity"]
    if graph is None or weight is None:
        return str(cell["label"])
    return f"{cell['label']}, e −{100 * graph:g} %, w −{100 * weight:g} %"


def removed(graph: float | None, weight: float | None) -> str:
    """Sparsities in words.

    >>> removed(0.2, 0.9)
    '20 % of edges and 90 % of weights removed'
    """
    if graph is None or weight is None:
        return "sparsities unknown"
    return f"{100 * graph:g} % of edges and {100 * weight:g} % of weights removed"


def _metric(cells: Sequence[Cell]) -> str:
    name = next((cell["metric"] for cell in cells if isinstance(cell["metric"], str)), "accuracy")
    return title_of(name)
