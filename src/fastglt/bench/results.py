"""Measured rows, on disk as soon as they are there, and the machine they were measured on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.system.provenance import processor, versions
from fastglt.system.storage import disk_errors, write_atomically

Row = dict[str, Any]


class Measurements:
    """The rows of one command on one machine with one set of settings.

    With a path they are written down after each row, and what the file has already is not measured again.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self.path, self.about = path, json.loads(json.dumps(about))
        self.rows: list[Row] = []
        if path is not None:
            self.rows = _read(path, self.about)
            self._write()  # whatever stands in the way is noticed before anything is measured

    def find(self, **what: str) -> Row | None:
        """The row of a dataset, a model and whatever else tells it from others, if it has been measured."""
        return next((row for row in self.rows if what.items() <= row.items()), None)

    def add(self, row: Row) -> None:
        """Keep a row."""
        self.rows.append(row)
        self._write()

    def document(self, rows: list[Row]) -> dict[str, Any]:
        """Rows with what is needed to understand them."""
        return {**self.about, "rows": rows}

    def _write(self) -> None:
        if self.path is not None:
            write_atomically(self.path, (json.dumps(self.document(self.rows), indent=2) + "\n").encode())


def machine(*, threads: int, device: str) -> dict[str, Any]:
    """What a number depends on: the processor, how much of it is used, and the software."""
    import torch

    from fastglt.kernels.table import Table, backend

    cuda = device.startswith("cuda")
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "device": torch.cuda.get_device_name(device) if cuda else device,
        "backend": backend(),
        "kernels": Table.of_machine().digest,
        **versions(),
    }


def _read(path: Path, about: Mapping[str, Any]) -> list[Row]:
    """The rows in a file that was written with the same settings on the same machine."""
    if not path.exists():
        return []
    with disk_errors(path, "read"):
        text = path.read_text(errors="replace")
    try:
        before = json.loads(text)
        rows = [dict(row) for row in before.pop("rows")]
        assert all({"dataset", "model"} <= set(row) for row in rows)
    except (ValueError, KeyError, AttributeError, TypeError, AssertionError):
        rule = "--out must be a new file or one of `fastglt bench`"
        raise InputError(f"{rule} (got '{path}', which is neither); choose another --out") from None
    changed = _differences(before, about)
    if changed:
        raise InputError(
            f"'{path}' has rows that were measured differently: {', '.join(changed)}; choose another --out"
        )
    return rows


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    found = []
    for name in sorted({**before, **now}):
        old, new = before.get(name), now.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += _differences(old, new)
        elif old != new:
            found.append(f"{name} was {old!r}, now {new!r}")
    return found
