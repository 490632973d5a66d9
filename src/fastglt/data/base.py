"""What every source of data hands over, and the few steps they share.

Sources speak numpy; torch and PyG are imported only when a finished `Dataset` is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from torch_geometric.data import Data

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A graph ready for training: `data` holds x, y, edge_index and the three masks."""

    name: str
    data: Data
    metric: str  # "accuracy" or "roc_auc"


class Masks(NamedTuple):
    """Which nodes are learnt from, which choose the epoch, and which are scored."""

    train: Bools
    val: Bools
    test: Bools


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A dataset as plain arrays, before it becomes a PyG object."""

    x: Floats
    y: Ints
    edges: Ints
    masks: Masks

    def dataset(self, *, name: str, metric: str) -> Dataset:
        """These arrays as a `Dataset`."""
        import torch

        with quiet_import():
            from torch_geometric.data import Data

        data = Data(
            x=torch.from_numpy(np.ascontiguousarray(self.x)),
            y=torch.from_numpy(np.ascontiguousarray(self.y)),
            edge_index=torch.from_numpy(np.ascontiguousarray(self.edges)),
            train_mask=torch.from_numpy(np.ascontiguousarray(self.masks.train)),
            val_mask=torch.from_numpy(np.ascontiguousarray(self.masks.val)),
            test_mask=torch.from_numpy(np.ascontiguousarray(self.masks.test)),
        )
        return Dataset(name=name, data=data, metric=metric)


class FileGraph(NamedTuple):
    """A user's graph as its file tells it; `masks` is None where the split is left to us."""

    features: Floats
    labels: Ints
    source: Ints
    target: Ints
    masks: Masks | None


@contextmanager
def quiet_import() -> Iterator[None]:
    """Keep to ourselves what PyG's own imports have to say about torch's deprecated parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def seeded_split(labels: Ints, seed: int, *, train: int = 20, val: int = 30) -> Masks:
    """So many nodes of each class to train and validate on, and the rest to test.

    A class too small for that is shared out in thirds, with at least one node to train on;
    nodes with a negative label are unlabelled and stay out.

    >>> masks = seeded_split(np.zeros(100, dtype=np.int64), seed=0)
    >>> [int(mask.sum()) for mask in masks]
    [20, 30, 50]
    """
    rng = np.random.default_rng(seed)
    masks = Masks(*(np.zeros(len(labels), dtype=np.bool_) for _ in range(3)))
    for label in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == label))
        to_train = min(train, max(1, len(members) // 3))
        to_val = min(val, (len(members) - to_train) // 2)
        masks.train[members[:to_train]] = True
        masks.val[members[to_train : to_train + to_val]] = True
        masks.test[members[to_train + to_val :]] = True
    return masks


def tidy_edges(source: Ints, target: Ints, *, nodes: int, directed: bool = False, keep_loops: bool = False) -> Ints:
    """Sorted distinct edges, by default without self loops; listed both ways unless directed.

    >>> tidy_edges(np.array([1, 0, 2]), np.array([0, 1, 2]), nodes=3).tolist()
    [[0, 1], [1, 0]]
    """
    if not keep_loops:
        proper = source != target
        source, target = source[proper], target[proper]
    if not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    pairs = np.unique(source * nodes + target)
    return np.stack([pairs // nodes, pairs % nodes])


def normalised_rows(features: csr_array) -> Floats:
    """Dense features whose rows sum to one; a row that sums to less is left as it is.

    The same arithmetic as PyG's `NormalizeFeatures`, done while the matrix is still sparse.
    """
    sums = np.maximum(np.asarray(features.sum(axis=1), dtype=np.float32), 1)
    scaled = features.astype(np.float32)
    scaled.data /= np.repeat(sums, np.diff(features.indptr))
    return scaled.toarray()
