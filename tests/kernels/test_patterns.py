"""Patterns by counting are those that sorting gives."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt.kernels import CSR, _numba, aggregate, spmm
from fastglt.kernels.patterns import count_columns, count_messages, exchanged
from fastglt.kernels.softmax import softmax_aggregate


def some_pairs(nodes: int, count: int, seed: int, *, upwards: bool) -> Tensor:
    """Distinct pairs of different nodes in order."""
    source, target = np.random.default_rng(seed).integers(0, nodes, (2, count))
    if upwards:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys = np.unique((source * nodes + target)[source != target])
    return torch.from_numpy(np.stack([keys // nodes, keys % nodes]))


@settings(deadline=None, max_examples=30)
@given(nodes=st.integers(1, 12), count=st.integers(0, 60), seed=st.integers(0, 99), directed=st.booleans())
def test_messages_are_those_of_a_sort(nodes: int, count: int, seed: int, directed: bool) -> None:
    edges = some_pairs(nodes, count, seed, upwards=not directed)
    (source, target), loops, ids = edges, torch.arange(nodes), torch.arange(edges.shape[1])
    rows = [target, loops] if directed else [target, source, loops]
    columns = [source, loops] if directed else [source, target, loops]
    wanted, order = CSR.from_entries(torch.cat(rows), torch.cat(columns), (nodes, nodes))
    of_loops = torch.full_like(loops, edges.shape[1])
    edge_of = torch.cat([ids, of_loops] if directed else [ids, ids, of_loops])[order]
    csr, found = count_messages(edges, nodes, both_ways=not directed)
    assert torch.equal(csr.indptr, wanted.indptr)
    assert torch.equal(csr.indices, wanted.indices)
    assert torch.equal(found.long(), edge_of)
    order, transposed = exchanged(csr)
    assert torch.equal(order.long(), csr.transpose_order)
    assert torch.equal(transposed.indptr, csr.transposed.indptr)
    assert torch.equal(transposed.indices, csr.transposed.indices)


def test_columns_in_order_are_numbered_and_others_left_alone() -> None:
    edges = some_pairs(30, 80, 0, upwards=True)
    keys = torch.cat([edges[0] * 30 + edges[1], edges[1] * 30 + edges[0]]).sort()[0]
    columns = torch.stack([keys // 30, keys % 30])
    found, edge_of = count_columns(columns, 30) or (torch.empty(0), torch.empty(0))
    assert torch.equal(found, edges)
    assert torch.equal(edges[:, edge_of], torch.stack([columns.amin(0), columns.amax(0)]))


@pytest.mark.parametrize(
    "columns",
    [
        [[0, 1, 2], [1, 0, 0]],  # one way only
        [[0, 1, 1, 2], [2, 0, 2, 1]],  # as many down as up, but of other edges
        [[0, 1, 1, 2], [2, 2, 0, 1]],  # not in order
        [[0, 0, 1, 1], [1, 1, 0, 0]],  # repeated
        [[0, 1, 1], [1, 0, 1]],  # with a loop
        [[0, 0, 2, 2], [1, 2, 0, 1]],  # a second column too many for one end
    ],
)
def test_other_columns_are_left_to_a_sort(columns: list[list[int]]) -> None:
    assert count_columns(torch.tensor(columns), 3) is None


def test_fetching_ahead_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = some_pairs(50, 300, 1, upwards=True)
    csr, _ = count_messages(edges, 50, both_ways=True)
    generator = torch.Generator().manual_seed(0)
    bias = torch.rand(40, generator=generator)
    found = []
    for far in (_numba._FAR, 0):
        monkeypatch.setattr(_numba, "_FAR", far)
        generator.manual_seed(1)
        values = torch.rand(csr.num_entries, generator=generator).requires_grad_()
        x = torch.rand(50, 40, generator=generator).requires_grad_()
        outputs = (
            spmm(csr, values, x),
            aggregate(csr, values, x, bias, activation="relu"),
            softmax_aggregate(csr, values, x, torch.tensor(0.3)),
        )
        sum(out.square().sum() for out in outputs).backward()  # type: ignore[union-attr]
        found.append([*outputs, values.grad, x.grad])
    assert _numba._ahead(x) == _numba._AHEAD
    for near, far_away in zip(*found, strict=True):
        assert near is not None
        assert torch.equal(near, far_away)


def test_long_rows_are_not_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_numba, "_FAR", 0)
    assert _numba._ahead(torch.zeros(1, 512)) == _numba._AHEAD
    assert _numba._ahead(torch.zeros(1, 513)) == 0
