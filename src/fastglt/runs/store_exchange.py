"""Runs that go from one results store to another: a text file for others, and what others recorded.

A line of the file is one run as JSON, without the places of its folder and ticket, which mean nothing elsewhere. So
runs of several machines can be put together, and a file of them can stand beside a paper or in a repository.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.runs.store import Store, key_of
from fastglt.runs.store_schema import COLUMNS, PARTS, digest_of, read_row
from fastglt.system import plain_json
from fastglt.system.storage import disk_errors, write_atomically

Row = Mapping[str, Any]
_PLACES = ("folder", "ticket")
_SQLITE = b"SQLite format 3\0"
_DIGEST = "digest"


def share(rows: Iterable[Row], path: Path) -> None:
    """Write rows of a store to a text file, a line each."""
    lines = [_line({name: row[name] for name in COLUMNS if name not in ("id", *_PLACES)}) for row in rows]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def take(path: Path, store: Store) -> tuple[int, int]:
    """Add the runs of another store, or of a file of `share`, to a store, all or none.

    Returns how many were added, and how many were there already: those with equal settings and metrics.
    """
    with disk_errors(path, "read"):
        if not path.is_file():
            raise InputError(f"--take must name another store, or a file of --share (got '{path}', which is none)")
        with path.open("rb") as file:
            is_store = file.read(len(_SQLITE)) == _SQLITE
    rows = [_elsewhere(row) for row in Store(path).rows()] if is_store else _read(path)
    there = {_what(row) for row in store.rows()}
    new = {_what(row): row for row in rows if _what(row) not in there}
    store.add_rows(list(new.values()))
    return len(new), len(rows) - len(new)


def _elsewhere(row: Row) -> Row:
    """A row without its id; and without places that are not there."""
    places = {name: row[name] if row[name] and Path(row[name]).exists() else None for name in _PLACES}
    return {name: value for name, value in {**row, **places}.items() if name != "id"}


def _what(row: Row) -> str:
    """What two records of the same run have in common."""
    return json.dumps([row["key"], row["finished"], row["metrics"]], sort_keys=True)


def _line(row: Row) -> str:
    return json.dumps({**row, _DIGEST: digest_of(tuple(row.values()))})


def _read(path: Path) -> list[Row]:
    found = []
    with disk_errors(path, "read"):
        content = path.read_bytes()
    for number, line in enumerate(content.splitlines(), 1):
        try:
            found.append(_read_line(line))
        except ValueError as error:
            rule = "a file of runs must be as --share wrote it"
            raise InputError(f"{rule} (got '{path}', line {number}: {error}); nothing was taken") from None
    return found


def _read_line(line: bytes) -> Row:
    row = plain_json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("no run")
    known = [name for name in COLUMNS if name not in ("id", *_PLACES)]
    if sorted(row) != sorted([*known, _DIGEST]):
        raise ValueError("its fields are not those of a run")
    if row.pop(_DIGEST) != digest_of(tuple(row[name] for name in known)):
        raise ValueError("its digest does not match")
    whole = {"id": 0, **row, **dict.fromkeys(_PLACES)}
    texts = {part: json.dumps(whole[part]) for part in PARTS}
    read_row(tuple({**whole, **texts}[name] for name in COLUMNS), None)
    if row["key"] != key_of(row["settings"]):
        raise ValueError("its key is not that of its settings")
    return {name: value for name, value in whole.items() if name != "id"}
