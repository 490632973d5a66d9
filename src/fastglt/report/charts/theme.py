"""One look for every chart: colours that can be told apart, in the light and in the dark, and Vega-Lite's settings.

Each colour has a partner for dark pages. Whoever shows a chart in a page replaces them by CSS variables.
"""

from typing import Any

DARK = {  # of each colour, its partner on a dark page
    "#1c2024": "#e6e8ea",  # ink
    "#59616a": "#a3abb3",  # soft ink
    "#dfe3e8": "#343a41",  # lines of a grid
    "#fefefe": "#15181b",  # paper
    "#1f5fb0": "#82b4ff",
    "#a8460b": "#f5a56c",
    "#0f6f45": "#6fd49b",
    "#8438a0": "#d6a2ea",
    "#86610a": "#e2bf4e",
    "#0b6b78": "#63d2de",
    "#a82a58": "#f78fb5",
    "#4f5b2e": "#b9c98a",
}
INK, SOFT, GRID, PAPER, *PALETTE = DARK
BLUE, ORANGE, GREEN, PURPLE = PALETTE[:4]
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "triangle-right", "triangle-left")
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config(*, paper: str | None = None) -> dict[str, Any]:
    """Vega-Lite's settings; without a paper the background shows through."""
    axis = {
        "labelColor": SOFT,
        "titleColor": INK,
        "gridColor": GRID,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
    }
    legend = {
        "orient": "top",
        "labelColor": INK,
        "titleColor": SOFT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 260,
        "symbolStrokeWidth": 2,
    }
    return {
        "background": paper,
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "header": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": 12},
        "title": {"color": INK, "fontSize": 13, "anchor": "start", "fontWeight": "bold", "offset": 8},
        "view": {"stroke": None},
        "range": {"category": PALETTE},
    }


def colours(names: list[str]) -> dict[str, Any]:
    """A scale that gives each name its colour; with more names than colours they begin again."""
    return {"domain": names, "range": [PALETTE[place % len(PALETTE)] for place in range(len(names))]}


def shapes(names: list[str]) -> dict[str, Any]:
    """A scale that gives each name its shape, so that nobody needs the colours."""
    return {"domain": names, "range": [SHAPES[place % len(SHAPES)] for place in range(len(names))]}
