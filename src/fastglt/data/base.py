"""What every source of data hands over, and the few steps they share.

Sources speak numpy; torch is imported when a finished `Dataset` is made, PyG when one asks for its `data`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastglt.system.quiet import quiet_import

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from torch import Tensor
    from torch_geometric.data import Data

    from fastglt.data.disk.opening import Compressed

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Names(NamedTuple):
    """What a file calls its nodes and classes, by their numbers."""

    nodes: tuple[str, ...]
    classes: tuple[str, ...]  # empty where they are not known


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A graph ready for training: x, y, edge_index, three masks and, if it has some, edge_weight and edge_attr."""

    name: str
    tensors: dict[str, Tensor]  # x may be sparse, in compressed rows
    metric: str  # the name of one, as in `fastglt.tasks.metrics`
    names: Names | None = None  # where nodes and classes are more than numbers
    reversed_edges: int = 0  # edges of a file that were listed one way, and are taken both ways
    compressed: Compressed | None = None  # the rows of a large graph that is prepared on disk
    directed: bool = False  # whether it was read so: each direction of an edge is an edge of its own
    drawn: bool = False  # whether the split was drawn by its seed, as the source has none

    @property
    def direction(self) -> dict[str, Any]:
        """What a task is told beside the tensors: a directed graph may have each of its edges both ways.

        >>> Dataset(name="mine", tensors={}, metric="accuracy", directed=True).direction
        {'directed': True}
        """
        return {"directed": True} if self.directed else {}

    @cached_property
    def data(self) -> Data:
        """The tensors as a PyG object."""
        with quiet_import():
            from torch_geometric.data import Data

        return Data(**{**self.tensors, "x": self.tensors["x"].to_dense()})


class SplitMasks(NamedTuple):
    """Which nodes are learnt from, which choose the epoch, and which are scored."""

    train: Bools
    val: Bools
    test: Bools


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A dataset as plain arrays."""

    x: Floats | csr_array  # a sparse one is sorted and has no stored zeros
    y: Ints | Floats  # whole numbers are classes; several columns are labels of which each is there or not
    edges: Ints
    masks: SplitMasks
    edge_weight: Floats | None = None  # of each of the edges
    edge_attr: Floats | None = None  # a row of features for each of the edges
    reversed_edges: int = 0
    known_as: str | None = None  # what it is, where a name alone would say too much
    drawn: bool = False  # whether the masks were drawn by a seed

    def dataset(self, *, name: str, metric: str, names: Names | None = None) -> Dataset:
        """These arrays as a `Dataset`."""
        import torch

        masks = {f"{split}_mask": mask for split, mask in self.masks._asdict().items()}
        arrays = {"y": self.y, "edge_index": self.edges, **masks}
        values = {"edge_weight": self.edge_weight, "edge_attr": self.edge_attr}
        arrays |= {name: value for name, value in values.items() if value is not None}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        if isinstance(self.x, np.ndarray):
            x = torch.from_numpy(np.ascontiguousarray(self.x))
        else:
            x = sparse_tensor(self.x)
        return Dataset(
            name=self.known_as or name,
            tensors={"x": x, **tensors},
            metric=metric,
            names=names,
            reversed_edges=self.reversed_edges,
            drawn=self.drawn,
        )


class FileGraph(NamedTuple):
    """A user's graph as its file tells it; `masks` is None where the split is left to us."""

    features: Floats
    labels: Ints | Floats  # whole numbers are classes; several columns are labels, each there or not
    source: Ints
    target: Ints
    masks: SplitMasks | None
    names: Names | None = None
    weights: npt.NDArray[np.float64] | None = None  # of each edge, as it is listed


def seeded_split(labels: Ints, seed: int, *, train: int = 20, val: int = 30) -> SplitMasks:
    """So many nodes of each class to train and validate on, and the rest to test.

    A class too small for that is shared out in thirds, with at least one node to train on;
    nodes with a negative label are unlabelled and stay out.

    >>> masks = seeded_split(np.zeros(100, dtype=np.int64), seed=0)
    >>> [int(mask.sum()) for mask in masks]
    [20, 30, 50]
    """
    rng = np.random.default_rng(seed)
    masks = SplitMasks(*(np.zeros(len(labels), dtype=np.bool_) for _ in range(3)))
    for label in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == label))
        to_train = min(train, max(1, len(members) // 3))
        to_val = min(val, (len(members) - to_train) // 2)
        masks.train[members[:to_train]] = True
        masks.val[members[to_train : to_train + to_val]] = True
        masks.test[members[to_train + to_val :]] = True
    return masks


def random_split(count: int, seed: int) -> SplitMasks:
    """Three fifths of the nodes to train on, a fifth to validate, the rest to test: for labels that are no classes.

    >>> [int(mask.sum()) for mask in random_split(100, seed=0)]
    [60, 20, 20]
    """
    order = np.random.default_rng(seed).permutation(count)
    masks = SplitMasks(*(np.zeros(count, dtype=np.bool_) for _ in range(3)))
    for mask, members in zip(masks, np.split(order, [3 * count // 5, 4 * count // 5]), strict=True):
        mask[members] = True
    return masks


def tidy_edges(source: Ints, target: Ints, *, nodes: int, directed: bool = False, keep_loops: bool = False) -> Ints:
    """Sorted distinct edges, by default without self loops; listed both ways unless directed.

    >>> tidy_edges(np.array([1, 0, 2]), np.array([0, 1, 2]), nodes=3).tolist()
    [[0, 1], [1, 0]]
    """
    if not keep_loops and not (proper := source != target).all():
        source, target = source[proper], target[proper]
    pairs = source * nodes + target
    if not directed:
        pairs = np.concatenate([pairs, target * nodes + source])
    pairs = sorted_distinct(pairs)
    edges = np.empty((2, len(pairs)), dtype=np.int64)
    np.divmod(pairs, nodes, out=(edges[0], edges[1]))
    return edges


def sorted_distinct(numbers: Ints) -> Ints:
    """What `np.unique` gives, several times as fast and without a table of all numbers: they are sorted in place.

    >>> sorted_distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    numbers.sort()
    fresh = np.ones(len(numbers), dtype=np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=fresh[1:])
    return numbers if fresh.all() else numbers[fresh]


def sparse_tensor(matrix: csr_array) -> Tensor:
    """A sparse matrix as PyTorch has it, in compressed rows."""
    import torch

    indptr, indices, values = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_csr_tensor(indptr, indices, values, matrix.shape, check_invariants=False)


def normalised_rows(features: csr_array) -> csr_array:
    """Features whose rows sum to one; a row that sums to less is left as it is.

    The arithmetic of PyG's `NormalizeFeatures`, done without writing the zeros out.
    """
    sums = np.maximum(np.asarray(features.sum(axis=1), dtype=np.float32), 1)
    scaled = features.astype(np.float32)
    scaled.data /= np.repeat(sums, np.diff(features.indptr))
    scaled.sum_duplicates()
    scaled.eliminate_zeros()
    return scaled
