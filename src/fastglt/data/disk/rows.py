"""A graph's edges row by row: who receives from whom along which edge, written in ranges that memory holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from fastglt.data.base import Ints
from fastglt.data.disk.layout import Array, create, file_of, release

FEWEST = 1 << 16  # numbers that are sorted at a time, however little memory there may be
_AT_A_TIME = 1 << 22  # edges
_BYTES = 64  # of memory that an entry takes while its row is made


def number_type(count: int) -> type[np.int32] | type[np.int64]:
    """What so many edges are numbered with, and one more for self-loops."""
    return np.int32 if count < 2**31 - 1 else np.int64


def write_rows(folder: Path, nodes: int, *, directed: bool, memory: int, tell: Callable[[str], None]) -> None:
    """Write `indptr`, `senders`, `entry_edge`, `edge_index` and `column_edge` of the edges in a folder.

    Every node receives from itself too; that entry has the number of edges. The columns of `edge_index` are sorted
    by source and target, the self-loops of the data last.
    """
    edges = np.load(file_of(folder, "edges"), mmap_mode="r")
    loops, count = np.load(file_of(folder, "loops")), edges.shape[1]
    indptr = _pointers(edges, nodes, directed)
    np.save(file_of(folder, "indptr"), indptr)
    numbers = number_type(count)
    senders = create(folder, "senders", np.int32, (int(indptr[-1]),))
    entry_edge = create(folder, "entry_edge", numbers, (int(indptr[-1]),))
    columns = count * (1 if directed else 2)
    edge_index = create(folder, "edge_index", np.int64, (2, columns + len(loops)))
    column_edge = create(folder, "column_edge", numbers, (columns + len(loops),))
    edge_index[:, columns:], column_edge[columns:] = loops, count
    for start, stop in _ranges(indptr, max(FEWEST, memory // _BYTES)):
        rows, found, ids = _range(edges, start, stop, directed=directed, numbers=numbers)
        here = slice(int(indptr[start]), int(indptr[stop]))
        senders[here], entry_edge[here] = found, ids
        if not directed:
            proper = ids != count
            there = slice(here.start - start, here.stop - stop)
            edge_index[0, there], edge_index[1, there] = rows[proper], found[proper]
            column_edge[there] = ids[proper]
        for written in (senders, entry_edge, edge_index, column_edge):
            release(written)
        tell(f"rows of {stop:,} of {nodes:,} nodes")
    if directed:
        for at in range(0, count, _AT_A_TIME):
            here = slice(at, min(count, at + _AT_A_TIME))
            edge_index[:, here], column_edge[here] = edges[:, here], np.arange(here.start, here.stop)
            release(edge_index)


def _pointers(edges: Array, nodes: int, directed: bool) -> Ints:
    """Where each row begins: a node receives from itself and from its neighbours."""
    degree = np.ones(nodes, dtype=np.int64)
    for at in range(0, edges.shape[1], _AT_A_TIME):
        for end in (1,) if directed else (0, 1):
            degree += np.bincount(edges[end, at : at + _AT_A_TIME], minlength=nodes)
        release(edges)
    return np.concatenate([np.zeros(1, dtype=np.int64), degree.cumsum()])


def _ranges(indptr: Ints, most: int) -> list[tuple[int, int]]:
    """Consecutive rows with about so many entries at most."""
    found, start, last = list[tuple[int, int]](), 0, len(indptr) - 1
    while start < last:
        stop = max(start + 1, int(np.searchsorted(indptr, indptr[start] + most, side="right")) - 1)
        found.append((start, min(stop, last)))
        start = found[-1][1]
    return found


def _range(edges: Array, start: int, stop: int, *, directed: bool, numbers: type) -> tuple[Array, Array, Array]:
    """Receivers, senders and edges of some rows, in order.

    Edges are sorted: those that come to a row from lower nodes are met in their order, and before those to higher
    ones. So a sort by counting, which keeps what it meets in order, leaves each row sorted.
    """
    from scipy.sparse import coo_array

    count = edges.shape[1]
    first, last = (int(np.searchsorted(edges[0], bound)) for bound in (start, stop))
    met: list[tuple[Array, Array, Array]] = []
    for at in range(0, count if directed else last, _AT_A_TIME):
        end = min(at + _AT_A_TIME, count if directed else last)
        targets = edges[1, at:end]
        inside = np.flatnonzero((targets >= start) & (targets < stop))
        met.append((targets[inside] - start, edges[0, at:end][inside], (inside + at).astype(numbers)))
        release(edges)
    nodes = np.arange(start, stop)
    loops: tuple[Array, Array, Array] = (nodes - start, nodes, np.full(stop - start, count, dtype=numbers))
    every = [*met, loops]
    if not directed:  # arrows from lower and from higher nodes are met together
        ids: Array = np.arange(first, last, dtype=numbers)
        every.append((edges[0, first:last] - start, edges[1, first:last], ids))
    rows, columns, numbers_of = (np.concatenate(part) for part in zip(*every, strict=True))
    width = int(columns.max()) + 1 if len(columns) else 1
    kind = np.int32 if width < 2**31 else np.int64
    found = coo_array((numbers_of, (rows.astype(kind), columns.astype(kind))), shape=(stop - start, width)).tocsr()
    found.sort_indices()
    return np.repeat(nodes, np.diff(found.indptr)), found.indices, found.data
