"""How the results store looks inside: its tables, its versions, and what makes a row whole.

Version 2 has a digest of each row's values, and one of all rows, so that changed and lost rows are noticed.
Version 1 has none; it is read as it is, and becomes version 2 when something is written.
"""

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.system import plain_json

VERSION = 2
_MARK = 0x67_6C_74_31  # SQLite's application_id, which tells a store from other programs' files
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
_COLUMNS = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
_FIRST = {  # version 1, as SQLite keeps what made it
    "runs": f"CREATE TABLE runs ({_COLUMNS})",
    "runs_by_key": "CREATE INDEX runs_by_key ON runs (key)",
}
_SECOND = {
    "runs": f"CREATE TABLE runs ({_COLUMNS}, digest TEXT)",
    "runs_by_key": _FIRST["runs_by_key"],
    "whole": "CREATE TABLE whole (digest TEXT NOT NULL)",
}
_TABLES = {1: _FIRST, 2: _SECOND}
_NOTHING = "0" * 64  # the digest of no rows
_DIGEST = re.compile("[0-9a-f]{64}")
_TYPES = {"TEXT": str, "INTEGER": int, "REAL": float}
_CAUTION = ("trusted_schema = OFF", "cell_size_check = ON")  # the file may be damaged, or anybody's

Values = tuple[Any, ...]  # of a row, in the order of COLUMNS


@contextlib.contextmanager
def transaction(file: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing; writers wait for each other at its beginning."""
    file.execute("BEGIN IMMEDIATE")
    yield  # after an error the connection is closed, which undoes what was begun
    file.execute("COMMIT")


def prepare(file: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new store; refuse what is none, or one that this fastglt does not know.

    Only one process at a time may get here: two that switched a new file to a write-ahead log would get in each
    other's way.
    """
    file.execute("PRAGMA synchronous = FULL")  # with a write-ahead log, a commit is on disk when it returns
    for setting in _CAUTION:
        file.execute(f"PRAGMA {setting}")
    mark = file.execute("PRAGMA application_id").fetchone()[0]
    kinds = dict(file.execute("SELECT name, type FROM sqlite_master").fetchall())
    tables = dict(file.execute("SELECT name, sql FROM sqlite_master").fetchall())
    version = version_of(file)
    if (mark, version, tables) == (0, 0, {}):
        _create(file)
    elif mark != _MARK:
        raise not_a_store(path)
    elif version not in _TABLES:
        rule = f"the results store must be of version {VERSION} or before, which this fastglt knows"
        raise InputError(f"{rule} (got '{path}' of version {version}); update fastglt or choose another store")
    elif "trigger" in kinds.values() or tables | _TABLES[version] != tables:
        raise damaged(path, "its tables are not those of a store")


def _create(file: sqlite3.Connection) -> None:
    file.execute("PRAGMA journal_mode = WAL")
    with transaction(file):
        for statement in _FIRST.values():
            file.execute(statement)
        file.execute(f"PRAGMA application_id = {_MARK}")
        upgrade(file)


def version_of(file: sqlite3.Connection) -> int:
    """The version of a store."""
    return int(file.execute("PRAGMA user_version").fetchone()[0])


def upgrade(file: sqlite3.Connection) -> None:
    """Make a store of this version of one of before, within a transaction; its rows have no digests."""
    if version_of(file) < VERSION:
        file.execute("ALTER TABLE runs ADD COLUMN digest TEXT")
        file.execute(_SECOND["whole"])
        file.execute("INSERT INTO whole VALUES (?)", (_NOTHING,))
        file.execute(f"PRAGMA user_version = {VERSION}")


def columns_of(file: sqlite3.Connection) -> str:
    """What to select for a row's values and its digest, which is null in a store of version 1."""
    return f"{', '.join(COLUMNS)}, {'digest' if version_of(file) > 1 else 'NULL'}"


def seal_row(file: sqlite3.Connection, number: int | None) -> None:
    """Give a row that was just written its digest, within the same transaction."""
    values = file.execute(f"SELECT {', '.join(COLUMNS)} FROM runs WHERE id = ?", (number,)).fetchone()
    digest = digest_of(values)
    file.execute("UPDATE runs SET digest = ? WHERE id = ?", (digest, number))
    before = recorded_whole(file)
    if not isinstance(before, str) or not _DIGEST.fullmatch(before):
        raise sqlite3.DatabaseError("the digest of all rows is damaged")
    file.execute("UPDATE whole SET digest = ?", (together([before, digest]),))


def digest_of(values: Values) -> str:
    """What tells a row's values from all others."""
    return hashlib.sha256(json.dumps(values, default=repr).encode()).hexdigest()


def together(digests: Sequence[str]) -> str:
    """One digest for several, in any order: their sum.

    >>> together(["1", "f"])[-3:], together([]) == "0" * 64
    ('010', True)
    """
    return f"{sum(int(digest, 16) for digest in digests) % 2**256:064x}"


def recorded_whole(file: sqlite3.Connection) -> str | None:
    """The digest of all rows that have one; None in a store of version 1."""
    if version_of(file) == 1:
        return None
    found = file.execute("SELECT digest FROM whole").fetchall()
    return found[0][0] if len(found) == 1 and isinstance(found[0][0], str) else "damaged"


def read_row(values: Values, digest: str | None) -> dict[str, Any]:
    """A row's values by name; ValueError if they are not those that were written."""
    if digest is not None and digest != digest_of(values):
        raise ValueError("its digest does not match")
    row = dict(zip(COLUMNS, values, strict=True))
    for name, kind in COLUMNS.items():
        value, may_be_null = row[name], "NOT NULL" not in kind
        if not (isinstance(value, _TYPES[kind.split()[0]]) or (value is None and may_be_null)):
            raise ValueError(f"its {name} is not as {kind.lower()} is")
        if isinstance(value, str) and not _is_text(value):
            raise ValueError(f"its {name} is no text")
    for name in PARTS:
        row[name] = plain_json.loads(row[name])
        if not isinstance(row[name], dict):
            raise ValueError(f"its {name} are no mapping")
    return row


def _is_text(value: str) -> bool:
    """Whether it was read as it stands: bytes that are no text are kept as halves of pairs."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def damaged(path: Path, how: str) -> InputError:
    """The error for a store in which something is damaged."""
    remedy = (
        "`fastglt runs --check` says what is whole, `fastglt runs --repair` keeps that, or choose another store"
    )
    return InputError(f"the results store '{path}' is damaged ({how}); {remedy}")


class NotAStoreError(InputError):
    """The file is another program's."""


def not_a_store(path: Path) -> NotAStoreError:
    """The error for another program's file."""
    rule = "the results store must be a new file or one that fastglt wrote"
    return NotAStoreError(f"{rule} (got '{path}', which is neither, or damaged); choose another store")
