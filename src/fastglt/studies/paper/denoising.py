"""Figure 6: how often FastGLT swaps, and how a search goes on from a random start and from a one-shot start."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from fastglt.report.charts import Picture
from fastglt.report.charts.scores import lines as line_chart
from fastglt.studies.compare.results import deviation, mean
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction, made
from fastglt.studies.paper.scope import Answer, Ask, Scope
from fastglt.studies.paper.scores import scores_of
from fastglt.tickets.ticket import Ticket

_INTERVALS = (3, 5, 10, 20, 30, 50)
_STARTS = {"one-shot start": "fastglt", "random start": "fastglt[start=random]"}
_INTERVAL, _CONVERGENCE = "interval", "convergence"
_EVERY = 5  # epochs between two points of a curve


def fig6_asks(scope: Scope) -> list[Ask]:
    """A comparison for each interval, part of the budget; then both starts. The paper varies it with GAT."""
    (graph, *_), known = scope.graphs("citeseer"), scope.settings.get("budget", {})
    (model, *_) = scope.backbones("gat" if scope.size == "full" else "gcn", "gat", "gin")
    longest = known.get("denoise_epochs", max(_INTERVALS))
    asks = [
        Ask(
            graph=graph,
            model=model,
            methods=("fastglt",),
            edges=0.4,
            weights=0.8,
            about=_INTERVAL,
            settings={"budget": {**known, "interval": interval}},
        )
        for interval in scope.few(_INTERVALS)
        if interval <= longest
    ]
    methods = tuple(_STARTS.values())
    shared: dict[str, Any] = {"graph": graph, "model": "gcn", "about": _CONVERGENCE, "with_tickets": True}
    return [*asks, Ask(methods=methods, edges=0.3, weights=0.99, **shared)]


def fig6(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """The interval between swaps, and how searches converge from a random and from a one-shot start."""
    *by_interval, both = answers
    lines, rows = list[Line](), list[dict[str, Any]]()
    for answer in by_interval:
        interval, (cell,) = answer.ask.settings["budget"]["interval"], answer.comparison.cells()
        ours = scores_of(cell)
        lines.append(Line(what=f"{answer.at}, an interval of {interval} epochs", ours=ours))
        rows += [_band(answer.at, interval, ours)] if ours else []
    pictures = [_interval_picture(answers[0].at, rows)] if rows else []
    means = [row["mean"] for row in rows]
    if means:
        known = paper.INTERVALS.get(answers[0].ask.graph)
        value = f"{max(means) - min(means):.2f} points"
        told = "–" if known is None else f"{known:g} points"
        what = f"{answers[0].at}, most that means differ between intervals"
        lines.append(Line(what=what, value=value, paper=told, note="40 % of edges, 80 % of weights removed"))
    curves = _curves(both)
    pictures += [_curve_picture(both.at, curves)] if curves else []
    lines += _end_lines(both)
    return made("fig6", fig6, lines, [_converged(both)] if curves else [], pictures, answers)


def _band(method: str, at: float, scores: Sequence[float]) -> dict[str, Any]:
    """A point with one standard deviation on either side, in per cent."""
    middle, spread = 100 * (mean(scores) or 0.0), deviation(scores)
    low, high = (None if spread is None else middle + sign * 100 * spread for sign in (-1, 1))
    about = f"{at}: {middle:.2f} % (n = {len(scores)})"
    return {"method": method, "sparsity": at, "mean": middle, "low": low, "high": high, "about": about}


def _interval_picture(at: str, rows: Sequence[dict[str, Any]]) -> Picture:
    scale = {"type": "log", "nice": False, "zero": False}
    ticks = {"values": [row["sparsity"] for row in rows]}
    return line_chart(
        rows,
        x={"title": "epochs between swaps", "scale": scale, "axis": ticks},
        y={"title": "test accuracy, %"},
        title=f"{at}: the interval between swaps",
        text="Test accuracy at the end of the search over the epochs between swaps; bands: one standard deviation.",
    )


def _histories(both: Answer) -> dict[str, list[list[Any]]]:
    """The histories of all seeds' searches, by start."""
    found: dict[str, list[list[Any]]] = {}
    for start, method in _STARTS.items():
        rows = [row for row in both.comparison.rows if row["method"] == method and not row["reason"]]
        tickets = [Ticket.load(Path(row["folder"]) / "ticket.safetensors") for row in rows]
        found[start] = [list(ticket.history) for ticket in tickets if ticket.history]
    return {start: histories for start, histories in found.items() if histories}


def _curves(both: Answer) -> list[dict[str, Any]]:
    """Mean test scores over epochs, with bands."""
    rows = []
    for start, histories in _histories(both).items():
        for epoch in range(0, min(map(len, histories)), _EVERY):
            scores = [history[epoch].test for history in histories]
            rows += [_band(start, epoch + 1, scores)]
    return rows


def _curve_picture(at: str, rows: Sequence[dict[str, Any]]) -> Picture:
    return line_chart(
        rows,
        x={"title": "epoch of the search", "scale": {"nice": False}},
        y={"title": "test accuracy, %"},
        title=f"{at}: searches from either start",
        text="Test accuracy during searches from a one-shot and from a random start, 30 % of edges and 99 % of "
        "weights removed at the end; bands: one standard deviation. Test scores choose nothing.",
        points=False,
    )


def _end_lines(both: Answer) -> list[Line]:
    names = {method: start for start, method in _STARTS.items()}
    return [
        Line(what=f"{both.at}, {names[cell['method']]}, end of search", ours=scores_of(cell))
        for cell in both.comparison.cells()
    ]


def _converged(both: Answer) -> str:
    """After how many epochs each start's validation score is what the random start's best is."""
    histories = _histories(both)
    if len(histories) < len(_STARTS):
        return "One of the starts has no finished search."
    told = {}
    for start, found in histories.items():
        when = [
            next((record.epoch for record in history if record.val >= max(one.val for one in other)), None)
            for history, other in zip(found, histories["random start"], strict=False)
        ]
        reached = [epoch for epoch in when if epoch is not None]
        told[start] = f"{fmean(reached):.0f} epochs ({len(reached)} of {len(when)} seeds)" if reached else "never"
    return (
        "The best validation score of the search from a random start is reached "
        f"from a one-shot start after {told['one-shot start']}, from the random start itself after "
        f"{told['random start']} (the paper: a one-shot start converges faster)."
    )
