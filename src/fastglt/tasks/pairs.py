"""Pairs of nodes, without a direction: which are edges, which are not, drawn and split by a seed.

A pair is written as one number, its rank among all pairs of different nodes, so that sets of pairs are sorted
arrays. A tensor of pairs has a row for each: [pairs, 2].
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.system.seeds import derive

Numbers = npt.NDArray[np.int64]

VAL, TEST = 0.05, 0.1  # shares of the edges that a random split holds back
_NEGATIVES = 10  # for each link to test of a random split
_MOST_NEGATIVES = 100_000  # but no more than so many, unless there are as many links


def pair_numbers(pairs: Tensor, num_nodes: int) -> Numbers:
    """The number of each pair of different nodes.

    >>> pair_numbers(torch.tensor([[0, 1], [2, 0], [1, 2]]), 3).tolist()
    [0, 1, 2]
    """
    ends = pairs.cpu().numpy()
    low, high = ends.min(1), ends.max(1)
    found: Numbers = low * (2 * num_nodes - low - 1) // 2 + high - low - 1
    return found


def numbered_pairs(numbers: Numbers, num_nodes: int) -> Tensor:
    """The inverse, the smaller node first.

    >>> numbered_pairs(np.array([0, 1, 2]), 3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    nodes = np.arange(num_nodes)
    first = nodes * (2 * num_nodes - nodes - 1) // 2  # the number of each node's first pair
    low = np.searchsorted(first[: max(1, num_nodes - 1)], numbers, side="right") - 1
    return torch.from_numpy(np.stack([low, numbers - first[low] + low + 1], axis=1))


class NonEdges:
    """The pairs of different nodes that are no edges, to draw from, all alike.

    >>> square = NonEdges(torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0]]), 4)
    >>> square.count, sorted(square.draw(2, seed=0, distinct=True).tolist())
    (2, [[0, 2], [1, 3]])
    """

    def __init__(self, edges: Tensor, num_nodes: int) -> None:
        self._edges, self._nodes = np.unique(pair_numbers(edges, num_nodes)), num_nodes
        self._gaps = self._edges - np.arange(len(self._edges))  # how many pairs before each edge are none
        self.count = num_nodes * (num_nodes - 1) // 2 - len(self._edges)

    def draw(self, count: int, *, seed: int, distinct: bool = False) -> Tensor:
        """So many of them, in a random order; a pair may come twice unless they are to be distinct."""
        if self.count < (count if distinct else min(1, count)):
            raise InputError(
                f"a graph for link prediction must have {count:,} pairs of nodes that are no edge "
                f"(got {self.count:,}); use a sparser graph"
            )
        draws = np.random.Generator(np.random.PCG64(seed))
        places = (
            draws.choice(self.count, count, replace=False) if distinct else draws.integers(self.count, size=count)
        )
        numbers = places + np.searchsorted(self._gaps, places, side="right")  # the place-th that is no edge
        return numbered_pairs(numbers, self._nodes)


def random_link_split(edges: Tensor, num_nodes: int, seed: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Hold back a twentieth of the pairs that are edges for validation and a tenth to test, each with negatives.

    `edges` may list a pair several times, in either direction: it is held back as a whole. Negatives are distinct
    pairs that are no edge in any part, equally many for both: ten for each link to test (at most 100,000, or as
    many as links). Gives which rows of `edges` stay, and the pairs by the names that PyG has for them.
    """
    distinct, place = np.unique(pair_numbers(edges, num_nodes), return_inverse=True)
    held = [round(share * len(distinct)) for share in (VAL, TEST)]
    if min(held) < 1:
        raise InputError(
            f"a random link split holds back {VAL:.0%} and {TEST:.0%} of the edges, at least one each "
            f"(got {len(distinct):,} edges); use a larger graph, or bring a split of your own"
        )
    order = np.random.Generator(np.random.PCG64(derive(seed, "link split"))).permutation(len(distinct))
    val, test = order[: held[0]], order[held[0] : sum(held)]
    others, most = NonEdges(edges, num_nodes), max(held)
    count = min(
        max(most, min(_NEGATIVES * most, _MOST_NEGATIVES)), others.count // 2
    )  # of a dense graph, what is there
    drawn = others.draw(2 * count, seed=derive(seed, "link negatives"), distinct=True)
    negatives = drawn[:count], drawn[count:]
    kept = np.ones(len(distinct), dtype=np.bool_)
    kept[order[: sum(held)]] = False
    pairs: Mapping[str, Tensor] = {
        "val_pos_edge_index": numbered_pairs(distinct[np.sort(val)], num_nodes),
        "val_neg_edge_index": negatives[0],
        "test_pos_edge_index": numbered_pairs(distinct[np.sort(test)], num_nodes),
        "test_neg_edge_index": negatives[1],
    }
    return torch.from_numpy(kept[place]), {name: found.T.contiguous() for name, found in pairs.items()}
