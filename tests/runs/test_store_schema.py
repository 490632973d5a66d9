"""What makes a row of the results store whole, and how stores of before are read."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastglt import InputError
from fastglt.runs.store import Entry, Store, key_of
from fastglt.runs.store_schema import COLUMNS, digest_of, read_row


def entry(seed: int, **metrics: Any) -> Entry:
    settings = {"dataset": "cora", "model": {"name": "gcn"}, "method": "ugs", "seed": seed, "graph_sparsity": 0.25}
    given = {"search_test": 0.75, "search_seconds": 2.5, **metrics}
    return Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics=given, folder="/a")


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any SQLite program sees it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        yield file


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "results.sqlite")
    for seed in range(4):
        made.record(entry(seed))
    return made


def of_version_1(path: Path) -> Path:
    """A store as fastglt 0.1 has made it, with one run."""
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    values = (1, entry(0).key, "ticket", "find", "2026-01-31T00:00:00+00:00", "cora", "gcn", "ugs", 0, 0.25, None)
    parts = (None, 0.75, None, 2.5, '{"seed": 0}', '{"search_test": 0.75}', "{}", "{}", None, "/a", None)
    with raw(path) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"CREATE TABLE runs ({columns})")
        file.execute("CREATE INDEX runs_by_key ON runs (key)")
        file.execute("PRAGMA application_id = 0x676C7431")
        file.execute("PRAGMA user_version = 1")
        file.execute(f"INSERT INTO runs VALUES ({', '.join('?' * 22)})", (*values, *parts))
    return path


CHANGES = {
    "a score": "UPDATE runs SET search_test = 0.76 WHERE id = 2",
    "a text": "UPDATE runs SET dataset = 'corb' WHERE id = 2",
    "a part": "UPDATE runs SET metrics = replace(metrics, '0.75', '0.95') WHERE id = 2",
    "an id": "UPDATE runs SET id = 9 WHERE id = 2",
    "its digest": "UPDATE runs SET digest = 'x' WHERE id = 2",
    "bytes that are no text": "UPDATE runs SET method = CAST(x'ff41' AS TEXT) WHERE id = 2",
    "bytes instead of a text": "UPDATE runs SET kind = x'00' WHERE id = 2",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_row_is_noticed(store: Store, change: str) -> None:
    with raw(store.path) as file:
        file.execute(change)
    for look in (store.rows, lambda: store.find(entry(1).key)):
        with pytest.raises(
            InputError, match=r"is damaged \(row \d: its digest does not match\); `fastglt runs --ch"
        ):
            look()
    assert store.find(entry(0).key) is not None, "the others are whole"


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM runs WHERE id = 2",
        "UPDATE runs SET digest = NULL WHERE id = 2",
        "DELETE FROM whole",
        "UPDATE whole SET digest = 'x'",
        "INSERT INTO whole SELECT * FROM whole",
    ],
)
def test_a_lost_row_is_noticed(store: Store, change: str) -> None:
    with raw(store.path) as file:
        file.execute(change)
    with pytest.raises(InputError, match=r"is damaged \(rows are lost, or twice there\)"):
        store.rows()


@pytest.mark.parametrize("change", ["DELETE FROM whole", "UPDATE whole SET digest = 'x'"])
def test_nothing_is_added_to_what_cannot_be_told_whole(store: Store, change: str) -> None:
    with raw(store.path) as file:
        file.execute(change)
    with pytest.raises(InputError, match="the digest of all rows is damaged"):
        store.record(entry(9))


def test_a_digest_of_all_rows_that_damage_has_made_null_is_noticed(store: Store) -> None:
    with raw(store.path) as file:
        (whole,) = file.execute("SELECT digest FROM whole").fetchone()
    content = store.path.read_bytes()
    text_of_64 = b"\x81\x0d" + whole.encode()
    assert text_of_64 in content
    store.path.write_bytes(content.replace(text_of_64, b"\x00\x0d" + whole.encode()))
    with raw(store.path) as file:
        assert file.execute("SELECT digest FROM whole").fetchone() == (None,)
    with pytest.raises(InputError, match="rows are lost, or twice there"):
        store.rows()


def test_an_index_that_leads_to_another_run_is_noticed(store: Store) -> None:
    """The number of a row stands behind its key in the index, which SQLite takes at its word."""
    key = entry(2).key.encode()
    content = bytearray(store.path.read_bytes())
    content[content.index(key + b"\x03") + len(key)] = 2
    store.path.write_bytes(content)
    with pytest.raises(InputError, match="row 2: its digest does not match"):
        store.find(entry(2).key)


def test_other_tables_are_no_store(store: Store) -> None:
    for change in (
        "CREATE TRIGGER later AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
        "ALTER TABLE runs RENAME COLUMN dataset TO data",
    ):
        with raw(store.path) as file:
            file.execute(change)
        with pytest.raises(InputError, match="its tables are not those of a store"):
            store.rows()
        with raw(store.path) as file:
            file.execute("DROP TRIGGER IF EXISTS later")


def test_what_a_user_adds_beside_the_runs_is_the_users(store: Store) -> None:
    with raw(store.path) as file:
        file.execute("CREATE VIEW best AS SELECT * FROM runs WHERE search_test > 0.7")
        file.execute("CREATE TABLE mine (note TEXT)")
        file.execute("ANALYZE")
    assert len(store.rows()) == 4


def test_a_store_of_version_1_is_read_and_stays_what_it_is(tmp_path: Path) -> None:
    store = Store(of_version_1(tmp_path / "old.sqlite"))
    (row,) = store.rows()
    assert (row["id"], row["search_test"], row["settings"]) == (1, 0.75, {"seed": 0})
    assert list(row) == list(COLUMNS)
    assert store.find(entry(0).key) is not None
    store.ensure(entry(0))  # it is there
    with raw(store.path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_store_of_version_1_becomes_version_2_when_it_is_written(tmp_path: Path) -> None:
    store = Store(of_version_1(tmp_path / "old.sqlite"))
    store.record(entry(5))
    assert [row["seed"] for row in store.rows()] == [0, 5]
    with raw(store.path) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (2,)
        assert [digest is None for (digest,) in file.execute("SELECT digest FROM runs ORDER BY id")] == [
            True,
            False,
        ]
        file.execute("UPDATE runs SET search_test = 0.1 WHERE id = 2")
    with pytest.raises(InputError, match="row 2: its digest does not match"):
        Store(store.path).rows()


def values(**changes: Any) -> tuple[Any, ...]:
    row = dict.fromkeys(COLUMNS, None) | {"id": 1, "seed": 3, "search_test": 0.5}
    row |= dict.fromkeys(("key", "kind", "command", "finished"), "x")
    row |= dict.fromkeys(("settings", "metrics", "versions", "machine"), "{}")
    return tuple((row | changes).values())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"search_test": "high"}, "its search_test is not as real is"),
        ({"seed": b"3"}, "its seed is not as integer is"),
        ({"key": None}, "its key is not as text not null is"),
        ({"dataset": "cor\udcff"}, "its dataset is no text"),
        ({"metrics": "[1]"}, "its metrics are no mapping"),
        ({"metrics": "[" * 100_000}, "nested at most 32 deep"),
        ({"settings": "{"}, "Expecting"),
    ],
)
def test_a_row_of_before_must_at_least_be_a_row(changes: dict[str, Any], reason: str) -> None:
    assert read_row(values(), None)["settings"] == {}
    assert read_row(values(), digest_of(values()))["seed"] == 3
    with pytest.raises(ValueError, match=reason):
        read_row(values(**changes), None)
