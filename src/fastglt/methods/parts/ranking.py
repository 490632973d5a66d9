"""Which elements go first and which return first: strengths and potentials, and cuts by exact count."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.kernels import extremes
from fastglt.methods.parts.schedules import Swap
from fastglt.system.seeds import permutation

NOT_TO_SWAP_BY = "strengths and gradients to swap by must be numbers (got NaN); try a lower learning rate"


def lowest(strengths: Tensor, count: int, seed: int) -> Tensor:
    """A boolean vector of the `count` smallest strengths; ties fall in a seeded random order.

    >>> lowest(torch.tensor([3.0, 1.0, 2.0]), 2, seed=0).tolist()
    [False, True, True]
    """
    return _outermost(strengths, count, seed, side=1)


def highest(strengths: Tensor, count: int, seed: int) -> Tensor:
    """A boolean vector of the `count` largest strengths; ties fall in a seeded random order."""
    return _outermost(strengths, count, seed, side=-1)


def _outermost(strengths: Tensor, count: int, seed: int, *, side: int) -> Tensor:
    """The smallest strengths (side 1) or the largest (side -1)."""
    chosen = np.zeros(strengths.shape, dtype=bool)
    chosen[_places(strengths.cpu().numpy(), count, seed, side)] = True
    return torch.from_numpy(chosen).to(strengths.device)


def _places(values: Any, count: int, seed: int, side: int) -> Any:
    """Where the `count` outermost values are."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    near = _near(values, count, side)
    return near[_settle(side * values[near], count, seed)]


def _settle(values: Any, count: int, seed: int) -> Any:
    """The places of the `count` smallest of a few values, ties in a seeded random order."""
    border = np.partition(values, count - 1)[count - 1]
    below, ties = np.flatnonzero(values < border), np.flatnonzero(values == border)
    return np.concatenate([below, ties[permutation(len(ties), seed).numpy()[: count - len(below)]]])


_AT_A_TIME = 2**18  # edges
_SAMPLED = 2**16  # values of many


def _near(values: Any, count: int, side: int) -> Any:
    """Where the `count` outermost values are, with few others: all beyond a guess at the innermost of them.

    It only saves sorting: should the guess be too strict, everything is near.
    """
    guess = side * _guess(side * values[_sample(values.size)], count, values.size)
    near = np.flatnonzero(values <= guess if side > 0 else values >= guess)
    return near if len(near) >= count else np.arange(values.size)


