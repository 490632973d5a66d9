"""An order of a graph's nodes in which neighbours lie close, so that a product finds most rows in a cache.

Label propagation gathers nodes into groups that a near cache holds; groups, and nodes within them, follow reverse
Cuthill-McKee. Edges that were drawn at random have no such groups: that is seen after two looks at them.
"""

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels.csr import CSR

_GROUP = 1024  # nodes at most
_LOOKS, _SWEEPS = 2, 4  # passes over all messages: to see whether it is worth while, and beyond
_WORTH = 0.3  # share of the messages within groups from which on it is


def near_order(csr: CSR) -> Tensor | None:
    """The nodes of a symmetric pattern, neighbours close to one another; None if they cannot be brought so.

    >>> ring = torch.arange(4000)
    >>> far = (ring * 1777) % 4000  # neighbours on a ring that has been shuffled
    >>> rows, columns = torch.cat([far, far.roll(1)]), torch.cat([far.roll(1), far])
    >>> csr, _ = CSR.from_entries(rows, columns, (4000, 4000))
    >>> order = near_order(csr)
    >>> place = torch.empty(4000, dtype=torch.long).index_copy_(0, order, torch.arange(4000))
    >>> float((place[rows] - place[columns]).abs().float().median()) <= 2
    True
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    from fastglt.kernels import _pattern_loops

    nodes = csr.num_rows
    labels, sizes = np.arange(nodes, dtype=np.int32), np.ones(nodes, dtype=np.int32)
    _pattern_loops.group(*csr.arrays, _GROUP, _LOOKS, labels, sizes)
    if _pattern_loops.within_groups(*csr.arrays, labels) < _WORTH * max(1, csr.num_entries):
        return None
    _pattern_loops.group(*csr.arrays, _GROUP, _SWEEPS, labels, sizes)
    ones = np.ones(csr.num_entries, dtype=np.int8)
    matrix = csr_array((ones, csr.arrays[1], csr.narrow_indptr.numpy()), shape=(nodes, nodes))
    rank = np.empty(nodes, dtype=np.int64)
    rank[reverse_cuthill_mckee(matrix, symmetric_mode=True)] = np.arange(nodes)
    middle = np.bincount(labels, rank, nodes) / np.maximum(sizes, 1)
    return torch.from_numpy(np.lexsort((rank, labels, middle[labels])))
