"""The digests by which a ticket knows its graph and features, of arrays that memory need not hold.

They are those of `fastglt.graphs.graph.Graph.fingerprint` and `fastglt.graphs.features.Features.fingerprint`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from fastglt.data.disk.layout import Array, file_of, release

_ROWS = 1 << 16
_AT_A_TIME = 1 << 22


def graph_fingerprint(folder: Path, nodes: int, *, directed: bool) -> str:
    """Of nodes, edges and self-loops."""
    digest = hashlib.sha256(f"fastglt-graph-1 {nodes} {int(directed)}".encode())
    edges = np.load(file_of(folder, "edges"), mmap_mode="r")
    for row in edges:
        for at in range(0, len(row), _AT_A_TIME):
            digest.update(np.ascontiguousarray(row[at : at + _AT_A_TIME], dtype="<i8").tobytes())
        release(edges)
    digest.update(b"|")
    digest.update(np.load(file_of(folder, "loops")).astype("<i8").tobytes() + b"|")
    return digest.hexdigest()


def features_fingerprint(folder: Path, nodes: int, features: int) -> tuple[int, str]:
    """How many features are not zero, and a digest of where and what these are."""
    digest = hashlib.sha256(f"fastglt-features-1 {nodes} {features}".encode())
    if file_of(folder, "x_values").exists():
        parts = (("x_indptr", "<i8"), ("x_indices", "<i4"), ("x_values", "<f4"))
        arrays = [np.load(file_of(folder, name)).astype(kind) for name, kind in parts]
        for array in arrays:
            digest.update(array.tobytes())
        return len(arrays[-1]), digest.hexdigest()
    x = np.load(file_of(folder, "x"), mmap_mode="r")
    counts = [np.count_nonzero(rows, axis=1) for rows in _pieces(x)]
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), *counts]).cumsum()
    digest.update(indptr.astype("<i8").tobytes())
    for part in (_columns, _values):
        _add(digest.update, part, x)
    return int(indptr[-1]), digest.hexdigest()


def _add(update: Callable[[bytes], None], part: Callable[[Array], Array], x: Array) -> None:
    for rows in _pieces(x):
        update(part(rows).tobytes())


def _columns(rows: Array) -> Array:
    if np.count_nonzero(rows) == rows.size:
        return np.tile(np.arange(rows.shape[1], dtype="<i4"), len(rows))
    return np.nonzero(rows)[1].astype("<i4")


def _values(rows: Array) -> Array:
    found: Array = rows[rows != 0].astype("<f4")
    return found


def _pieces(x: Array) -> Iterator[Array]:
    for at in range(0, len(x), _ROWS):
        yield np.asarray(x[at : at + _ROWS])
        release(x)
