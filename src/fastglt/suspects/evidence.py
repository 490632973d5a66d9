"""What a graph and its features tell about a pair of nodes, the pair's own edge left out of account.

An edge that is there and a pair that is no edge are looked at in the same way: so pairs drawn at random can stand
for edges that somebody has added.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph

Numbers = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.int64]  # [2, pairs]

_AT_A_TIME = 1 << 22  # stored numbers of sparse rows
_DENSE = 0.25  # share of numbers that are not zero from which on features are no bag of words


class Surroundings:
    """A graph and features, prepared so that many pairs can be looked at."""

    def __init__(self, graph: Graph, x: Features) -> None:
        from scipy.sparse import csr_array

        nodes = graph.num_nodes
        source, target = graph.edges.cpu().numpy()
        ends = (np.concatenate([source, target]), np.concatenate([target, source]))
        links = csr_array((np.ones(len(ends[0])), ends), (nodes, nodes))
        links.sum_duplicates()
        links.data[:] = 1.0  # an arrow and its reverse are one link
        self.links, self.rows = links, unit_rows(x)
        self.degree: Numbers = np.diff(links.indptr).astype(np.float64)

    def of(self, pairs: Pairs, *, linked: bool) -> dict[str, Numbers]:
        """The evidence of pairs that are all linked, or all not."""
        source, target = pairs
        both = self._beside(source, target, linked), self._beside(target, source, linked)
        return {
            "feature_similarity": row_dots(self.rows, self.rows, source, target),
            "neighbour_similarity": (both[0] + both[1]) / 2,
            "common_neighbours": row_dots(self.links, self._weighted_links, source, target),
        }

    def _beside(self, node: npt.NDArray[np.int64], other: npt.NDArray[np.int64], linked: bool) -> Numbers:
        """The cosine of a node's features and the sum of those of the other's neighbours, itself not counted."""
        sums, lengths = self._sums
        product, own = row_dots(self.rows, sums, node, other), self._squares[node] * linked
        left = lengths[other] - 2 * product * linked + own
        return (product - own) / np.sqrt(np.maximum(left, 1e-12))

    @cached_property
    def _squares(self) -> Numbers:
        return np.asarray((self.rows * self.rows).sum(1), dtype=np.float64)  # 1, or 0 of a row without features

    @cached_property
    def _sums(self) -> tuple[Any, Numbers]:
        """The sum of each node's neighbours' features, and its squared length."""
        sums = self.links @ self.rows
        return sums, np.asarray((sums * sums).sum(1), dtype=np.float64)

    @cached_property
    def _weighted_links(self) -> Any:
        """As Adamic and Adar count: a neighbour who knows everybody says little."""
        weighted = self.links.copy()
        weighted.data = 1 / np.log(np.maximum(self.degree[weighted.indices], 2))
        return weighted


def unit_rows(x: Features) -> Any:
    """Features as rows of length 1: rare words count for more; numbers that are no words are standardised first."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.preprocessing import StandardScaler, normalize

    values = x.values.cpu().double().numpy()
    shape = (x.num_nodes, x.num_features)
    words = csr_array((values, x.csr.indices.cpu().numpy(), x.csr.indptr.cpu().numpy()), shape)
    if (values < 0).any() or len(values) > _DENSE * shape[0] * shape[1]:
        return csr_array(normalize(StandardScaler().fit_transform(words.toarray())))
    return csr_array(TfidfTransformer().fit_transform(words))  # its rows have length 1


def row_dots(left: Any, right: Any, i: npt.NDArray[np.int64], j: npt.NDArray[np.int64]) -> Numbers:
    """⟨left[i], right[j]⟩ for many pairs of rows, a part of them at a time."""
    found = np.empty(len(i))
    cost = np.diff(left.indptr)[i] + np.diff(right.indptr)[j]
    for part in _parts(cost):
        found[part] = (left[i[part]] * right[j[part]]).sum(1)
    return found


def _parts(cost: npt.NDArray[Any]) -> Iterator[slice]:
    """Consecutive pairs whose rows have no more numbers together than are taken at a time, or one pair."""
    ends, start = cost.cumsum(), 0
    while start < len(cost):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _AT_A_TIME, side="right")))
        yield slice(start, stop)
        start = stop
