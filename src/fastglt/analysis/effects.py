"""What a ticket's masks have done to its graph and to its network."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fastglt.analysis.distribution import Distribution, degree_bins
from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models.operations import Linear, Operation


@dataclass(frozen=True, kw_only=True)
class Homophily:
    """The share of edges between two nodes of one class; None where there are no edges to look at.

    It needs every node's label, test nodes included: something to look at afterwards, never to prune by.
    """

    whole: float | None  # of the graph before
    kept: float | None  # of the graph after
    pruned: float | None


@dataclass(frozen=True, kw_only=True)
class GraphAnalysis:
    """A graph before and after pruning. Self-loops are no edges; components ignore an edge's direction."""

    nodes: int
    edges_before: int
    edges_after: int
    components_before: int
    components_after: int
    largest_before: int  # nodes of the largest component
    largest_after: int
    isolated_before: int  # nodes without any neighbour
    isolated_after: int
    degree_before: Distribution  # of the nodes; in a directed graph, arrows in and out
    degree_after: Distribution
    homophily: Homophily | None  # None without labels

    @property
    def newly_isolated(self) -> int:
        """Nodes that pruning has left without any neighbour."""
        return self.isolated_after - self.isolated_before


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """What is left of one weight matrix."""

    name: str
    shape: tuple[int, ...]
    kept: int
    empty_rows: int  # rows without any kept weight
    empty_columns: int

    @property
    def sparsity(self) -> float:
        """The share of weights removed."""
        size = int(np.prod(self.shape))
        return (size - self.kept) / size if size else 0.0


@dataclass(frozen=True, kw_only=True)
class Units:
    """Features, hidden units or classes that no kept weight reaches or uses.

    A hidden unit that nothing reaches gives a constant, its bias, to every node: it tells no node from another.
    """

    name: str
    size: int
    unreached: int | None  # without an incoming kept weight; None for features, which come from the data
    unused: int | None  # without an outgoing kept weight; None for classes, which are the result
    dead: int  # either of them


@dataclass(frozen=True, kw_only=True)
class WeightAnalysis:
    """A network's weights after pruning."""

    matrices: tuple[Matrix, ...]
    units: tuple[Units, ...]  # none where nobody knows which matrix feeds which


def describe_graph(graph: Graph, kept: Mask, labels: Tensor | None = None) -> GraphAnalysis:
    """A graph before and after a mask; a negative label is an unknown one.

    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> found = describe_graph(path, Mask([1, 0]), torch.tensor([5, 5, 6]))
    >>> found.components_after, found.newly_isolated, found.homophily
    (2, 1, Homophily(whole=0.5, kept=1.0, pruned=0.0))
    """
    pruned = graph.prune(kept)
    bins = degree_bins(int(graph.degree.max()) if graph.num_nodes else 0)
    sizes_before, sizes_after = _component_sizes(graph), _component_sizes(pruned)
    return GraphAnalysis(
        nodes=graph.num_nodes,
        edges_before=graph.num_edges,
        edges_after=pruned.num_edges,
        components_before=len(sizes_before),
        components_after=len(sizes_after),
        largest_before=max(sizes_before, default=0),
        largest_after=max(sizes_after, default=0),
        isolated_before=int((graph.degree == 0).sum()),
        isolated_after=int((pruned.degree == 0).sum()),
        degree_before=Distribution.of(graph.degree, bins),
        degree_after=Distribution.of(pruned.degree, bins),
        homophily=None if labels is None else _homophily(graph, kept, labels),
    )


def describe_weights(weights: Mapping[str, Mask], operations: Iterable[Operation] = ()) -> WeightAnalysis:
    """What is left of each matrix and, from a backbone's `operations`, of its units.

    >>> masks = {"one": Mask([[1, 0], [0, 0]]), "two": Mask([[1], [1]])}
    >>> steps = [("one", "features", "hidden"), ("two", "hidden", "classes")]
    >>> found = describe_weights(masks, [Linear(layer="", weight=w, reads=r, writes=s) for w, r, s in steps])
    >>> [(units.name, units.dead) for units in found.units]
    [('features', 1), ('hidden', 1), ('classes', 0)]
    """
    matrices = tuple(_matrix(name, mask) for name, mask in weights.items())
    return WeightAnalysis(matrices=matrices, units=tuple(_units(weights, operations)))


def _matrix(name: str, mask: Mask) -> Matrix:
    kept = mask.kept.reshape(mask.shape[0], -1)  # a user's tensor may have other dimensions
    return Matrix(
        name=name,
        shape=mask.shape,
        kept=mask.count,
        empty_rows=int((~kept.any(1)).sum()),
        empty_columns=int((~kept.any(0)).sum()),
    )


def _units(weights: Mapping[str, Mask], operations: Iterable[Operation]) -> list[Units]:
    reached: dict[str, Tensor] = {}
    used: dict[str, Tensor] = {}
    for operation in operations:
        if isinstance(operation, Linear):
            kept = weights[operation.weight].kept
            used[operation.reads] = kept.any(1) | used.get(operation.reads, torch.tensor(False))
            reached[operation.writes] = kept.any(0) | reached.get(operation.writes, torch.tensor(False))
    found = []
    for name in dict.fromkeys([*used, *reached]):
        ends = [side[name] for side in (reached, used) if name in side]
        found.append(
            Units(
                name=name,
                size=ends[0].numel(),
                unreached=int((~reached[name]).sum()) if name in reached else None,
                unused=int((~used[name]).sum()) if name in used else None,
                dead=int((~torch.stack(ends).all(0)).sum()),
            )
        )
    return found


def _component_sizes(graph: Graph) -> list[int]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    source, target = graph.edges.cpu().numpy()
    links = coo_array((np.ones(len(source), dtype=bool), (source, target)), shape=(graph.num_nodes,) * 2)
    _, component = connected_components(links, directed=True, connection="weak")
    return [int(size) for size in np.bincount(component)]


def _homophily(graph: Graph, kept: Mask, labels: Tensor) -> Homophily:
    if labels.shape != (graph.num_nodes,):
        raise InputError(f"labels must be one for each of {graph.num_nodes} nodes (got {tuple(labels.shape)})")
    ends = labels.cpu()[graph.edges.cpu()]
    known, same, stays = (ends >= 0).all(0), ends[0] == ends[1], kept.kept.cpu()

    def share(among: Tensor) -> float | None:
        chosen = same[among & known]
        return float(chosen.double().mean()) if chosen.numel() else None

    return Homophily(whole=share(torch.ones_like(stays)), kept=share(stays), pruned=share(~stays))
