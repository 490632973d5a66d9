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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastglt.runs.store_place import DEFAULT, default_path
from fastglt.runs.store_schema import (
    COLUMNS,
    PARTS,
    VERSION,
    columns_of,
    damaged,
    not_a_store,
    prepare,
    read_row,
    recorded_whole,
    seal_row,
    together,
    transaction,
    upgrade,
)
from fastglt.system import provenance
from fastglt.system.storage import disk_errors

__all__ = ["COLUMNS", "DEFAULT", "PARTS", "VERSION", "Entry", "Store", "default_path", "key_of"]

_FROZEN = "?immutable=1"  # how SQLite reads without files of its own beside the store
_WAIT = 120.0  # seconds, for others that write
_LEAST = 100  # bytes of a database's head
_FACTS = ("dataset", "model", "method", "seed", "graph_sparsity", "weight_sparsity")
_SCORES = ("dense_test", "search_test", "isolated_test")
_ERRORS = {  # SQLite's codes (the low byte of its extended ones), and the system's for the same
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
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
    machine: Mapping[str, Any] | None = field(default=None, compare=False)  # None: the one that records it


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
        with self._open() as file:
            found = file.execute(
                f"SELECT {columns_of(file)} FROM runs WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)
            ).fetchone()
            if found is None:
                return None
            row = self._read(found)
        return Entry(**{name: row[name] for name in Entry.__dataclass_fields__})

    def rows(self) -> list[Row]:
        """Whole rows, the oldest first; refused if one was changed, or is lost."""
        with self._open(to="read") as file:
            file.execute("BEGIN")  # all of it as it is now, whoever writes meanwhile
            found = file.execute(f"SELECT {columns_of(file)} FROM runs ORDER BY id").fetchall()
            rows = [self._read(values) for values in found]
            whole = recorded_whole(file)
            if whole is not None and whole != together([values[-1] for values in found if values[-1] is not None]):
                raise damaged(self.path, "rows are lost, or twice there")
        return rows

    def add_rows(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows that another store has, as `rows` gives them but for their ids; all of them, or none."""
        with self._open() as file, transaction(file):
            upgrade(file)
            for row in rows:
                _insert(file, {**row, **{part: json.dumps(row[part]) for part in PARTS}})

    def _read(self, found: tuple[Any, ...]) -> Row:
        *values, digest = found
        try:
            return read_row(tuple(values), digest)
        except ValueError as error:
            raise damaged(self.path, f"row {values[0]}: {error}") from None

    def _add(self, entry: Entry, *, unless_there: bool) -> None:
        with self._open() as file, transaction(file):
            same = "SELECT 1 FROM runs WHERE key = ? AND folder IS ? LIMIT 1"
            there = file.execute(same, (entry.key, entry.folder)).fetchone()
            if not (unless_there and there):
                upgrade(file)
                _insert(file, _row(entry))

    @contextlib.contextmanager
    def _open(self, to: str = "write") -> Iterator[sqlite3.Connection]:
        """A connection to a store that is a store, made if there is none; what SQLite refuses is one clear line.

        A store in a folder where nothing may be written can be read.
        """
        with disk_errors(self.path, to), open_database(self.path) as file:
            with _locked(self.path.parent):
                prepare(file, self.path)
            yield file


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a file, whatever is in it; what SQLite says of it is an `OSError` or that it is damaged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "")
    if path.exists() and 0 < path.stat().st_size < _LEAST:  # SQLite would take it for an empty one
        raise not_a_store(path)
    place = f"file:{quote(str(path))}" + _FROZEN * (not os.access(path.parent, os.W_OK))
    try:
        with contextlib.closing(sqlite3.connect(place, timeout=_WAIT, isolation_level=None, uri=True)) as file:
            file.text_factory = _text
            yield file
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # some of Python's own have none
        if code == sqlite3.SQLITE_NOTADB:
            raise not_a_store(path) from None
        if code not in _ERRORS:
            raise damaged(path, str(error)) from None
        raise OSError(_ERRORS[code], str(error)) from error
    except UnicodeDecodeError:  # SQLite's message quotes bytes of the file
        raise damaged(path, "its tables are not those of a store") from None


def _text(content: bytes) -> str:
    """A text as it is stored; bytes that are none stay in it, so that its digest tells that it was changed."""
    return content.decode(errors="surrogateescape")


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Alone among the processes that open a store in a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _insert(file: sqlite3.Connection, row: Row) -> None:
    """Write a row and its digest, within a transaction."""
    insert = f"INSERT INTO runs ({', '.join(row)}) VALUES ({_marks(row)})"
    seal_row(file, file.execute(insert, tuple(row.values())).lastrowid)


def _row(entry: Entry) -> Row:
    """The columns of a run, from its settings and metrics."""
    settings, metrics = entry.settings, entry.metrics
    facts = {name: _plain(settings.get(name, metrics.get(name))) for name in _FACTS}
    parts = {"settings": settings, "metrics": metrics}
    origin = {"versions": provenance.versions(), "machine": entry.machine or provenance.machine()}
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
    phases = ("teacher", "search", "isolated", "dense", "dense_distilled", "dense_same_lr")
    parts = ("seconds", *(f"{phase}_seconds" for phase in phases))
    found = [float(metrics[name]) for name in parts if isinstance(metrics.get(name), int | float)]
    return sum(found) if found else None


def _marks(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))
