"""From the columns of an `edge_index` to edges: which are one edge, and whether each has its reverse."""

import torch
from torch import Tensor

from fastglt.kernels import backend
from fastglt.kernels.csr import LARGE
from fastglt.kernels.patterns import count_columns


def is_symmetric(edge_index: Tensor, num_nodes: int) -> bool:
    """Whether each column has its reverse."""
    source, target = edge_index
    forward = torch.unique(source * num_nodes + target)
    return torch.equal(forward, torch.unique(target * num_nodes + source))


def numbered_columns(columns: Tensor, num_nodes: int, *, directed: bool) -> tuple[Tensor, Tensor]:
    """The distinct edges in order, and the edge of each column; self-loops come last, numbered by how many edges.

    >>> edges, edge_of = numbered_columns(torch.tensor([[1, 0, 2], [0, 1, 2]]), 3, directed=False)
    >>> edges.tolist(), edge_of.tolist()
    ([[0], [1]], [0, 0, 1])
    """
    loops = int((columns[0] == columns[1]).sum())
    source, target = columns[:, : columns.shape[1] - loops]
    low, high = (source, target) if directed else (torch.minimum(source, target), torch.maximum(source, target))
    keys, edge_of = torch.unique(low * num_nodes + high, return_inverse=True)
    edges = torch.stack([keys // num_nodes, keys % num_nodes])
    return edges, torch.cat([edge_of, columns.new_full((loops,), keys.numel())])


def counted_columns(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor] | None:
    """`numbered_columns` of a large undirected graph whose columns are in order, both ways and without loops.

    None for all others: they are sorted first.
    """
    large = edge_index.shape[1] >= 2 * LARGE and edge_index.device.type == "cpu"
    return count_columns(edge_index, num_nodes) if large and backend() != "plain" else None
