"""Softmax aggregation with edge features against the softmax written out, on every back end."""

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GENConv

from fastglt.kernels import edge_softmax
from fastglt.kernels.csr import CSR
from fastglt.kernels.edge_softmax import edge_softmax_aggregate
from fastglt.kernels.softmax import EPS, softmax_aggregate
from tests.helpers import randn, values_and_gradients
from tests.kernels.references import PATTERNS, csr_of

GRAPH = csr_of(randn(40, 40, seed=1) > 1)
WIDTH, EDGE = 5, 3


def features_of(csr: CSR, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Fewer rows than entries, as both directions of an edge share one, and zeros among them."""
    count = csr.num_entries // 2 + 1
    draws = torch.Generator().manual_seed(5)
    rows = torch.randint(0, count, (csr.num_entries,), generator=draws, dtype=torch.int32)  # as networks have them
    return randn(count, EDGE, seed=6, dtype=dtype).relu(), rows


def given(csr: CSR, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [
        randn(csr.num_entries, seed=2, dtype=dtype).abs(),
        randn(csr.num_columns, WIDTH, seed=3, dtype=dtype),
        randn(EDGE, WIDTH, seed=4, dtype=dtype),
        randn(WIDTH, seed=7, dtype=dtype),
        torch.tensor(0.7, dtype=dtype),
    ]


def by_hand(csr: CSR, values: Tensor, x: Tensor, weight: Tensor, bias: Tensor, temperature: Tensor) -> Tensor:
    """With a dense cube of messages, receiver by receiver."""
    features, rows = features_of(csr, x.dtype)
    place = (csr.rows, csr.indices.long())
    matrix = x.new_zeros(csr.num_rows, csr.num_columns).index_put(place, values)
    encoded = x.new_zeros(csr.num_rows, csr.num_columns, WIDTH).index_put(place, features[rows] @ weight + bias)
    message = (x + encoded).relu() + EPS
    share = matrix.unsqueeze(2) * (temperature * message).exp()
    total = share.sum(1)
    return torch.where(total > 0, (share * message).sum(1) / torch.where(total > 0, total, 1.0), 0.0)


def ours(csr: CSR, values: Tensor, x: Tensor, *learnt: Tensor) -> Tensor:
    return edge_softmax_aggregate(csr, values, x, *features_of(csr, x.dtype), *learnt)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", PATTERNS)
def test_it_is_the_softmax(kind: str) -> None:
    csr = csr_of(PATTERNS[kind])
    mine = values_and_gradients(lambda *parts: ours(csr, *parts), *given(csr))
    theirs = values_and_gradients(lambda *parts: by_hand(csr, *parts), *given(csr))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("spread", [1.0, 500.0])  # the second is beyond the range of any exponential
def test_gradients_are_right_whatever_the_range(spread: float) -> None:
    leaves = [part.requires_grad_() for part in given(GRAPH, torch.float64)]
    with torch.no_grad():
        leaves[1][:5] *= spread
    assert torch.autograd.gradcheck(lambda *parts: ours(GRAPH, *parts), leaves)


@pytest.mark.parametrize("most", [1, 40, 10**6])  # numbers that are written down at a time
def test_parts_of_the_receivers_are_the_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "numba")
    expected = values_and_gradients(lambda *parts: ours(GRAPH, *parts), *given(GRAPH))
    monkeypatch.setenv("FASTGLT_BACKEND", "plain")
    monkeypatch.setattr(edge_softmax, "_AT_ONCE", most)
    found = values_and_gradients(lambda *parts: ours(GRAPH, *parts), *given(GRAPH))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("backend")
def test_a_value_of_zero_is_no_message_to_the_last_bit() -> None:
    values, x, *learnt = given(GRAPH)
    values[GRAPH.indices == 7] = 0
    other = x.clone()
    other[7] = 1e30
    one, two = (ours(GRAPH, values, each, *learnt) for each in (x, other))
    assert torch.equal(one, two)
    features, rows = features_of(GRAPH)
    kept = (GRAPH.indices != 7).nonzero().squeeze(1)
    without = edge_softmax_aggregate(GRAPH.select(kept), values[kept], x, features, rows[kept], *learnt)
    torch.testing.assert_close(one, without, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("backend")
def test_without_features_it_is_the_other_kernel() -> None:
    values, x, weight, _, temperature = given(GRAPH)
    features, rows = features_of(GRAPH)
    found = edge_softmax_aggregate(
        GRAPH, values, x, torch.zeros_like(features), rows, weight, torch.zeros(WIDTH), temperature
    )
    torch.testing.assert_close(found, softmax_aggregate(GRAPH, values, x, temperature), rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("backend")
def test_it_is_what_pygs_genconv_aggregates() -> None:
    conv = GENConv(WIDTH, WIDTH, t=0.7, edge_dim=EDGE, bias=True, num_layers=1)
    x, (features, rows) = randn(40, WIDTH, seed=3), features_of(GRAPH)
    edge_index = torch.stack([GRAPH.indices.long(), GRAPH.rows])
    expected = conv.propagate(edge_index, x=(x, x), edge_attr=features[rows], size=None)
    learnt = conv.lin_edge.weight.T.contiguous(), conv.lin_edge.bias, torch.tensor(0.7)
    found = edge_softmax_aggregate(GRAPH, torch.ones(GRAPH.num_entries), x, features, rows, *learnt)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("backend")
def test_who_hears_nothing_gets_nothing_and_what_is_not_finite_shows() -> None:
    values, x, *learnt = given(GRAPH)
    values[GRAPH.rows == 3] = 0
    assert not ours(GRAPH, values, x, *learnt)[3].any()
    x[2, 1] = float("nan")
    assert ours(GRAPH, values, x, *learnt).isnan().any()


def test_many_messages_are_joined() -> None:
    csr = csr_of(torch.ones(2, 77, dtype=torch.bool))  # more than are written down at a time
    mine = values_and_gradients(lambda *parts: ours(csr, *parts), *given(csr))
    theirs = values_and_gradients(lambda *parts: by_hand(csr, *parts), *given(csr))
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
