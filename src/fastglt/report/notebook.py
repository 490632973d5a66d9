"""Results as HTML for notebooks: small tables. Every text is shown as it stands, whatever is in it."""

from collections.abc import Mapping, Sequence
from html import escape

from fastglt.system.terminal import safe

_CELL = "padding:2px 12px 2px 0;text-align:left;border:0"


def text(value: object) -> str:
    """A text as it stands, in HTML.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    return escape(safe(value))


def facts(title: str, values: Mapping[str, str]) -> str:
    """A title, and a line for each fact."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{text(name)}</th><td style="{_CELL}">{text(value)}</td></tr>'
        for name, value in values.items()
    )
    return f"<table><caption>{text(title)}</caption><tbody>{rows}</tbody></table>"


def grid(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A title, and a table with headings."""
    head = "".join(f'<th scope="col" style="{_CELL}">{text(name)}</th>' for name in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{text(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: str) -> str:
    return f'<td style="{_CELL}">{text(value)}</td>'
