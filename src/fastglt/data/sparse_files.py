"""Numpy archives of sparse matrices: a network with its features and labels, or an adjacency alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fastglt.data.base import Ints, tidy_edges
from fastglt.data.zip_bounds import check_directory, check_size, member
from fastglt.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS = ("data", "indices", "indptr", "shape")
_NETWORK = tuple(f"{part}_{name}" for part in ("adj", "attr") for name in _ROWS)


@dataclass(frozen=True, kw_only=True)
class SparseNetwork:
    """A network as plain arrays; its edges in both directions."""

    features: csr_array
    labels: Ints
    edges: Ints

    def largest_component(self) -> SparseNetwork:
        """The nodes of the largest connected part alone, in the order they have."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        nodes = len(self.labels)
        ones = np.ones(self.edges.shape[1], dtype=np.int8)
        part = connected_components(csr_array((ones, tuple(self.edges)), (nodes, nodes)), directed=False)[1]
        kept = np.flatnonzero(part == np.bincount(part).argmax())
        place = np.full(nodes, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        edges = place[self.edges]
        return SparseNetwork(
            features=self.features[kept], labels=self.labels[kept], edges=edges[:, (edges >= 0).all(0)]
        )


def read_network(path: Path) -> SparseNetwork:
    """A network with features and labels, as DeepRobust downloads them; arrays of names are left alone."""
    from scipy.sparse import csr_array

    with _opened(path, (*_NETWORK, "labels")) as raw:
        rows, columns = (int(size) for size in raw["attr_shape"])
        stored = (raw["attr_data"].astype(np.float32), raw["attr_indices"], raw["attr_indptr"])
        features = csr_array(stored, (rows, columns))
        features.sum_duplicates()
        features.eliminate_zeros()
        labels = raw["labels"].astype(np.int64)
        source, target = _entries(raw, "adj_")
    if labels.shape != (rows,):
        raise InputError(f"{path}: labels must have one for each of {rows} rows (got shape {labels.shape})")
    return SparseNetwork(features=features, labels=labels, edges=tidy_edges(source, target, nodes=rows))


def read_adjacency(path: Path) -> tuple[Ints, Ints, int]:
    """Sources, targets and the number of nodes of a square matrix that `scipy.sparse.save_npz` has written."""
    with _opened(path, _ROWS) as raw:
        rows, columns = (int(size) for size in raw["shape"])
        if rows != columns:
            raise InputError(f"{path}: an adjacency must be square (got {rows} × {columns})")
        return *_entries(raw, ""), rows


def _entries(raw: np.lib.npyio.NpzFile, prefix: str) -> tuple[Ints, Ints]:
    """Where a matrix in compressed rows is not zero."""
    data, indices, indptr, shape = (raw[f"{prefix}{name}"] for name in _ROWS)
    counts = np.diff(indptr)
    fits = len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
    if not fits or (counts < 0).any() or (indices.size and not 0 <= indices.min() <= indices.max() < shape[1]):
        raise ValueError("rows and columns that do not fit the shape")
    source = np.repeat(np.arange(shape[0]), counts)
    there = np.asarray(data) != 0
    return source[there].astype(np.int64), indices[there].astype(np.int64)


@contextmanager
def _opened(path: Path, names: tuple[str, ...]) -> Iterator[np.lib.npyio.NpzFile]:
    """An archive with these arrays, no larger than they say; any damage is one line."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            assert archive.zip is not None, "it was just opened"
            check_directory(archive.zip)
            for name in names:
                if name not in archive.files:
                    raise ValueError(f"no array '{name}'")
            check_size({name: member(archive.zip, name) for name in names}, path.stat().st_size)
            yield archive
    except (InputError, MemoryError):
        raise
    except Exception as error:  # a damaged file can fail in any way
        got = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{path}: must be a sparse matrix or network as published (got {got}); take a fresh copy"
        ) from error
