"""The results store: one SQLite file with a row for every finished run of any command.

A row is written in one transaction, after the run's own folder is complete. So a row that is there is whole, many
processes may write at a time, and what a kill leaves unwritten is in its folder, from where `ensure` takes it.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastglt.errors import InputError
from fastglt.system import provenance
from fastglt.system.storage import disk_errors

VERSION = 1
DEFAULT = Path("runs/results.sqlite")
_MARK = 0x67_6C_74_31  # SQLite's application_id, which tells a store from other programs' files
_FROZEN = "?immutable=1"  # how SQLite reads without files of its own beside the store
_WAIT = 120.0  # seconds, for others that write
COLUMNS = {
    "id": "INTEGER PRIMARY KEY",
    "key": "TEXT NOT NULL",
    "kind": "TEXT NOT NULL",
    "command": "TEXT NOT NULL",
    "finished": "TEXT NOT NULL",  # UTC, to the second
    "dataset": "TEXT",
    "model": "TEXT",
    "method": "TEXT",
    "seed": "INTEGER",
    "graph_sparsity": "REAL",
    "weight_sparsity": "REAL",
    "dense_test": "REAL",
    "search_test": "REAL",
    "isolated_test": "REAL",
    "seconds": "REAL",
    "settings": "TEXT NOT NULL",  # this one and the next three as JSON
    "metrics": "TEXT NOT NULL",
    "versions": "TEXT NOT NULL",
    "machine": "TEXT NOT NULL",
    "revision": "TEXT",
    "folder": "TEXT",
    "ticket": "TEXT",
}
PARTS = ("settings", "metrics", "versions", "machine")
_FACTS = ("dataset", "model", "method", "seed", "graph_sparsity", "weight_sparsity")
_SCORES = ("dense_test", "search_test", "isolated_test")
_ERRORS = {  # SQLite's codes (the low byte of its extended ones), and the system's for the same
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
}

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One finished run: a unit of work that could be reused. Settings and metrics are plain JSON values."""

    key: str  # `key_of` its settings
    kind: str  # ticket, dense, evaluation or bench
    command: str  # find, compare, …
    settings: Mapping[str, Any]  # all that decides the result
    metrics: Mapping[str, Any]
    folder: str | None = None  # both absolute paths
    ticket: str | None = None
    revision: str | None = field(default=None, compare=False)  # of the code that made it: the store fills it in


def default_path() -> Path:
    """Where finished runs are recorded unless a caller says otherwise: `FASTGLT_STORE`, or a file below runs/."""
    return Path(os.environ.get("FASTGLT_STORE") or DEFAULT).expanduser()


def key_of(settings: Mapping[str, Any]) -> str:
    """A digest of settings: equal inputs, equal key.

    >>> key_of({"seed": 0, "model": "gcn"}) == key_of({"model": "gcn", "seed": 0}) != key_of({"seed": 1})
    True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Store:
    """Finished runs in one file, for as many processes as like; what stands in its way is told at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open():
            pass

    def record(self, entry: Entry) -> None:
        """Add a row; when this returns, no kill and no power cut takes it away."""
        self._add(entry, unless_there=False)

    def ensure(self, entry: Entry) -> None:
        """Add a row, unless there is one with that key and folder."""
        self._add(entry, unless_there=True)

    def find(self, key: str) -> Entry | None:
        """The latest run with that key."""
        names = tuple(Entry.__dataclass_fields__)
        with self._open() as file:
            found = file.execute(
                f"SELECT {', '.join(names)} FROM runs WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
            ).fetchone()
        return None if found is None else Entry(**_read(names, found))

    def rows(self) -> list[Row]:
        """Whole rows, the oldest first."""
        with self._open(to="read") as file:
            found = file.execute("SELECT * FROM runs ORDER BY id")
            return [_read(tuple(COLUMNS), row) for row in found]

    def _add(self, entry: Entry, *, unless_there: bool) -> None:
        with self._open() as file, _transaction(file):
            same = "SELECT 1 FROM runs WHERE key = ? AND folder IS ? LIMIT 1"
            there = file.execute(same, (entry.key, entry.folder)).fetchone()
            if not (unless_there and there):
                row = _row(entry)
                file.execute(f"INSERT INTO runs ({', '.join(row)}) VALUES ({_marks(row)})", tuple(row.values()))

    @contextlib.contextmanager
    def _open(self, to: str = "write") -> Iterator[sqlite3.Connection]:
        """A connection to a store that is a store, made if there is none; what SQLite refuses is one clear line.

        A store in a folder where nothing may be written can be read.
        """
        with disk_errors(self.path, to):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "")
            place = f"file:{quote(str(self.path))}" + _FROZEN * (not os.access(self.path.parent, os.W_OK))
            try:
                with contextlib.closing(
                    sqlite3.connect(place, timeout=_WAIT, isolation_level=None, uri=True)
                ) as file:
                    with _locked(self.path.parent):
                        _prepare(file, self.path)
                    yield file
            except sqlite3.DatabaseError as error:
                code = error.sqlite_errorcode & 0xFF
                if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                    raise _not_a_store(self.path) from None
                raise OSError(_ERRORS.get(code, 0), str(error)) from error


