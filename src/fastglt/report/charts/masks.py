"""Charts of what masks have done: degrees and homophily before and after, cost by layer, and the graph itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastglt.report.charts.picture import Picture, Spec
from fastglt.report.charts.theme import BLUE, INK, ORANGE, PAPER, SOFT, colours

Row = Mapping[str, Any]
_SIDES = {"before": SOFT, "after": BLUE}


def degrees(rows: Sequence[Row], *, title: str) -> Picture:
    """The share of nodes with so many neighbours, before and after. Rows have degree, share, when."""
    bins = list(dict.fromkeys(row["degree"] for row in rows))
    return Picture(
        title=title,
        text="Share of nodes by their number of neighbours, before and after pruning.",
        spec={
            "height": 220,
            "data": {"values": [_told(row, f"{row['when']}, {row['degree']} neighbours") for row in rows]},
            "mark": {"type": "bar"},
            "encoding": {
                "x": {"field": "degree", "type": "nominal", "sort": bins, "title": "neighbours", "axis": _FLAT},
                "xOffset": {"field": "when", "type": "nominal", "sort": list(_SIDES)},
                "y": {"field": "share", "type": "quantitative", "title": "share of nodes, %"},
                "color": _fixed("when", _SIDES),
                "description": {"field": "about"},
            },
        },
    )


def homophily(rows: Sequence[Row], *, title: str) -> Picture:
    """The share of edges within a class. Rows have edges (all before, kept, pruned) and share."""
    names = [row["edges"] for row in rows]
    told = "; ".join(f"{row['edges']} {row['share']:.1f} %" for row in rows)
    bar = {"y": {"field": "edges", "type": "nominal", "sort": names, "title": None}}
    x = {
        "field": "share",
        "type": "quantitative",
        "title": "edges within a class, %",
        "scale": {"domain": [0, 100]},
    }
    return Picture(
        title=title,
        text=f"Edges between two nodes of one class: {told}.",
        spec={
            "height": 40 * len(names),
            "data": {"values": [_told(row, str(row["edges"])) for row in rows]},
            "layer": [
                {
                    "mark": {"type": "bar", "height": 22},
                    "encoding": {
                        **bar,
                        "x": x,
                        "color": {
                            **_fixed("edges", dict(zip(names, (SOFT, BLUE, ORANGE), strict=False))),
                            "legend": None,
                        },
                        "description": {"field": "about"},
                    },
                },
                {
                    "mark": {"type": "text", "align": "right", "dx": -5, "color": PAPER, "aria": False},
                    "encoding": {**bar, "x": x, "text": {"field": "share", "format": ".1f"}},
                },
            ],
        },
    )


def cost_by_layer(rows: Sequence[Row], *, title: str) -> Picture:
    """Multiplications of each operation, dense beside ticket. Rows have operation, side, macs (millions)."""
    names = list(dict.fromkeys(row["operation"] for row in rows))
    totals = {side: sum(row["macs"] for row in rows if row["side"] == side) for side in ("dense", "ticket")}
    values = [
        {**row, "about": f"{row['operation']}, {row['side']}: {row['macs']:,.3f} million MACs"} for row in rows
    ]
    return Picture(
        title=title,
        text=f"Million MACs by operation: {totals['dense']:,.2f} dense, {totals['ticket']:,.2f} for the ticket.",
        spec={
            "height": 46 * len(names),
            "data": {"values": values},
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "operation", "type": "nominal", "sort": names, "title": None},
                "yOffset": {"field": "side", "type": "nominal", "sort": ["dense", "ticket"]},
                "x": {"field": "macs", "type": "quantitative", "title": "million MACs"},
                "color": _fixed("side", {"dense": SOFT, "ticket": BLUE}),
                "description": {"field": "about"},
            },
        },
    )


def network_drawing(nodes: Sequence[Row], edges: Sequence[Row], *, title: str, text: str) -> Picture:
    """A graph with its kept and pruned edges.

    Nodes have x, y, group and about; edges have x, y, x2, y2 and kept. The groups of marks are named kept, pruned
    and nodes, by which a page can hide them.
    """
    groups = sorted({str(node["group"]) for node in nodes})
    hidden: Spec = {"axis": None, "scale": {"domain": [0, 1]}}
    ends = {
        "x": {"field": "x", "type": "quantitative", **hidden},
        "y": {"field": "y", "type": "quantitative", **hidden},
        "x2": {"field": "x2"},
        "y2": {"field": "y2"},
    }
    names = ["kept edge", "pruned edge"]
    look: Spec = {
        "stroke": {
            "field": "edge",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names, "range": [SOFT, ORANGE]},
            "legend": {"symbolType": "stroke"},
        },
        "strokeDash": {
            "field": "edge",
            "type": "nominal",
            "title": None,
            "scale": {"domain": names, "range": [[1, 0], [4, 3]]},
        },
    }

    def drawn(kept: bool, name: str, width: float) -> Spec:
        values = [{**edge, "edge": names[0 if kept else 1]} for edge in edges if edge["kept"] == kept]
        mark = {"type": "rule", "strokeWidth": width, "opacity": 0.8, "aria": False}
        return {"name": name, "data": {"values": values}, "mark": mark, "encoding": {**ends, **look}}

    dots: Spec = {
        "name": "nodes",
        "data": {"values": [dict(node) for node in nodes]},
        "mark": {"type": "circle", "size": 58, "opacity": 1, "stroke": PAPER, "strokeWidth": 0.8},
        "encoding": {
            "x": ends["x"],
            "y": ends["y"],
            "fill": {"field": "group", "type": "nominal", "scale": colours(groups), "legend": None},
            "description": {"field": "about"},
        },
    }
    layers = [drawn(False, "pruned", 1.4), drawn(True, "kept", 1.1), dots]
    return Picture(title=title, text=text, spec={"height": 460, "layer": layers})


_FLAT = {"labelAngle": 0, "labelColor": INK, "labelOverlap": True}


def _fixed(name: str, chosen: Mapping[str, str]) -> Spec:
    scale = {"domain": list(chosen), "range": list(chosen.values())}
    return {"field": name, "type": "nominal", "title": None, "scale": scale}


def _told(row: Row, what: str) -> dict[str, Any]:
    return {**row, "about": f"{what}: {row['share']:.1f} %"}
