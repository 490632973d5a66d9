"""The Planetoid citation networks (Cora, CiteSeer, PubMed) with their public split.

The authors published Python 2 pickles. They are opened by an unpickler that knows only the few
classes those files need, so a tampered file is refused instead of run.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastglt.data.base import Ints, Parts, SplitMasks, normalised_rows, tidy_edges
from fastglt.data.raw import RawFiles

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PIECES = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
VALIDATION_NODES = 500  # the public split validates on the 500 nodes after the training nodes


def planetoid(name: str) -> RawFiles:
    """The raw files of one citation network, such as "Cora"."""
    files = tuple(f"ind.{name.lower()}.{piece}" for piece in PIECES)
    read = partial(_read, f"ind.{name.lower()}")
    return RawFiles(folder=f"planetoid/{name}", files=files, pyg="Planetoid", read=read)


def _read(prefix: str, folder: Path, split_seed: int) -> Parts:
    """The network in `folder`; its split is public and fixed, whatever the seed."""

    def piece(name: str) -> Any:
        return _unpickle(folder / f"{prefix}.{name}")

    first_labels = piece("ally").argmax(axis=1)
    test = np.loadtxt(folder / f"{prefix}.test.index", dtype=np.int64)
    trained, first, nodes = len(piece("y")), len(first_labels), int(test.max()) + 1

    # CiteSeer's test ids have gaps: those nodes keep empty features and the first class.
    labels = np.zeros(nodes, dtype=np.int64)
    labels[:first], labels[test] = first_labels, piece("ty").argmax(axis=1)
    row = np.full(nodes, first + len(test))
    row[:first], row[test] = np.arange(first), first + np.arange(len(test))
    features = _stack(piece("allx"), piece("tx"))[row]

    masks = SplitMasks(*(np.zeros(nodes, dtype=np.bool_) for _ in range(3)))
    masks.train[:trained] = True
    masks.val[trained : trained + VALIDATION_NODES] = True
    masks.test[test] = True
    return Parts(x=normalised_rows(features), y=labels, edges=_edges(piece("graph"), nodes), masks=masks)


def _stack(*matrices: Any) -> csr_array:
    """One matrix over the other, then an empty row."""
    from scipy.sparse import csr_array, vstack

    # Rebuilt, since the published objects were pickled by a much older scipy.
    parts = [(matrix.data, matrix.indices, matrix.indptr) for matrix in matrices]
    width = max(int(indices.max()) for _, indices, _ in parts) + 1
    rebuilt = [csr_array(part, (len(part[2]) - 1, width)) for part in parts]
    return csr_array(vstack([*rebuilt, csr_array((1, width), dtype=np.float32)], format="csr"))


def _edges(neighbours: dict[int, list[int]], nodes: int) -> Ints:
    degrees = [len(ids) for ids in neighbours.values()]
    source = np.repeat(np.fromiter(neighbours, dtype=np.int64), degrees)
    target = np.fromiter(chain.from_iterable(neighbours.values()), dtype=np.int64)
    return tidy_edges(source, target, nodes=nodes)


def _unpickle(path: Path) -> Any:
    with path.open("rb") as file:
        return _Unpickler(file, encoding="latin1").load()


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        from numpy._core.multiarray import _reconstruct
        from scipy.sparse import csr_matrix

        known = {
            "__builtin__.list": list,
            "collections.defaultdict": defaultdict,
            "numpy.core.multiarray._reconstruct": _reconstruct,
            "numpy.dtype": np.dtype,
            "numpy.ndarray": np.ndarray,
            "scipy.sparse.csr.csr_matrix": csr_matrix,
        }
        if f"{module}.{name}" not in known:
            raise pickle.UnpicklingError(f"{module}.{name} has no place in this file")
        return known[f"{module}.{name}"]
