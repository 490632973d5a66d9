import sqlite3
from pathlib import Path

from tests.cli.conftest import Cli
from tests.pages.stores import dense
from tests.pages.stores import store as make_store


def test_a_run_becomes_a_page(find: Cli, cli: Cli, tmp_path: Path) -> None:
    assert find("--out", tmp_path / "run").code == 0
    done = cli("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"1 runs in '{tmp_path / 'page.html'}'\n"
    page = (tmp_path / "page.html").read_text()
    assert all(f'<section id="{name}">' in page for name in ("verdicts", "graph", "effects", "training", "cost"))


def test_without_a_place_it_is_the_store(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, [dense(0, 0.8)])
    assert cli("report", "--out", tmp_path / "page.html").out.startswith("1 runs in")
    assert str(store) in (tmp_path / "page.html").read_text()


def test_what_cannot_be_read_is_told_on_the_page_and_in_a_line(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, [dense(0, 0.8)])
    with sqlite3.connect(store) as file:
        file.execute("PRAGMA user_version = 9")
    done = cli("report", "--out", tmp_path / "page.html")
    assert done.code == 0
    assert done.err.startswith("warning: the results store must be of version 2 or before")
    assert "the results store must be of version 2 or before" in (tmp_path / "page.html").read_text()
