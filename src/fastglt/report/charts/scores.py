"""Charts of scores: differences with their intervals, scores over sparsity, methods side by side, and the front.

Rows hold what people read: per cent and points.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fastglt.report.charts.picture import Picture, Spec
from fastglt.report.charts.theme import INK, ORANGE, SOFT, colours, shapes

Row = Mapping[str, Any]
_ROW_HEIGHT = 44
_OPAQUE = {"symbolOpacity": 1}
_POINT = {"filled": True, "size": 70, "opacity": 1}


def intervals(rows: Sequence[Row], *, margin: float, confidence: float, title: str) -> Picture:
    """Ticket minus dense with its interval, a row for each `label`, an offset for each `score`.

    Rows have label, score, difference, low, high (None for one seed) and about, all in points.
    """
    labels, scores = _names(rows, "label"), _names(rows, "score")
    shared = {
        "y": {"field": "label", "type": "nominal", "sort": labels, "title": None},
        "yOffset": {"field": "score", "type": "nominal", "sort": scores},
        "color": _colour("score", scores),
        "description": {"field": "about"},
    }
    count = f"{len(labels)} setting{'' if len(labels) == 1 else 's'}"
    x = {
        "type": "quantitative",
        "title": "ticket minus dense, points",
        "scale": {"domain": _domain(rows, margin)},
        "axis": {"titleAnchor": "end"},  # beside long labels a narrow chart is narrower than its title
    }
    return Picture(
        title=title,
        text=f"Ticket minus dense in points with {confidence:g} % intervals, {count}. The dashed line is "
        f"the margin, {margin:g} below dense. Intervals may go on beyond the chart.",
        spec={
            "height": max(90, _ROW_HEIGHT * len(labels)),
            "data": _data(rows),
            "layer": [
                _line_at("x", 0, [1, 0]),
                _line_at("x", -margin, [5, 4]),
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2.5, "clip": True},
                    "encoding": {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", **_POINT},
                    "encoding": {**shared, "x": {**x, "field": "difference"}, "shape": _shape("score", scores)},
                },
            ],
        },
    )


def over_sparsity(rows: Sequence[Row], *, dense: Row | None, removed: str, metric: str, title: str) -> Picture:
    """Mean scores over sparsity with a band of one standard deviation, a line for each `method`.

    Rows have method, sparsity, mean, low, high (None for one seed) and about; `dense` has mean, low and high.
    """
    text = (
        f"{metric.capitalize()} over {removed} removed for {_listed(_names(rows, 'method'))}; bands: one standard "
    )
    text += "deviation" + ("." if dense is None else f"; the grey line is dense, {dense['mean']:.2f} %.")
    x = {"title": f"{removed} removed, %", "scale": {"zero": False}}
    return lines(rows, x=x, y={"title": f"{metric}, %"}, title=title, text=text, dense=dense)


def lines(
    rows: Sequence[Row], *, x: Spec, y: Spec, title: str, text: str, dense: Row | None = None, points: bool = True
) -> Picture:
    """A line with its band for each `method`, over `sparsity` or whatever else stands in that column.

    `x` and `y` are what Vega-Lite is told of the axes besides.
    """
    methods = _names(rows, "method")
    across = {"field": "sparsity", "type": "quantitative", **x}
    up = {"type": "quantitative", "scale": {"zero": False, "nice": True}, **y}
    shared = {"x": across, "color": _colour("method", methods)}
    mean = {**up, "field": "mean"}
    shape = {"shape": _shape("method", methods), "description": {"field": "about"}}
    layers = [
        *([] if dense is None else _dense_layers(dense, up)),
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "area", "opacity": 0.16, "aria": False},
            "encoding": {**shared, "y": {**up, "field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "line", "strokeWidth": 2, "aria": False}, "encoding": {**shared, "y": mean}},
        *([{"mark": {"type": "point", **_POINT}, "encoding": {**shared, "y": mean, **shape}}] if points else []),
    ]
    return Picture(title=title, text=text, spec={"height": 280, "data": _data(rows), "layer": layers})


def side_by_side(rows: Sequence[Row], *, metric: str, title: str) -> Picture:
    """Scores of each `method` beside each other, a mark and a standard deviation for each `score`.

    Rows have method, score, mean, low, high and about.
    """
    methods, scores = _names(rows, "method"), _names(rows, "score")
    shared = {
        "y": {"field": "method", "type": "nominal", "sort": methods, "title": None},
        "yOffset": {"field": "score", "type": "nominal", "sort": scores},
        "color": _colour("score", scores),
        "description": {"field": "about"},
    }
    x = {"type": "quantitative", "title": f"{metric}, %", "scale": {"zero": False, "nice": True}}
    return Picture(
        title=title,
        text=f"{metric.capitalize()} of {_listed(methods)}: {_listed(scores)}; lines are one standard deviation.",
        spec={
            "height": max(90, 16 * len(scores) * len(methods)),
            "data": _data(rows),
            "layer": [
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2},
                    "encoding": {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", **_POINT},
                    "encoding": {**shared, "x": {**x, "field": "mean"}, "shape": _shape("score", scores)},
                },
            ],
        },
    )


def front(rows: Sequence[Row], *, cost: str, metric: str, title: str) -> Picture:
    """Scores over cost, each ticket's mean a point, with the line of those that nobody beats in both.

    Rows have method, cost (per cent of dense), mean, on_front and about.
    """
    methods = _names(rows, "method")
    encoding = {
        "x": {"field": "cost", "type": "quantitative", "title": f"{cost}, % of dense", "scale": {"type": "log"}},
        "y": {"field": "mean", "type": "quantitative", "title": f"{metric}, %", "scale": {"zero": False}},
    }
    best = [row["method"] for row in sorted(rows, key=lambda row: float(row["cost"])) if row["on_front"]]
    return Picture(
        title=title,
        text=f"{metric.capitalize()} over {cost}. On the front, cheapest first: {_listed(_once(best))}.",
        spec={
            "height": 280,
            "data": _data(rows),
            "layer": [
                {
                    "transform": [{"filter": "datum.on_front"}],
                    "mark": {"type": "line", "color": SOFT, "strokeDash": [4, 3], "aria": False},
                    "encoding": encoding,
                },
                {
                    "mark": {"type": "point", **_POINT},
                    "encoding": {
                        **encoding,
                        "color": _colour("method", methods),
                        "shape": _shape("method", methods),
                        "description": {"field": "about"},
                    },
                },
            ],
        },
    )


def on_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Which points, (cost, score), no other beats: none is as cheap and better, or cheaper and as good.

    >>> on_front([(1.0, 80.0), (2.0, 79.0), (2.0, 82.0), (1.0, 80.0)])
    [True, False, True, True]
    """
    return [
        not any(c <= cost and s >= score and (c, s) != (cost, score) for c, s in points) for cost, score in points
    ]


