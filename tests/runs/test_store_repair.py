"""Damaged stores: what is whole is told, and kept in a new one."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from fastglt import InputError, MachineError
from fastglt.runs.store import Entry, Store, key_of
from fastglt.runs.store_repair import check, repair

PAGE = 4096


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Forty runs with two kilobytes each: some pages of rows, some of their keys."""
    made = Store(tmp_path / "results.sqlite")
    for seed in range(40):
        settings = {"dataset": "cora", "seed": seed, "padding": "x" * 2000}
        made.record(
            Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics={"n": seed})
        )
    return made


def change(store: Store, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as file:
        file.execute(statement)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_sound_store_is_left_as_it_is(store: Store) -> None:
    before = files(store.path.parent)
    found = check(store.path)
    assert (found.whole, found.damaged, found.without_digest) == (list(range(1, 41)), {}, [])
    assert found.is_sound
    assert repair(store.path)[1] is None
    assert files(store.path.parent) == before


def test_what_is_whole_is_kept_with_its_numbers(store: Store) -> None:
    rows = store.rows()
    change(store, "UPDATE runs SET seed = 99 WHERE id = 7")
    change(store, "DELETE FROM runs WHERE id = 9")
    content = store.path.read_bytes()
    found, old = repair(store.path)
    assert found.damaged == {7: "its digest does not match"}
    assert old == Path(f"{store.path}.damaged-1")
    assert old.read_bytes() == content
    assert store.rows() == [row for row in rows if row["id"] not in (7, 9)]
    assert check(store.path).is_sound
    store.record(Entry(key="k", kind="ticket", command="find", settings={}, metrics={}))
    assert store.rows()[-1]["id"] == 41
    assert sorted(files(store.path.parent)) == [store.path.name, old.name]


def test_a_second_repair_keeps_the_first_ones_old_store(store: Store) -> None:
    for number in (1, 2):
        change(store, f"UPDATE runs SET seed = 99 WHERE id = {number}")
        assert repair(store.path)[1] == Path(f"{store.path}.damaged-{number}")
    assert len(store.rows()) == 38


@pytest.mark.parametrize("page", range(2, 12))
def test_a_page_of_noise_costs_what_was_on_it(store: Store, page: int) -> None:
    rows = {row["id"]: row for row in store.rows()}
    content = bytearray(store.path.read_bytes())
    assert len(content) > 12 * PAGE
    content[(page - 1) * PAGE : page * PAGE] = bytes(range(256)) * 16
    store.path.write_bytes(content)
    assert not check(store.path).is_sound
    try:
        repair(store.path)
    except InputError as error:
        assert "no row can be read" in str(error)  # noqa: PT017  # the root of the tree was on that page
        return
    kept = store.rows()
    assert kept == [rows[row["id"]] for row in kept]


def test_rows_of_before_are_kept(store: Store) -> None:
    change(store, "UPDATE runs SET digest = NULL WHERE id = 3")
    found, _ = repair(store.path)
    assert (found.without_digest, len(found.whole)) == ([3], 39)
    assert found.notes == ["rows are lost, or twice there"]
    assert len(store.rows()) == 40


def test_what_was_never_a_store_is_not_repaired(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine" * 4000)
    for look in (check, repair):
        with pytest.raises(InputError, match="must be a new file or one that fastglt wrote"):
            look(tmp_path / "notes")
        with pytest.raises(InputError, match="there is no results store to check"):
            look(tmp_path / "none")
    (tmp_path / "empty").touch()
    assert check(tmp_path / "empty").is_sound
    assert (tmp_path / "empty").stat().st_size == 0


def test_nobody_may_be_writing(store: Store) -> None:
    change(store, "UPDATE runs SET seed = 99 WHERE id = 7")
    with contextlib.closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MachineError, match="another process is writing"):
            repair(store.path)
    assert not Path(f"{store.path}.damaged-1").exists()
