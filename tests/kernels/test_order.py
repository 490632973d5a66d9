"""Orders of nodes: found where a graph has groups, and nowhere else."""

import torch
from torch import Tensor

from fastglt.kernels.csr import CSR
from fastglt.kernels.order import near_order


def pattern(pairs: Tensor, nodes: int) -> CSR:
    both = torch.cat([pairs, pairs.flip(0)], 1)
    rows, columns = torch.unique(both[:, both[0] != both[1]], dim=1)
    return CSR.from_entries(rows, columns, (nodes, nodes))[0]


def test_groups_come_one_after_the_other() -> None:
    draw = torch.Generator().manual_seed(0)
    group = torch.randint(0, 50, (1, 20_000), generator=draw)
    pairs = group + 50 * torch.randint(0, 40, (2, 20_000), generator=draw)  # node % 50 is its group
    csr = pattern(pairs, 2000)
    order = near_order(csr)
    assert order is not None
    assert torch.equal(order.sort().values, torch.arange(2000))
    changes = int(((order % 50).diff() != 0).sum())
    assert changes < 200  # at best 49; as they are numbered, 1999


def test_edges_drawn_at_random_are_left_as_they_are() -> None:
    pairs = torch.randint(0, 20_000, (2, 120_000), generator=torch.Generator().manual_seed(0))
    assert near_order(pattern(pairs, 20_000)) is None
