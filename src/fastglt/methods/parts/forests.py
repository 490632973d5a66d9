"""Which edges hold a graph together: spanning forests of the strongest, and how edges stand with their ends."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.system.seeds import permutation


def keep_forests(
    edges: Tensor,
    strength: Tensor,
    num_nodes: int,
    count: int,
    *,
    forests: int | None = 1,
    among: Tensor | None = None,
    seed: int = 0,
) -> Tensor:
    """Keep `count` edges: forests as long as they fit, then the strongest of the rest.

    The first forest is the maximum spanning forest by strength, the next one that of the edges which are left,
    and so on, so that they share no edge; None: as many as fit. Of one that does not fit, the strongest edges are
    kept, and of the first each node's strongest edge before all others. With `among`, forests are of these edges
    alone. `edges` are distinct pairs of different nodes, whose direction does not matter here. Ties fall in a
    seeded random order, the same on every machine.

    >>> triangle = torch.tensor([[0, 0, 1], [1, 2, 2]])
    >>> keep_forests(triangle, torch.tensor([0.9, 0.1, 0.5]), 3, 2).tolist()
    [True, False, True]
    """
    ends, order = edges.cpu().numpy(), _strongest_first(strength, seed)
    kept = np.zeros(len(order), dtype=bool)
    left = order if among is None else order[among.cpu().numpy()[order]]  # the strongest first, all the time
    found = 0
    while count > 0 and len(left) and (forests is None or found < forests):
        inside = _in_forest(ends, left, num_nodes)
        forest = left[inside[left]]
        if found == 0 and len(forest) > count:
            forest = _strongest_of_each_first(forest, ends, num_nodes)
        kept[forest[:count]] = True
        count, left, found = count - min(count, len(forest)), left[~inside[left]], found + 1
    kept[order[~kept[order]][:count]] = True
    return torch.from_numpy(kept).to(strength.device)


def edge_standing(edges: Tensor, strength: Tensor, num_nodes: int, *, seed: int = 0) -> Tensor:
    """How an edge stands with the end where it stands better: 1 − log rank / log degree, by strength.

    It is 1 for a node's strongest edge and 0 for its weakest; a node with few edges lets go of fewer.

    >>> triangle = torch.tensor([[0, 0, 1], [1, 2, 2]])
    >>> edge_standing(triangle, torch.tensor([0.9, 0.5, 0.1]), 3).tolist()
    [1.0, 1.0, 0.0]
    """
    ends, order = edges.cpu().numpy(), _strongest_first(strength, seed)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    node, rank = np.divmod(np.sort((ends << 32 | place).ravel()), 1 << 32)  # node by node, the strongest first
    degree = np.bincount(node, minlength=num_nodes)
    first = degree.cumsum() - degree
    among = np.arange(1, len(node) + 1) - first[node]
    log = np.log(np.arange(1, max(2, degree.max(initial=0)) + 1))  # of 1, 2, …
    standing = np.zeros(len(order), dtype=np.float32)
    better = 1 - log[among - 1] / log[np.maximum(degree, 2) - 1][node]
    np.maximum.at(standing, order[rank], better.astype(np.float32))  # of one type, or it takes twenty times as long
    return torch.from_numpy(standing).to(strength.device)


def _strongest_first(strength: Tensor, seed: int) -> Any:
    """The numbers of the edges in one order, to single precision.

    Plain numbers sort several times faster than places do, so strength and place are one number: a strength's bits,
    turned such that stronger is smaller, before those of its place in a shuffled row.
    """
    shuffled = permutation(strength.numel(), seed).numpy()
    bits = strength.detach().cpu().float().numpy()[shuffled].view(np.uint32)
    negative = bits >> np.uint32(31) == 1
    falling = np.where(negative, bits, bits ^ np.uint32(0x7FFFFFFF)).astype(np.uint64)
    keys = np.sort(falling << np.uint64(32) | np.arange(len(bits), dtype=np.uint64))
    return shuffled[keys & np.uint64(0xFFFFFFFF)]


def _in_forest(ends: Any, order: Any, num_nodes: int) -> Any:
    """Which edges are in the spanning forest that takes those of an order as early as it can; there is only one."""
    from scipy.sparse import csr_array  # 20 MB that other methods do without
    from scipy.sparse.csgraph import minimum_spanning_tree

    cost = np.zeros(ends.shape[1])
    cost[order] = np.arange(1, len(order) + 1)
    taken = np.flatnonzero(cost)
    low, high = (end if len(taken) == len(end) else end[taken] for end in ends)
    if (low >= high).any() or (np.diff(low * num_nodes + high) <= 0).any():
        low, high = np.minimum(low, high), np.maximum(low, high)
        by_pair = np.lexsort((cost[taken], high, low))
        pair = low[by_pair] * num_nodes + high[by_pair]
        first = by_pair[np.append(True, pair[1:] != pair[:-1])]  # an arrow and its reverse are one edge
        taken, low, high = taken[first], low[first], high[first]
    rows = np.append(0, np.bincount(low, minlength=num_nodes).cumsum())
    matrix = csr_array((cost[taken], high.astype(np.int32), rows.astype(np.int32)), (num_nodes, num_nodes))
    inside = np.zeros(len(cost), dtype=bool)
    inside[order[minimum_spanning_tree(matrix, overwrite=True).data.astype(np.int64) - 1]] = True
    return inside


def _strongest_of_each_first(forest: Any, ends: Any, num_nodes: int) -> Any:
    """Each node's strongest edge before the others of a forest; both parts in the order they come in."""
    first = np.full(num_nodes, len(forest))
    for end in ends:
        np.minimum.at(first, end[forest], np.arange(len(forest)))
    held = np.zeros(len(forest), dtype=bool)
    held[first[first < len(forest)]] = True
    return np.concatenate([forest[held], forest[~held]])