def _sample(size: int) -> slice:
    """Which of so many values are looked at to guess; an odd step, so that a matrix's do not keep to one column."""
    return slice(None, None, max(61, size // _SAMPLED | 1))


def _guess(sample: Any, count: int, size: int) -> float:
    """What the `count` smallest of so many values hardly exceed: a sample's quantile and four deviations more."""
    share = min(1.0, count / max(1, size))
    rank = math.ceil(len(sample) * share + 4 * math.sqrt(len(sample) * share * (1 - share)) + 4)
    return float(np.partition(sample, rank)[rank]) if rank < len(sample) else math.inf


def keep_largest(strengths: Tensor, count: int, seed: int) -> Tensor:
    """A boolean vector that keeps the `count` largest strengths."""
    if 2 * count < strengths.numel():  # the few are found sooner
        return highest(strengths, count, seed)
    return ~lowest(strengths, strengths.numel() - count, seed)


def keep_among(some: Tensor, strengths: Tensor, count: int, seed: int) -> Tensor:
    """A boolean vector that keeps, of some elements, the `count` with the largest strengths.

    >>> keep_among(torch.tensor([True, True, False]), torch.tensor([1.0, 2.0, 3.0]), 1, seed=0).tolist()
    [False, True, False]
    """
    kept = torch.zeros_like(some)
    kept[some] = keep_largest(strengths[some], count, seed)
    return kept


def keep_random(size: int, count: int, seed: int) -> Tensor:
    """A boolean vector that keeps `count` elements drawn at random."""
    kept = torch.zeros(size, dtype=torch.bool)
    kept[permutation(size, seed)[:count]] = True
    return kept


def swapped(kept: Tensor, swap: Swap, *, strength: Tensor, potential: Tensor, seed: int) -> Tensor:
    """Drop the kept elements of the smallest |strength|, regrow the pruned ones of the highest `potential`.

    Both are chosen on the mask as it was, so what is dropped cannot return in the same swap. There may be many
    millions of elements: one look at all of them finds the few that are sorted.
    """
    kept, strength, potential = kept.cpu(), strength.cpu(), potential.cpu()
    alive, after = int(np.count_nonzero(kept.numpy())), kept.numpy().copy()
    every = _sample(kept.numel())
    some, weak, promising = (part[every].numpy() for part in (kept, strength, potential))
    limits = (
        _guess(np.abs(weak[some]), swap.drop, alive),
        -_guess(-promising[~some], swap.grow, kept.numel() - alive),
    )
    found = extremes(kept, strength, potential, *limits)
    if len(found[0]) < swap.drop or len(found[1]) < swap.grow:  # guesses that were too strict
        found = extremes(kept, strength, potential, math.inf, -math.inf)
        if len(found[0]) < swap.drop or len(found[1]) < swap.grow:  # NaN is neither weak nor promising
            raise InputError(NOT_TO_SWAP_BY)
    sizes, promises = np.abs(strength.numpy()[found[0]]), -potential.numpy()[found[1]]
    if swap.drop:
        after[found[0][_settle(sizes, swap.drop, seed)]] = False
    if swap.grow:
        after[found[1][_settle(promises, swap.grow, seed + 1)]] = True
    return torch.from_numpy(after)


def edge_degree(full: Graph, pruned: Graph) -> Tensor:
    """(|N(i)| + |N(j)|) / 2 on the pruned graph, for every edge of the full one."""
    return pruned.degree[full.edges].sum(0) / 2


def edge_similarity(full: Graph, pruned: Graph) -> Tensor:
    """The paper's S_ij on the pruned graph: the product of both ends' mean neighbour degree^-1/2.

    It is large where degrees are low. A node without neighbours counts as 1, the largest value a mean
    can have, so that it comes first as it does under `edge_degree`.
    """
    return _neighbour_mean(pruned)[full.edges].prod(0)


def edge_peripherality(graph: Graph) -> Tensor:
    """TEDDY's strength (q_i/d_i)(q_j/d_j), q the mean neighbour degree^-1/2: low between hubs that know hubs."""
    return (_neighbour_mean(graph) / graph.degree.clamp(min=1))[graph.edges].prod(0)


def edge_cosine(graph: Graph, x: Features) -> Tensor:
    """The cosine of the features of an edge's two ends; 0 where one of them has none.

    >>> graph = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> edge_cosine(graph, Features(torch.tensor([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]]))).tolist()
    [0.7071067690849304, 0.0]
    """
    from scipy.sparse import csr_array

    stored = (x.values.cpu().numpy(), x.csr.indices.cpu().numpy(), x.csr.indptr.cpu().numpy())
    rows = csr_array(stored, (x.num_nodes, x.num_features))
    parts = np.split(graph.edges.cpu().numpy(), range(_AT_A_TIME, graph.num_edges, _AT_A_TIME), axis=1)
    products = np.concatenate([(rows[source] * rows[target]).sum(1) for source, target in parts])
    lengths = torch.from_numpy(np.sqrt((rows * rows).sum(1))).to(graph.edges.device)[graph.edges].prod(0)
    return torch.from_numpy(products).to(lengths) / lengths.clamp(min=torch.finfo(lengths.dtype).tiny)


def feature_norms(x: Features) -> Tensor:
    """The norm of each feature over all nodes, relative to their mean.

    >>> feature_norms(Features(torch.tensor([[3.0, 0.0], [4.0, 3.0]]))).tolist()
    [1.25, 0.75]
    """
    squares = torch.bincount(x.csr.indices.long(), x.values.double().square(), minlength=x.num_features)
    norms = squares.sqrt().float()
    return norms / norms.mean().clamp(min=torch.finfo(norms.dtype).tiny)


def _neighbour_mean(graph: Graph) -> Tensor:
    """Each node's mean of its neighbours' degree^-1/2; 1 without neighbours."""
    degree = graph.degree.clamp(min=1).float()
    source, target = graph.edges
    sums = torch.zeros_like(degree)
    sums.index_add_(0, source, degree.rsqrt()[target]).index_add_(0, target, degree.rsqrt()[source])
    return torch.where(graph.degree > 0, sums / degree, 1.0)


EDGE_POTENTIALS = {
    "degree": lambda full, pruned: -edge_degree(full, pruned),
    "similarity": edge_similarity,
}
