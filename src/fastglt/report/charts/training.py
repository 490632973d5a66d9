"""A search as a chart: its scores, where it cut and swapped, and what was left."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastglt.report.charts.picture import Picture, Spec
from fastglt.report.charts.theme import BLUE, GREEN, ORANGE, PURPLE, SOFT

Record = Mapping[str, Any]  # a line of a history, as `EpochRecord` has it
_CURVES = {"val": "validation", "test": "test (chooses nothing)"}
_KEPT = {"graph_sparsity": "edges", "weight_sparsity": "weights"}


def training_curves(history: Sequence[Record], *, metric: str, title: str) -> Picture:
    """Scores over epochs; below them each cut and swap, and the share of edges and weights that is kept."""
    x = {"field": "epoch", "type": "quantitative", "title": "epoch", "scale": {"nice": False}}
    marks = events(history)
    cuts = [mark for mark in marks if mark["what"] == "cut"]
    parts = [_scores(history, cuts, {**x, "title": None}, metric)]
    parts += [_events(marks, {**x, "title": None}, history)] if marks else []
    parts += [_kept(history, x)]
    last = history[-1]
    return Picture(
        title=title,
        text=f"{len(history)} epochs: {metric} on validation and test nodes; {_counted(marks)}; at the end "
        f"{100 - 100 * last['graph_sparsity']:.1f} % of edges and {100 - 100 * last['weight_sparsity']:.1f} % of "
        "weights are kept.",
        spec={
            "vconcat": parts,
            "spacing": 14,
            "resolve": {"scale": dict.fromkeys(("color", "strokeDash"), "independent")},
        },
    )


def events(history: Sequence[Record]) -> list[dict[str, Any]]:
    """Every cut (elements dropped alone) and swap (dropped and regrown), of edges and of weights.

    >>> line = {"epoch": 3, "edges_dropped": 2, "edges_grown": 2, "weights_dropped": 9, "weights_grown": 0}
    >>> [(mark["epoch"], mark["element"], mark["what"]) for mark in events([line])]
    [(3, 'edges', 'swap'), (3, 'weights', 'cut')]
    """
    found = []
    for record in history:
        for element in ("edges", "weights"):
            dropped, grown = record[f"{element}_dropped"], record[f"{element}_grown"]
            if dropped or grown:
                what = "swap" if dropped and grown else "cut" if dropped else "regrowth"
                about = f"epoch {record['epoch']}: {dropped:,} {element} dropped, {grown:,} regrown"
                found.append({"epoch": record["epoch"], "element": element, "what": what, "about": about})
    return found


def _counted(marks: Sequence[Record]) -> str:
    counts = {what: len({mark["epoch"] for mark in marks if mark["what"] == what}) for what in ("cut", "swap")}
    return " and ".join(f"{count or 'no'} {what}{'' if count == 1 else 's'}" for what, count in counts.items())


def _scores(history: Sequence[Record], cuts: Sequence[Record], x: Spec, metric: str) -> Spec:
    names = list(_CURVES.values())
    rows = [
        {"epoch": record["epoch"], "score": 100 * record[key], "on": name}
        for record in history
        for key, name in _CURVES.items()
        if record[key] == record[key]  # not NaN
    ]
    colour = {"field": "on", "type": "nominal", "title": None, "scale": {"domain": names, "range": [BLUE, GREEN]}}
    y = {"field": "score", "type": "quantitative", "title": f"{metric}, %", "scale": {"zero": False}}
    dash = {"field": "on", "type": "nominal", "scale": {"domain": names, "range": [[1, 0], [4, 2]]}, "title": None}
    line: Spec = {
        "data": {"values": rows},
        "mark": {"type": "line", "strokeWidth": 1.6},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dash},
    }
    places = sorted({mark["epoch"] for mark in cuts})
    rule: Spec = {
        "data": {"values": [{"epoch": epoch} for epoch in places]},
        "mark": {"type": "rule", "color": SOFT, "strokeDash": [2, 3], "aria": False},
        "encoding": {"x": x},
    }
    return {"height": 220, "layer": [line, *([rule] if 0 < len(places) <= 6 else [])]}


def _events(marks: Sequence[Record], x: Spec, history: Sequence[Record]) -> Spec:
    domain = [history[0]["epoch"], history[-1]["epoch"]]
    names = ["cut", "swap", "regrowth"] if any(mark["what"] == "regrowth" for mark in marks) else ["cut", "swap"]
    return {
        "height": 52,
        "data": {"values": [dict(mark) for mark in marks]},
        "mark": {"type": "tick", "thickness": 2, "height": 18},
        "encoding": {
            "x": {**x, "scale": {"nice": False, "domain": domain}},
            "y": {"field": "element", "type": "nominal", "title": None},
            "color": {
                "field": "what",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": [ORANGE, PURPLE, GREEN][: len(names)]},
            },
            "description": {"field": "about"},
        },
    }


def _kept(history: Sequence[Record], x: Spec) -> Spec:
    names = list(_KEPT.values())
    rows = [
        {"epoch": record["epoch"], "kept": 100 - 100 * record[key], "of": name}
        for record in history
        for key, name in _KEPT.items()
    ]
    return {
        "height": 110,
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2},
        "encoding": {
            "x": x,
            "y": {"field": "kept", "type": "quantitative", "title": "kept, %", "scale": {"domain": [0, 100]}},
            "color": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": [BLUE, ORANGE]},
            },
            "strokeDash": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "scale": {"domain": names, "range": [[1, 0], [6, 2]]},
            },
        },
    }
