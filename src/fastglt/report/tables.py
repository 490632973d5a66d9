"""Tables for people: nothing is cut off, and on a terminal nothing is wrapped within a word.

A table that is wider than the terminal is stacked: its first columns stand again before those that did not fit.
Elsewhere, or if asked for, it is as wide as it needs to be.

Names in them may come from anybody's files: they are shown as they stand, neither as rich's markup nor as what a
terminal obeys.
"""

import io
from collections.abc import Callable, Collection, Sequence
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
    print_text(title, console, style="italic")
    print_table(table, console)
    console.print()


def print_text(text: str, console: Console, style: str = "") -> None:
    """Print a line; a terminal gets it wrapped between words, anything else as it is."""
    console.print(plain(text, style), highlight=False, soft_wrap=not console.is_terminal)


def say(text: str, *, err: bool = False) -> None:
    """Print a line on standard output or standard error, as `print_text` does."""
    print_text(text, Console(stderr=err))


_layout = {"wide": False}  # of this process's output


def show_wide() -> None:
    """From now on print tables as wide as they need to be, on terminals too."""
    _layout["wide"] = True


def print_table(table: Table, console: Console) -> None:
    """Print a table alone."""
    stacked = console.is_terminal and not _layout["wide"]
    for part in _stacked(table, console) if stacked else [table]:
        before, console.width = console.width, max(console.width, _width(part, console))
        console.print(part, highlight=False)
        console.width = before


def _width(table: Table, console: Console) -> int:
    return console.measure(table, options=console.options.update(max_width=10_000)).maximum


def _stacked(table: Table, console: Console) -> list[Table]:
    """A table as one or several that fit: each begins with the columns that name a row."""
    if _width(table, console) <= console.width:
        return [table]
    columns = list(range(len(table.columns)))
    named = [column for column in columns if table.columns[column].justify == "left"]
    first = named[: next((place for place, column in enumerate(named) if column != place), len(named))][:2] or [0]
    parts, chosen = list[Table](), list(first)
    for column in columns:
        if column in first:
            continue
        wider = _part(table, [*chosen, column])
        if len(chosen) > len(first) and _width(wider, console) > console.width:
            parts.append(_part(table, chosen))
            chosen = list(first)
        chosen.append(column)
    parts.append(_part(table, chosen))
    parts[0].title, parts[0].title_justify = table.title, table.title_justify
    return parts


def _part(table: Table, columns: Sequence[int]) -> Table:
    """Some columns of a table."""
    part = PlainTable(box=table.box, pad_edge=table.pad_edge, show_edge=table.show_edge)
    for column in columns:
        kept = table.columns[column]
        part.add_column(kept.header, justify=kept.justify, no_wrap=kept.no_wrap)
    cells = [list(table.columns[column].cells) for column in columns]
    for row, across in zip(table.rows, zip(*cells, strict=True), strict=True):
        part.add_row(*across, end_section=row.end_section)
    return part


def as_plain_text(show: Callable[[Console], None]) -> str:
    """What is shown on a console as text without colours, and without the last end of line."""
    text = io.StringIO()
    show(Console(file=text, force_terminal=False, force_jupyter=False, color_system=None))
    return text.getvalue().removesuffix("\n")
