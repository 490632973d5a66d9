"""Which rows of a results store are whole, and a new store of those that are."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastglt.errors import InputError, MachineError
from fastglt.runs.store import Store, open_database
from fastglt.runs.store_schema import (
    COLUMNS,
    NotAStoreError,
    columns_of,
    damaged,
    prepare,
    read_row,
    recorded_whole,
    together,
    transaction,
)
from fastglt.system.storage import disk_errors

_BESIDE = ("", "-wal", "-shm")  # SQLite's own files begin with a store's name
_WAYS = (  # to the rows' ids, each of which may be cut off by another damage
    "SELECT id FROM runs NOT INDEXED ORDER BY id",
    "SELECT id FROM runs NOT INDEXED ORDER BY id DESC",
    "SELECT rowid FROM runs INDEXED BY runs_by_key ORDER BY key",
)


@dataclass
class Checked:
    """What a look at every row has found."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)  # values and digest of all that can be kept
    damaged: dict[int, str] = field(default_factory=dict)  # ids, and what is wrong
    notes: list[str] = field(default_factory=list)  # what is wrong with the store itself

    @property
    def whole(self) -> list[int]:
        """The ids of rows that are what was written."""
        return [row[0] for row in self.rows if row[-1] is not None]

    @property
    def without_digest(self) -> list[int]:
        """The ids of rows of before: they can be read, and nothing more is known."""
        return [row[0] for row in self.rows if row[-1] is None]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged and not self.notes


def check(path: Path) -> Checked:
    """Look at every row of a store, whatever is wrong with others; nothing is changed."""
    found = Checked()
    with disk_errors(path, "read"):
        if not path.is_file():
            raise InputError(f"there is no results store to check (got '{path}')")
        if path.stat().st_size == 0:  # as good as new
            return found
        with _noted(found), open_database(path) as file:
            with _noted(found):
                prepare(file, path)
                file.execute("BEGIN")  # all of it as it is now, whoever writes meanwhile
            numbers: set[int] = set()
            for way in _WAYS:
                with _noted(found):
                    numbers.update(number for (number,) in file.execute(way) if isinstance(number, int))
            for number in sorted(numbers):
                _look_at(file, number, found)
            with _noted(found):
                _look_at_all(file, found)
    found.notes = list(dict.fromkeys(found.notes))
    return found


@contextlib.contextmanager
def _noted(found: Checked) -> Iterator[None]:
    try:
        yield
    except NotAStoreError:
        raise
    except (sqlite3.Error, InputError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise
        found.notes.append(str(error))


def _look_at(file: sqlite3.Connection, number: int, found: Checked) -> None:
    try:
        row = file.execute(f"SELECT {columns_of(file)} FROM runs WHERE id = ?", (number,)).fetchone()
        if row is None or row[0] != number:
            raise ValueError("it is listed, and not there")
        read_row(row[:-1], row[-1])
        found.rows.append(row)
    except (sqlite3.Error, ValueError) as error:
        found.damaged[number] = str(error)


def _look_at_all(file: sqlite3.Connection, found: Checked) -> None:
    flaws = [str(flaw) for (flaw,) in file.execute("PRAGMA integrity_check(3)") if flaw != "ok"]
    found.notes += flaws
    whole = recorded_whole(file)
    if whole is not None and not found.damaged and whole != together([row[-1] for row in found.rows if row[-1]]):
        found.notes.append("rows are lost, or twice there")


def repair(path: Path) -> tuple[Checked, Path | None]:
    """Put a new store of all whole rows in a store's place; gives what was found, and where the old one is now.

    Nothing is done, and nowhere given, if nothing is damaged. No other process may write meanwhile.
    """
    found = check(path)
    if found.is_sound:
        return found, None
    if not found.rows:
        raise damaged(path, f"no row can be read: {'; '.join(found.notes) or 'all are damaged'}")
    with disk_errors(path, "write"):
        _refuse_writers(path)
        old = _free_name(path)
        for end in _BESIDE:
            if Path(f"{path}{end}").exists():
                shutil.copy2(f"{path}{end}", f"{old}{end}")
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name[:80]}.") as folder:
            new = Path(folder) / path.name
            _write(new, found.rows)
            for end in _BESIDE[1:]:  # they belong to the old one
                Path(f"{path}{end}").unlink(missing_ok=True)
            os.replace(new, path)
    return found, old


def _refuse_writers(path: Path) -> None:
    with contextlib.suppress(InputError), open_database(path) as file:
        file.execute("PRAGMA busy_timeout = 1000")
        try:
            with transaction(file):
                return
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                raise MachineError(f"another process is writing to '{path}'; wait for it") from None


def _free_name(path: Path) -> Path:
    number = 1
    while Path(f"{path}.damaged-{number}").exists():
        number += 1
    return Path(f"{path}.damaged-{number}")


def _write(path: Path, rows: list[tuple[Any, ...]]) -> None:
    Store(path)
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    with open_database(path) as file, transaction(file):
        file.executemany(f"INSERT INTO runs ({', '.join(COLUMNS)}, digest) VALUES ({marks})", rows)
        file.execute("UPDATE whole SET digest = ?", (together([row[-1] for row in rows if row[-1] is not None]),))
