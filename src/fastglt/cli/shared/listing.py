"""What `fastglt methods` and `fastglt models` share: a class told from its source, and its options as a table."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Facts = dict[str, Any]


def tell(
    facts: Facts | list[Facts],
    *,
    as_json: bool,
    print_all: Callable[[list[Facts]], None],
    print_one: Callable[[Facts], None],
) -> None:
    """What is known of one class, or of each, as JSON or for people."""
    if as_json:
        typer.echo(json.dumps(facts))
    elif isinstance(facts, list):
        print_all(facts)
    else:
        print_one(facts)


def about(kind: type, base: type) -> list[str]:
    """What the source says of a class and of those it builds on: of each file, then of the class; a text each."""
    found = []
    for part in kind.__mro__[: kind.__mro__.index(base)]:
        module = inspect.getmodule(part)
        found += [None if module is None else module.__doc__, vars(part).get("__doc__")]
    texts = (inspect.cleandoc(text) for text in found if text and not _generated(text))
    return list(dict.fromkeys(_unwrapped(part) for text in texts for part in text.split("\n\n")))


def summary(kind: type, base: type) -> str:
    """The first paragraph of a class's own docstring; without one, of the nearest that it builds on."""
    texts = (vars(part).get("__doc__") for part in kind.__mro__[: kind.__mro__.index(base)])
    own = next((text for text in texts if text and not _generated(text)), "")
    return _unwrapped(inspect.cleandoc(own).split("\n\n")[0])


def _generated(text: str) -> bool:
    """Whether a docstring is the signature that dataclasses write where there is none."""
    return "(*, " in text


def _unwrapped(paragraph: str) -> str:
    """A paragraph in one line, for a terminal of any width; lists and code stay as they are."""
    lines = paragraph.splitlines()
    return paragraph if any(line.startswith((" ", "- ", ">>>")) for line in lines) else " ".join(lines)


def print_options(console: "Console", flag: str, options: Sequence[Mapping[str, Any]]) -> None:
    """The options as a table or, where that would break words, one by one; or that there are none."""
    if not options:
        console.print("It takes no options.")
        return
    from rich.padding import Padding

    from fastglt.report.tables import PlainTable, plain

    rows = [[str(option.get(key, "–")) for key in ("name", "default", "takes", "about")] for option in options]
    table = PlainTable(title=f"{flag} NAME=VALUE", title_justify="left")
    for heading in ("name", "default", "takes"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is")
    for row in rows:
        table.add_row(*row)
    narrowest = console.measure(table, options=console.options.update(max_width=10_000)).minimum
    if narrowest <= console.width:
        console.print(table)
        return
    console.print(plain(f"{flag} NAME=VALUE", style="italic"))
    for name, default, takes, what in rows:
        console.print(plain(f"{name}: {takes} (default: {default})"))
        console.print(Padding(plain(what), (0, 0, 0, 2)))


def print_settings(
    console: "Console", title: str, headings: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Rows under headings; a terminal that is too narrow gets them stacked."""
    from fastglt.report.tables import empty_table, print_wide

    table = empty_table(*headings, left=("dataset", "model"))
    for row in rows:
        table.add_row(*(str(row.get(heading, "–")) for heading in headings))
    print_wide(title, table, console)
