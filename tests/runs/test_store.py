"""The results store: whole rows, many writers, kills, and files that are no store.

`FASTGLT_STORE_RUNS=1000` lets each of two processes write a thousand runs instead of forty.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from fastglt import InputError, MachineError
from fastglt.runs.store import Entry, Store, key_of
from fastglt.system import provenance

RUNS = int(os.environ.get("FASTGLT_STORE_RUNS", "40"))


def entry(**changes: Any) -> Entry:
    """A ticket's run, settings and metrics as `find` has them, in short."""
    settings = {"dataset": "cora", "model": {"name": "gcn", "hidden": 512}, "method": "ugs", "seed": 3}
    settings |= {"graph_sparsity": 0.25, "weight_sparsity": 0.5, **changes.pop("settings", {})}
    metrics = {"search_test": 0.75, "isolated_test": None, "search_seconds": 2.5, "isolated_seconds": 1.0}
    given = {"kind": "ticket", "command": "find", "metrics": metrics, "folder": "/runs/a"}
    return Entry(key=key_of(settings), settings=settings, **{**given, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results.sqlite")


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """The file as any SQLite program sees it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as file:
        yield file


def test_a_run_comes_back_as_it_was_recorded(store: Store) -> None:
    given = entry(ticket="/runs/a/ticket.safetensors")
    store.record(given)
    assert store.find(given.key) == given
    assert store.find(key_of({"seed": 3})) is None


def test_the_latest_of_equal_runs_is_found(store: Store) -> None:
    store.record(entry(folder="/runs/a"))
    store.record(entry(folder="/runs/b"))
    store.record(entry(folder="/runs/c", settings={"seed": 4}))
    found = store.find(entry().key)
    assert found is not None
    assert found.folder == "/runs/b"


def test_a_row_says_what_ran_where_and_how_well(store: Store) -> None:
    store.record(entry())
    (row,) = store.rows()
    assert (row["id"], row["kind"], row["command"]) == (1, "ticket", "find")
    assert (row["dataset"], row["model"], row["method"], row["seed"]) == ("cora", "gcn", "ugs", 3)
    assert (row["graph_sparsity"], row["weight_sparsity"]) == (0.25, 0.5)
    assert (row["dense_test"], row["search_test"], row["isolated_test"]) == (None, 0.75, None)
    assert row["seconds"] == 3.5
    assert row["finished"].endswith("+00:00")
    assert (row["folder"], row["ticket"]) == ("/runs/a", None)
    assert (row["settings"], row["metrics"]) == (entry().settings, entry().metrics)
    assert (row["versions"], row["machine"]) == (provenance.versions(), provenance.machine())
    assert row["revision"] == provenance.revision()


def test_what_a_run_does_not_say_stays_open(store: Store) -> None:
    store.record(Entry(key="k", kind="bench", command="bench", settings={"seed": [0, 1]}, metrics={"model": "gin"}))
    (row,) = store.rows()
    assert (row["model"], row["seed"], row["dataset"], row["seconds"]) == ("gin", None, None, None)


def test_ensure_records_a_run_once_in_each_folder(store: Store) -> None:
    for folder in ("/runs/a", "/runs/a", None, None, "/runs/b"):
        store.ensure(entry(folder=folder))
    assert [row["folder"] for row in store.rows()] == ["/runs/a", None, "/runs/b"]
    store.record(entry(folder="/runs/a"))
    assert len(store.rows()) == 4


def test_rows_come_as_they_were_recorded(store: Store) -> None:
    for seed in range(4):
        store.record(entry(settings={"seed": seed}))
    assert [row["seed"] for row in store.rows()] == [0, 1, 2, 3]  # the oldest first


def test_a_store_that_may_not_be_written_can_be_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.record(entry(settings={"seed": 4}))
    folder = store.path.parent
    folder.chmod(0o555)
    if os.geteuid() == 0:  # whom no permission keeps from writing
        monkeypatch.setattr(os, "access", lambda *_: False)
    before = sorted(folder.iterdir())
    assert [row["seed"] for row in Store(store.path).rows()] == [4]
    assert sorted(folder.iterdir()) == before
    with pytest.raises(MachineError, match=r"cannot write .* permission is denied"):
        store.record(entry(settings={"seed": 5}))
    folder.chmod(0o755)


def test_equal_settings_have_equal_keys_in_any_order() -> None:
    one = {"model": {"name": "gcn", "hidden": 8}, "seed": 0, "shape": (2, 3)}
    other = {"shape": [2, 3], "seed": 0, "model": {"hidden": 8, "name": "gcn"}}
    assert key_of(one) == key_of(other)
    assert key_of(one) != key_of({**one, "seed": 1})
    assert len(key_of(one)) == 64


def test_a_commit_waits_for_the_disk(store: Store) -> None:
    with raw(store.path) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with store._open() as file:
        assert file.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@pytest.mark.parametrize("version", [3, 7])
def test_a_store_of_another_version_is_refused(store: Store, version: int) -> None:
    with raw(store.path) as file:
        file.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(InputError, match=f"must be of version 2 or before, .*of version {version}.*another store"):
        Store(store.path)


def test_other_files_are_no_store_and_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, though it is long enough to be one" * 100)
    with raw(tmp_path / "others") as file:
        file.execute("CREATE TABLE runs (id INTEGER)")
    (tmp_path / "short").write_text("x")
    for name in ("text", "others", "short"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="must be a new file or one that fastglt wrote"):
            Store(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    Store(tmp_path / "empty").record(entry())
    assert len(Store(tmp_path / "empty").rows()) == 1


@pytest.mark.parametrize(
    ("place", "reason"), [("folder", "it is a folder; name a file"), ("file/store", "stands in")]
)
def test_a_place_that_cannot_be_is_the_machines_fault(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match=f"cannot write .*{reason}"):
        Store(tmp_path / place)


def test_a_full_disk_is_the_machines_fault_and_spares_what_is_there(store: Store) -> None:
    store.record(entry())
    with raw(store.path) as file:
        pages = file.execute("PRAGMA page_count").fetchone()[0]
    connect = sqlite3.connect

    def connect_to_a_full_disk(*arguments: Any, **named: Any) -> sqlite3.Connection:
        file: sqlite3.Connection = connect(*arguments, **named)
        file.execute(f"PRAGMA max_page_count = {pages}")  # SQLite's own way to run out of space
        return file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_to_a_full_disk)
        with pytest.raises(MachineError, match="the disk is full; free some space and run the same command again"):
            store.record(entry(metrics={"note": "x" * 100_000}))
    assert len(store.rows()) == 1


def test_a_writer_that_never_ends_is_not_waited_for_forever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.runs.store._WAIT", 0.05)
    with raw(store.path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MachineError, match=r"cannot write .*: database is locked"):
            store.record(entry())
        assert store.rows() == []  # reading goes on meanwhile
    store.record(entry())


WRITER = """
import sys
from pathlib import Path
from fastglt.runs.store import Entry, Store, key_of

path, name, runs = sys.argv[1:]
sys.stdin.readline()
store = Store(Path(path))
for number in range(int(runs)):
    settings = {"dataset": name, "seed": number, "padding": "x" * 2000}
    metrics = {"search_test": number / 7, "padding": "y" * 2000}
    store.record(Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics=metrics))
    print(number, flush=True)
"""


class Writer:
    """A process that records runs and prints each one's number once it is saved."""

    def __init__(self, path: Path, name: str, runs: int) -> None:
        command = [sys.executable, "-c", WRITER, str(path), name, str(runs)]
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self) -> None:
        self._pipe(self.process.stdin).write("go\n")
        self._pipe(self.process.stdin).flush()

    def saved(self, count: int) -> list[int]:
        """The next so many numbers, as they come."""
        return [int(self._pipe(self.process.stdout).readline()) for _ in range(count)]

    def rest(self) -> list[int]:
        """All other numbers until the process ends; a torn last one was not printed."""
        out, _ = self.process.communicate()
        return [int(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


def test_of_two_writers_one_is_killed_and_nothing_saved_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    survivor, victim = Writer(path, "survivor", RUNS), Writer(path, "victim", RUNS)
    for writer in (survivor, victim):
        writer.start()
    printed = victim.saved(RUNS // 2)
    victim.process.kill()
    printed += victim.rest()
    assert survivor.rest() == list(range(RUNS))
    assert survivor.process.returncode == 0
    with raw(path) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows = Store(path).rows()
    seeds = {name: [row["seed"] for row in rows if row["dataset"] == name] for name in ("survivor", "victim")}
    assert seeds["survivor"] == list(range(RUNS))
    assert seeds["victim"] == list(range(len(seeds["victim"]))), "one after the other, each once"
    assert RUNS // 2 <= len(printed) <= len(seeds["victim"]) <= len(printed) + 1 <= RUNS
    for row in rows:
        assert row["key"] == key_of(row["settings"])
        assert row["metrics"] == {"search_test": row["seed"] / 7, "padding": "y" * 2000}
        assert (row["search_test"], row["versions"]) == (row["seed"] / 7, provenance.versions())
    print(f"{len(seeds['survivor'])} and {len(printed)} saved, {len(rows)} rows, integrity ok")


def test_whoever_reads_meanwhile_finds_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "results.sqlite"
    store, writer = Store(path), Writer(path, "writer", RUNS)
    writer.start()
    counts = [len(store.rows()) for _ in range(RUNS)]
    assert writer.rest() == list(range(RUNS))
    assert counts == sorted(counts)
    assert len(store.rows()) == RUNS


def test_many_processes_may_create_it_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.sqlite"
    writers = [Writer(path, f"writer {number}", 3) for number in range(6)]
    for writer in writers:
        writer.start()
    assert [writer.rest() for writer in writers] == [[0, 1, 2]] * 6
    found = [(row["dataset"], row["seed"]) for row in Store(path).rows()]
    assert sorted(found) == [(writer.name, seed) for writer in writers for seed in range(3)]