def _prepare(file: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; refuse what is none, or one that this fastglt does not know.

    Only one process at a time gets here: two that switched a new file to a write-ahead log would get in each
    other's way.
    """
    file.execute("PRAGMA synchronous = FULL")  # with a write-ahead log, a commit is on disk when it returns
    mark, version, tables = (
        file.execute(query).fetchone()[0]
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if (mark, version, tables) == (0, 0, 0):
        file.execute("PRAGMA journal_mode = WAL")
        with _transaction(file):
            columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
            file.execute(f"CREATE TABLE runs ({columns})")
            file.execute("CREATE INDEX runs_by_key ON runs (key)")
            file.execute(f"PRAGMA application_id = {_MARK}")
            file.execute(f"PRAGMA user_version = {VERSION}")
    elif mark != _MARK:
        raise _not_a_store(path)
    elif version != VERSION:
        rule = f"the results store must be of version {VERSION}, which this fastglt knows"
        raise InputError(f"{rule} (got '{path}' of version {version}); update fastglt or choose another --store")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone among the processes that open a store in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _transaction(file: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; writers wait for each other at its beginning."""
    file.execute("BEGIN IMMEDIATE")
    yield  # after an error the connection is closed, which undoes what was begun
    file.execute("COMMIT")


def _not_a_store(path: Path) -> InputError:
    rule = "the results store must be a new file or one that fastglt wrote"
    return InputError(f"{rule} (got '{path}', which is neither, or damaged); choose another --store")


def _row(entry: Entry) -> Row:
    """The columns of a run, from its settings and metrics."""
    settings, metrics = entry.settings, entry.metrics
    facts = {name: _plain(settings.get(name, metrics.get(name))) for name in _FACTS}
    parts = {"settings": settings, "metrics": metrics}
    origin = {"versions": provenance.versions(), "machine": provenance.machine()}
    return {
        "key": entry.key,
        "kind": entry.kind,
        "command": entry.command,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,
        **{name: _plain(metrics.get(name)) for name in _SCORES},
        "seconds": _seconds(metrics),
        **{name: json.dumps(dict(value)) for name, value in {**parts, **origin}.items()},
        "revision": provenance.revision(),
        "folder": entry.folder,
        "ticket": entry.ticket,
    }


def _plain(value: Any) -> str | int | float | None:
    """What a column can hold: of a model's recipe its name, of several values none."""
    if isinstance(value, Mapping):
        value = value.get("name")
    return value if isinstance(value, str | int | float) else None


def _seconds(metrics: Mapping[str, Any]) -> float | None:
    """How long the run's parts took, as far as it says so."""
    phases = ("teacher", "search", "isolated", "dense", "dense_distilled")
    parts = ("seconds", *(f"{phase}_seconds" for phase in phases))
    found = [float(metrics[name]) for name in parts if isinstance(metrics.get(name), int | float)]
    return sum(found) if found else None


def _read(names: tuple[str, ...], values: tuple[Any, ...]) -> Row:
    return {name: json.loads(value) if name in PARTS else value for name, value in zip(names, values, strict=True)}


def _marks(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))
