"""Patterns of large graphs, by counting instead of sorting; on a CPU, by compiled loops."""

import torch
from torch import Tensor

from fastglt.kernels.csr import CSR, pointers


def count_messages(edges: Tensor, num_nodes: int, *, both_ways: bool) -> tuple[CSR, Tensor]:
    """Who hears whom along distinct, sorted edges, itself included; and the edge of each entry.

    >>> csr, edge_of = count_messages(torch.tensor([[0, 0], [1, 2]]), 3, both_ways=True)
    >>> csr.indptr.tolist(), csr.indices.tolist(), edge_of.tolist()
    ([0, 3, 5, 7], [0, 1, 2, 0, 1, 0, 2], [2, 0, 1, 0, 2, 1, 2])
    """
    from fastglt.kernels import _pattern_loops

    source, target = (part.contiguous() for part in edges)
    received = torch.bincount(target, minlength=num_nodes) + 1
    if both_ways:
        received += torch.bincount(source, minlength=num_nodes)
    indptr = pointers(received)
    small = edges.shape[1] < 2**31
    indices = torch.empty(int(indptr[-1]), dtype=torch.int32)
    edge_of = torch.empty(indices.shape, dtype=torch.int32 if small else torch.int64)
    arrays = (indptr[:-1].clone().numpy(), indices.numpy(), edge_of.numpy())
    _pattern_loops.every_message(source.numpy(), target.numpy(), both_ways, *arrays)
    return CSR(indptr=indptr, indices=indices, num_columns=num_nodes), edge_of


def count_columns(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor] | None:
    """The edges and the edge of each column of an undirected graph, if its columns are in order.

    That is: sorted by source, then target, all distinct, each with its reverse, no loops; else None.

    >>> edges, edge_of = count_columns(torch.tensor([[0, 0, 1, 2], [1, 2, 0, 0]]), 3)
    >>> edges.tolist(), edge_of.tolist()
    ([[0, 0], [1, 2]], [0, 1, 0, 1])
    """
    from fastglt.kernels import _pattern_loops

    source, target = (part.contiguous() for part in edge_index)
    upwards = source < target
    low, high = source[upwards], target[upwards]
    if 2 * low.numel() != source.numel():
        return None
    starts = pointers(torch.bincount(low, minlength=num_nodes))[:-1].clone()
    edge_of = torch.empty(source.shape, dtype=torch.int32 if low.numel() < 2**31 else torch.int64)
    arrays = source.numpy(), target.numpy()
    if _pattern_loops.number_columns(*arrays, starts.numpy(), edge_of.numpy()) < 0:
        return None
    if not _pattern_loops.are_edges(*arrays, edge_of.numpy(), low.numpy(), high.numpy()):
        return None
    return torch.stack([low, high]), edge_of


def exchanged(csr: CSR) -> tuple[Tensor, CSR]:
    """The entries column by column, and the pattern that they are then.

    >>> csr = CSR(indptr=torch.tensor([0, 2, 3]), indices=torch.tensor([0, 1, 0], dtype=torch.int32), num_columns=2)
    >>> order, transposed = exchanged(csr)
    >>> order.tolist(), transposed.indptr.tolist(), transposed.indices.tolist()
    ([0, 2, 1], [0, 2, 3], [0, 1, 0])
    """
    from fastglt.kernels import _pattern_loops

    indptr = pointers(torch.bincount(csr.indices, minlength=csr.num_columns))
    order, rows = (torch.empty_like(csr.indices) for _ in range(2))
    _pattern_loops.transpose(*csr.arrays, indptr[:-1].clone().numpy(), order.numpy(), rows.numpy())
    return order, CSR(indptr=indptr, indices=rows, num_columns=csr.num_rows)
