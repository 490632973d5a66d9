import sqlite3
from pathlib import Path

from tests.cli.conftest import Cli
from tests.pages.stores import dense
from tests.pages.stores import store as make_store


def test_a_run_becomes_a_page(find: Cli, cli: Cli, tmp_path: Path) -> None:
    assert find("--out", tmp_path / "run").code == 0
    done = cli("report", tmp_path / "run", "--out", tmp_path / "page.html")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"1 run in '{tmp_path / 'page.html'}'\n"
    page = (tmp_path / "page.html").read_text()
    assert all(f'<section id="{name}">' in page for name in ("verdicts", "graph", "effects", "training", "cost"))


def test_without_a_place_it_is_the_store(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, [dense(0, 0.8)])
    assert cli("report", "--out", tmp_path / "page.html").out.startswith("1 run in")
    assert str(store) in (tmp_path / "page.html").read_text()


def test_a_page_is_not_written_under_another_formats_name(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, [dense(0, 0.8)])
    done = cli("report", "--out", tmp_path / "page.pdf")
    assert (done.code, done.out, list(tmp_path.glob("page.*"))) == (2, "", [])
    assert done.err.startswith("error: --out must end in .html (got '")


def test_what_cannot_be_read_is_told_on_the_page_and_in_a_line(cli: Cli, store: Path, tmp_path: Path) -> None:
    make_store(store, [dense(0, 0.8)])
    with sqlite3.connect(store) as file:
        file.execute("PRAGMA user_version = 9")
    done = cli("report", "--out", tmp_path / "page.html")
    assert done.code == 0
    assert done.err.startswith("warning: the results store must be of version 2 or before")
    assert "the results store must be of version 2 or before" in (tmp_path / "page.html").read_text()


def test_what_was_named_and_cannot_be_read_is_one_error(cli: Cli, store: Path, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n" * 20)
    make_store(store, [dense(0, 0.8)])
    page = tmp_path / "page.html"
    for places in ((tmp_path / "nope",), (tmp_path / "edges.csv",), ("--store", tmp_path / "nope.sqlite")):
        for command in (("report", *places, "--out", page), ("plot", "sparsity", *places)):
            done = cli(*command)
            assert (done.code, done.out) == (2, "")
            assert done.err.startswith("error: runs must be in a store, a folder or a ticket file (got ")
            assert f"'{places[-1]}'" in done.err
            assert (done.err.count("\n"), "--store" in done.err) == (1, False)
    assert not page.exists()
    two = cli("report", tmp_path / "nope", tmp_path / "edges.csv", "--out", page)
    assert (two.code, [line.split(":")[0] for line in two.err.splitlines()]) == (2, ["warning", "error"])
    beside = cli("report", tmp_path / "nope", store, "--out", page)
    assert (beside.code, beside.err.count("warning: ")) == (0, 1)


def test_a_store_that_nobody_has_named_and_is_not_there_is_an_empty_page(cli: Cli, tmp_path: Path) -> None:
    done = cli("report", "--out", tmp_path / "page.html")
    assert (done.code, done.err.count("which is not there")) == (0, 1)
    assert "which is not there" in (tmp_path / "page.html").read_text()


def test_a_named_store_of_a_newer_fastglt_of_which_no_row_is_known_is_refused(cli: Cli, tmp_path: Path) -> None:
    place = make_store(tmp_path / "newer.sqlite", [])
    with sqlite3.connect(place) as file:
        file.execute("PRAGMA user_version = 9")
    done = cli("report", place, "--out", tmp_path / "page.html")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "update fastglt or choose another store" in done.err
    assert not (tmp_path / "page.html").exists()
