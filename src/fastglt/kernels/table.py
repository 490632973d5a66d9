"""Which back end serves which kernel: a fixed table, so that equal runs stay bit-identical.

The one below was measured on two cores of a server. `fastglt tune` measures a machine and keeps a table
for it in the cache folder; a run records the table it used and takes it up again when it is resumed.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.system.storage import cache_folder, disk_errors, write_atomically

Steps = tuple[tuple[float, str], ...]  # (largest size, who serves it), ascending; the last one serves the rest

BACKENDS = ("numba", "torch", "plain")
_SERVERS = {"spmm": BACKENDS, "sddmm": BACKENDS, "matmul": ("numba", "torch"), "features": ("sparse", "dense")}


@dataclass(frozen=True, kw_only=True)
class Table:
    """For each decision, who serves which size.

    >>> Table().choose("features", 0.01), Table().choose("features", 0.9)
    ('sparse', 'dense')
    """

    spmm: Steps = ((math.inf, "numba"),)  # by the columns of the dense matrix
    sddmm: Steps = ((math.inf, "numba"),)  # by the columns of the dense matrices
    matmul: Steps = ((8, "numba"), (math.inf, "torch"))  # by the columns of the weight
    features: Steps = ((0.15, "sparse"), (math.inf, "dense"))  # by the density of the node features

    def __post_init__(self) -> None:
        for kernel, known in _SERVERS.items():
            steps = getattr(self, kernel)
            limits = [limit for limit, _ in steps]
            if not steps or limits != sorted(limits) or any(server not in known for _, server in steps):
                rule = f"the steps of '{kernel}' must have ascending limits and servers among {', '.join(known)}"
                raise InputError(f"{rule} (got {steps})")

    def choose(self, kernel: str, size: float) -> str:
        """Who serves a size."""
        steps: Steps = getattr(self, kernel)
        for limit, server in steps:
            if size <= limit:
                return server
        return steps[-1][1]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; the limit of a last step is null."""
        return {
            kernel: [[limit if limit < math.inf else None, server] for limit, server in steps]
            for kernel, steps in asdict(self).items()
        }

    @property
    def digest(self) -> str:
        """Tells a table from others."""
        return hashlib.sha256(json.dumps(self.to_dict()).encode()).hexdigest()[:12]

    @staticmethod
    def from_dict(values: Any) -> "Table":
        """The inverse of `to_dict`."""
        try:
            steps = {
                field.name: tuple(
                    (math.inf if limit is None else float(limit), server) for limit, server in values[field.name]
                )
                for field in fields(Table)
            }
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a table of kernels must have steps for each kernel (got: {error!r})") from None
        return Table(**steps)

    def save(self) -> Path:
        """Keep the table for this machine."""
        path = _path()
        write_atomically(path, (json.dumps(self.to_dict(), indent=1) + "\n").encode())
        Table.of_machine.cache_clear()
        return path

    @staticmethod
    def forget() -> Path | None:
        """Remove what was kept for this machine; None if there was nothing."""
        path = _path()
        with disk_errors(path, "remove"):
            existed = path.exists()
            path.unlink(missing_ok=True)
        Table.of_machine.cache_clear()
        return path if existed else None

    @staticmethod
    @cache
    def of_machine() -> "Table":
        """The table that `fastglt tune` has measured here, or the one that comes with fastglt."""
        path = _path()
        try:
            with disk_errors(path, "read"):
                return Table.from_dict(json.loads(path.read_text())) if path.exists() else Table()
        except ValueError as error:  # also InputError
            raise InputError(f"'{path}' is damaged ({error}); run `fastglt tune` again or remove it") from None


def _path() -> Path:
    return cache_folder() / "kernels.json"


_forced: list[str] = []


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Let one back end serve everything for a while, whatever table and environment say."""
    _forced.append(name)
    try:
        yield
    finally:
        _forced.pop()


def backend() -> str:
    """What `use_backend` or `FASTGLT_BACKEND` asks for; "auto": as the table says."""
    if _forced:
        return _forced[-1]
    choice = os.environ.get("FASTGLT_BACKEND", "auto")
    if choice not in ("auto", *BACKENDS):
        raise unknown_name("FASTGLT_BACKEND", choice, ("auto", *BACKENDS))
    return choice
