"""Tables for people that are as wide as they need to be: a terminal wraps, nothing is cut off."""

import io
from collections.abc import Callable, Collection

from rich import box
from rich.console import Console
from rich.table import Table


def empty_table(*headings: str, left: Collection[str] = ("method",)) -> Table:
    """A table without rows; its columns are ranged right but for some."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    return table


def print_wide(title: str, table: Table, console: Console) -> None:
    """Print a table below its title, and an empty line."""
    console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
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
