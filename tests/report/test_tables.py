"""Tables on terminals of several widths: stacked, never cut, never wrapped within a word."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from fastglt.report import tables
from fastglt.report.tables import empty_table, print_text, print_wide, show_wide

HEADINGS = ("method", "n", "dense", "search", "retrained", "verdict", "edges", "weights", "epochs", "seconds")
ROW = (
    "fastglt",
    "5",
    "81.88 ± 0.27",
    "79.70 ± 0.44",
    "78.56 ± 0.57",
    "worse / worse",
    "4,222",
    "73,728",
    "430",
    "9.1",
)


def printed(table: Table, width: int, *, terminal: bool = True, title: str = "cora · gcn") -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=terminal, color_system=None)
    print_wide(title, table, console)
    return text.getvalue().rstrip("\n").splitlines()


def comparison() -> Table:
    table = empty_table(*HEADINGS)
    table.add_row(*ROW)
    table.add_row("random", *ROW[1:])
    return table


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_terminal_gets_every_cell_whole_and_no_line_too_long(width: int) -> None:
    lines = printed(comparison(), width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for cell in (*HEADINGS, *ROW):
        assert any(cell in line for line in lines), f"'{cell}' is not whole in\n{text}"


def test_each_part_names_its_rows() -> None:
    lines = printed(comparison(), 60)
    parts = sum(line.startswith("method") for line in lines)
    assert parts > 1
    assert (
        sum(line.startswith("fastglt") for line in lines)
        == sum(line.startswith("random") for line in lines)
        == parts
    )


def test_what_fits_is_one_table() -> None:
    assert sum(line.startswith("method") for line in printed(comparison(), 140)) == 1


def test_elsewhere_a_table_is_as_wide_as_it_needs_to_be() -> None:
    lines = printed(comparison(), 60, terminal=False)
    assert sum(line.startswith("method") for line in lines) == 1
    assert max(map(len, lines)) > 60


def test_wide_is_wide_on_a_terminal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_layout", {"wide": False})
    show_wide()
    assert sum(line.startswith("method") for line in printed(comparison(), 60)) == 1


def test_a_note_is_wrapped_between_words_on_a_terminal_alone() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    for terminal, lines in ((True, 4), (False, 1)):
        text = io.StringIO()
        print_text(words, Console(file=text, width=20, force_terminal=terminal, color_system=None))
        found = text.getvalue().rstrip("\n").splitlines()
        assert len(found) == lines
        assert " ".join(line.strip() for line in found) == words
