"""Pieces of a page. Every text goes through `escape`: names may come from anybody's files."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from fastglt.pages.tables import Entry, PageTable
from fastglt.report.charts import Picture
from fastglt.report.charts.theme import DARK
from fastglt.report.notebook import text

_WIDTHS = {"wide": 820, "narrow": 340}
_DRAWING = 560  # of a graph, which grows and shrinks with the window
_NAMES = {colour: f"c{place}" for place, colour in enumerate(DARK)}  # of CSS variables
_COLOUR = re.compile("|".join(DARK))
_REFERENCE = re.compile(r'(id="|url\(#)((?:clip|gradient)[\w-]*)')
_ROLE = re.compile(r' (?:role="graphics-\w+"|aria-roledescription="[^"]*")')
_MOST_DATA = 5000  # rows that go along with a chart


def colour_rules() -> str:
    """The colours of charts as CSS variables, for light pages and for dark ones."""
    light, dark = (
        "".join(f"--{name}:{pick(colour)};" for colour, name in _NAMES.items()) for pick in (str, DARK.__getitem__)
    )
    return (
        f":root{{{light}}}@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}"
    )


def figure(picture: Picture, number: int, *, zoomable: bool = False) -> str:
    """A chart for wide and for narrow windows, with its caption, and its data and drawing to download."""
    sizes = {"wide": _DRAWING} if zoomable else _WIDTHS
    drawings = "".join(
        f'<div class="{"both" if zoomable else name}">{inline_svg(picture, f"f{number}{name}", width)}</div>'
        for name, width in sizes.items()
    )
    data = "" if zoomable else chart_csv(picture.spec)
    stored = f"<template>{escape(data)}</template>" if data else ""
    buttons = '<button type="button" data-save="svg">Save SVG</button>'
    buttons += '<button type="button" data-save="csv">Save data (CSV)</button>' if data else ""
    kind = ' class="zoomable"' if zoomable else ""
    return (
        f'<figure{kind} id="figure-{number}"><figcaption id="caption-{number}">{text(picture.title)}</figcaption>'
        f"{_ZOOM if zoomable else ''}{drawings}"
        f'<p class="soft">{text(picture.text)}</p>{stored}<p class="tools">{buttons}</p></figure>\n'
    )


def inline_svg(picture: Picture, prefix: str, width: int) -> str:
    """A drawing whose colours follow the page, and whose names are its own.

    It is one image with a description; what each of its marks stands for is shown beside the pointer.
    """
    drawn = _ROLE.sub("", picture.svg(width=width, title=False, paper=None)).replace(" aria-label=", " data-tip=")
    drawn = _COLOUR.sub(lambda match: f"var(--{_NAMES[match[0]]},{match[0]})", drawn)
    drawn = _REFERENCE.sub(lambda match: f"{match[1]}{prefix}-{match[2]}", drawn)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{text(picture.title)}. {text(picture.text)}" ', 1)


def chart_csv(spec: Mapping[str, Any]) -> str:
    """The rows behind a chart, its panels one below the other."""
    parts = [part for part in (spec, *spec.get("vconcat", ())) if part.get("data")]
    parts += [layer for part in spec.get("vconcat", ()) for layer in part.get("layer", ())[:1] if layer.get("data")]
    tables = [as_csv(part["data"]["values"][:_MOST_DATA]) for part in parts]
    return "\n".join(tables)


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows for a spreadsheet; what it would take for a formula gets an apostrophe."""
    if not rows:
        return ""
    names = [name for name in rows[0] if name != "about"]
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({name: harmless(row.get(name)) for name in names} for row in rows)
    return out.getvalue()


def harmless(value: Any) -> Any:
    """A text that no spreadsheet computes.

    >>> harmless("=1+1"), harmless("gcn"), harmless(-3)
    ("'=1+1", 'gcn', -3)
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r") else value


def table(shown: PageTable) -> str:
    """A table with headings to sort by."""
    numbers = [any(value is not None for _, value in column) for column in zip(*shown.rows, strict=True)]
    heads = "".join(
        f'<th scope="col"><button type="button" data-sort>{text(name)}</button></th>' for name in shown.headings
    )
    body = "".join(f"<tr>{''.join(map(_entry, row, numbers))}</tr>\n" for row in shown.rows)
    note = f'<p class="soft">{text(shown.note)}</p>' if shown.note else ""
    many = len(shown.rows) > 12
    find = '<label class="find">Show rows with <input type="search" data-find></label>' if many else ""
    return (
        f'<div class="table" data-name="{text(shown.name)}"><p class="tools">'
        f'<button type="button" data-save="table">Save table (CSV)</button>{find}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(shown.title)}"><table><caption>'
        f"{text(shown.title)}</caption><thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table></div>{note}</div>\n"
    )


def _entry(entry: Entry, is_number: bool) -> str:
    shown, value = entry
    kind, data = ' class="n"' if is_number else "", "" if value is None else f' data-v="{value:.10g}"'
    return f"<td{kind}{data}>{text(shown)}</td>"


_ZOOM = (
    '<p class="tools"><label><input type="checkbox" data-show="kept" checked> kept edges</label>'
    '<label><input type="checkbox" data-show="pruned" checked> pruned edges</label>'
    '<label><input type="checkbox" data-show="nodes" checked> nodes</label>'
    '<button type="button" data-zoom="0.8">Zoom in</button>'
    '<button type="button" data-zoom="1.25">Zoom out</button>'
    '<button type="button" data-zoom="0">Whole</button></p>'
)
