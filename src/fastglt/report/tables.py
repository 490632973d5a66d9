"""Tables for people that are as wide as they need to be: a terminal wraps, nothing is cut off.

Names in them may come from anybody's files: they are shown as they stand, neither as rich's markup nor as what a
terminal obeys.
"""

import io
from collections.abc import Callable, Collection
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from fastglt.system.terminal import safe


def plain(text: object, style: str = "") -> Text:
    """A text as it stands, for rich to print."""
    return Text(safe(text), style=style)


class PlainTable(Table):
    """A table whose title and cells are shown as they stand."""

    def __init__(self, *arguments: Any, title: str | None = None, **options: Any) -> None:
        super().__init__(*arguments, title=None if title is None else plain(title), **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row; its texts mean nothing but themselves."""
        super().add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def empty_table(*headings: str, left: Collection[str] = ("method",)) -> Table:
    """A table without rows; its columns are ranged right but for some."""
    table = PlainTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(plain(heading), justify="left" if heading in left else "right", no_wrap=True)
    return table


def print_wide(title: str, table: Table, console: Console) -> None:
    """Print a table below its title, and an empty line."""
    console.print(plain(title), style="italic", highlight=False, soft_wrap=True)
    print_table(table, console)
    console.print()


def print_table(table: Table, console: Console) -> None:
    """Print a table alone."""
    wide = console.measure(table, options=console.options.update(max_width=10_000)).maximum
    before, console.width = console.width, max(console.width, wide)
    console.print(table, highlight=False)
    console.width = before


def as_plain_text(show: Callable[[Console], None]) -> str:
    """What is shown on a console as text without colours, and without the last end of line."""
    text = io.StringIO()
    show(Console(file=text, force_terminal=False, force_jupyter=False, color_system=None))
    return text.getvalue().removesuffix("\n")