def _dense_layers(dense: Row, y: Spec) -> list[Spec]:
    band = (
        []
        if dense["low"] is None
        else [
            {
                "data": {"values": [{"low": dense["low"], "high": dense["high"]}]},
                "mark": {"type": "rect", "color": SOFT, "opacity": 0.14, "aria": False},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            }
        ]
    )
    line = {
        "data": {"values": [{"mean": dense["mean"], "about": f"dense {dense['mean']:.2f} %"}]},
        "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5, "strokeDash": [2, 2]},
        "encoding": {"y": {**y, "field": "mean"}, "description": {"field": "about"}},
    }
    return [*band, line]


def _line_at(axis: str, place: float, dash: list[int]) -> Spec:
    return {
        "data": {"values": [{"at": place}]},
        "mark": {"type": "rule", "color": ORANGE if place else SOFT, "strokeDash": dash, "aria": False},
        "encoding": {axis: {"field": "at", "type": "quantitative"}},
    }


def _colour(name: str, names: list[str]) -> Spec:
    return {"field": name, "type": "nominal", "scale": colours(names), "title": None, "legend": _OPAQUE}


def _shape(name: str, names: list[str]) -> Spec:
    return {"field": name, "type": "nominal", "scale": shapes(names), "title": None, "legend": _OPAQUE}


def _data(rows: Sequence[Row]) -> Spec:
    return {"values": [dict(row) for row in rows]}


def _domain(rows: Sequence[Row], margin: float) -> list[float]:
    """From the lowest to the highest difference, with the margin; wide intervals are cut off, not followed."""
    found = [float(row["difference"]) for row in rows]
    room = max(2 * margin, 0.25 * (max(found) - min(found)))
    lows = [max(float(row["low"]), min(found) - room) for row in rows if row["low"] is not None]
    highs = [min(float(row["high"]), max(found) + room) for row in rows if row["high"] is not None]
    return [min(*found, *lows, -1.5 * margin), max(*found, *highs, 0.5 * margin)]


def _once(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _names(rows: Sequence[Row], key: str) -> list[str]:
    return list(dict.fromkeys(str(row[key]) for row in rows))


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence.

    >>> _listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
