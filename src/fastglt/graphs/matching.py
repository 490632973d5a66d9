"""Which edges of one graph are also another's, whose nodes may have other numbers."""

import torch
from torch import Tensor

from fastglt.graphs.graph import Graph


def edges_before(before: Graph, after: Graph, nodes_before: Tensor) -> Tensor:
    """For each edge of a graph its number in an earlier one; −1 where that had no such edge.

    `nodes_before` has, for each node, its number in the earlier graph; −1 for a node that it did not have.

    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> turned = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> edges_before(path, turned, torch.tensor([2, 1, -1])).tolist()
    [1, -1]
    """
    ends = nodes_before.to(after.edges.device)[after.edges]
    known = (ends >= 0).all(0)
    if not before.directed:
        ends = torch.stack([ends.amin(0), ends.amax(0)])
    keys = before.edges[0] * before.num_nodes + before.edges[1]  # ascending, as edges are sorted
    wanted = ends[0] * before.num_nodes + ends[1]
    if keys.numel() == 0:
        return torch.full_like(wanted, -1)
    place = torch.searchsorted(keys, wanted).clamp(max=keys.numel() - 1)
    return torch.where(known & (keys[place] == wanted), place, -1)
