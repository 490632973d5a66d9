"""How a graph's nodes are divided: into clusters by METIS or as they are numbered, or at random, ever anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.system.seeds import derive, permutation

METIS, RANDOM, BLOCKS = "metis", "random", "blocks"
PARTITIONS = (METIS, RANDOM, BLOCKS)

Group = tuple[tuple[int, ...], Tensor]  # the parts that are computed together, and their nodes in order


@dataclass(frozen=True, eq=False, kw_only=True)
class Partition:
    """A division of a graph's nodes into parts; `labels`, the part of each node, are None where parts are drawn."""

    num_nodes: int
    count: int
    labels: Tensor | None

    @property
    def is_fixed(self) -> bool:
        """Whether the parts stay the same."""
        return self.labels is not None

    def parts(self, seed: int) -> list[Tensor]:
        """The nodes of each part, in ascending order; random parts are drawn by the seed."""
        if self.labels is not None:
            return self._fixed
        order = permutation(self.num_nodes, derive(seed, "random parts"))
        return [part.sort().values for part in torch.tensor_split(order, self.count)]

    @cached_property
    def _fixed(self) -> list[Tensor]:
        assert self.labels is not None
        order = torch.argsort(self.labels, stable=True)
        sizes = self.labels.bincount(minlength=self.count).tolist()
        return [part for part in torch.split(order, sizes) if len(part)]

    def steps(self, seed: int, *, parts: int, shares: int) -> list[list[Group]]:
        """An epoch's steps: so many parts in each, in an order drawn by the seed, divided into shares.

        >>> two = Partition(num_nodes=6, count=3, labels=torch.tensor([0, 1, 2, 0, 1, 2]))
        >>> [[numbers for numbers, _ in step] for step in two.steps(2, parts=2, shares=1)]
        [[(2, 0)], [(1,)]]
        """
        found = self.parts(seed)
        order = permutation(len(found), derive(seed, "order of parts")).tolist()
        steps = [order[first : first + parts] for first in range(0, len(order), parts)]
        return [[_group(found, each) for each in _in_shares(step, shares)] for step in steps]


def _in_shares(parts: Sequence[int], shares: int) -> list[tuple[int, ...]]:
    """Some parts in shares of about equal numbers; there are fewer shares where parts are few."""
    found = [tuple(part) for part in np.array_split(np.array(parts), min(shares, len(parts)))]
    return [tuple(map(int, part)) for part in found]


def _group(parts: Sequence[Tensor], numbers: tuple[int, ...]) -> Group:
    if len(numbers) == 1:
        return numbers, parts[numbers[0]]
    return numbers, torch.cat([parts[number] for number in numbers]).sort().values


def divide(graph: Graph, count: int, kind: str) -> Partition:
    """A graph's nodes in so many parts."""
    check_count(graph, count)
    labels = None
    if kind == METIS:
        labels = cluster_labels(graph, count)
    elif kind == BLOCKS:
        labels = torch.arange(graph.num_nodes) * count // graph.num_nodes
    return Partition(num_nodes=graph.num_nodes, count=count, labels=labels)


def divided(graph: Graph, count: int, kind: str) -> Partition:
    """As `divide`, found once for each graph; what was cut from it has the same parts."""
    known: dict[tuple[int, str], Partition] = graph.origin.__dict__.setdefault("_divided", {})
    if (count, kind) not in known:
        known[count, kind] = divide(graph.origin, count, kind)
    return known[count, kind]


def check_count(graph: Graph, count: int) -> None:
    """Refuse more parts than there are nodes."""
    if count > graph.num_nodes:
        raise InputError(f"parts must not exceed the graph's {graph.num_nodes:,} nodes (got {count:,})")


def cluster_labels(graph: Graph, count: int) -> Tensor:
    """The METIS cluster of each node: about equally many nodes each, few edges between them; always the same."""
    try:
        import pymetis
    except ImportError:
        raise InputError(
            "partition must be random where the package pymetis is not installed (got metis); "
            "pip install 'fastglt[metis]' brings it"
        ) from None
    hop = graph.hops(None, depth=1)[0]
    if graph.directed:
        hop = Graph.from_edge_index(
            torch.cat([graph.edges, graph.edges.flip(0)], dim=1), graph.num_nodes, directed=False
        ).hops(None, depth=1)[0]
    others = hop.is_loop == 0
    csr = hop.csr.select(others.nonzero().squeeze(1))
    rows = pymetis.CSRAdjacency(csr.indptr.cpu().numpy(), csr.indices.cpu().numpy())
    _, labels = pymetis.part_graph(count, adjacency=rows)
    return torch.as_tensor(np.asarray(labels, dtype=np.int64))
