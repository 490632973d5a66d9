import io
import sys

import pytest

from fastglt.system.terminal import safe, warn, write_anyhow

CONTROLS = [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2066", "\u2028", "\ufeff", "\ud800"]


@pytest.mark.parametrize("character", CONTROLS, ids=ascii)
def test_nothing_that_a_terminal_obeys_is_left(character: str) -> None:
    text = safe(f"a{character}[31mb")
    assert character not in text
    assert text.startswith("a\\")
    assert text.isprintable()


@pytest.mark.parametrize(
    "text", ["gcn", "Θ0 – 81.5 % ± 0.2 · −3 → …", "[bold]x[/] :smile:", "naïve 图 👩‍👩", "\\x1b"]
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert safe(text) == text


def test_a_long_text_is_cut_in_its_middle() -> None:
    text = safe("a" * 10**6 + "b")
    assert len(text) < 5000
    assert text.startswith("aaa")
    assert text.endswith("ab")


def test_a_warning_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    warn("'a\nb' is \x1b[2Jdamaged")
    assert capsys.readouterr().err == "warning: 'a\\nb' is \\x1b[2Jdamaged\n"


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("ascii", b"Theta0 - 5 +-1 ?..."),
        ("latin-1", b"Theta0 - 5 \xb11 ?..."),
        ("utf-8", "Θ0 − 5 ±1 图…".encode()),
    ],
)
def test_every_encoding_can_write(encoding: str, written: bytes) -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, encoding=encoding)
    write_anyhow(stream)
    stream.write("Θ0 − 5 ±1 图…")
    stream.flush()
    assert file.getvalue() == written


def test_a_name_that_is_no_text_can_be_written() -> None:
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, encoding="utf-8")
    write_anyhow(stream)
    stream.write("runs/\udcff")
    stream.flush()
    assert file.getvalue() == b"runs/?"


def test_other_streams_are_left_alone() -> None:
    lenient = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    write_anyhow(lenient)
    assert lenient.errors == "backslashreplace"
    write_anyhow(io.StringIO())
    assert sys.stdout is not None
