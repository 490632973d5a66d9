"""Softmax aggregation against the softmax written out, on every back end."""

import pytest
import torch
from torch import Tensor

from fastglt.kernels._plain import softmax_by_message
from fastglt.kernels.csr import CSR
from fastglt.kernels.softmax import EPS, softmax_aggregate
from tests.helpers import randn, values_and_gradients
from tests.kernels.references import PATTERNS, csr_of

GRAPH = csr_of(randn(40, 40, seed=1) > 1)


def by_hand(csr: CSR, values: Tensor, x: Tensor, temperature: Tensor) -> Tensor:
    """With a dense matrix of values, receiver by receiver."""
    matrix = torch.zeros(csr.num_rows, csr.num_columns, dtype=x.dtype)
    matrix = matrix.index_put((csr.rows, csr.indices.long()), values)
    message = x.relu() + EPS
    weight = matrix.unsqueeze(2) * (temperature * message).exp()
    total = weight.sum(1)
    return torch.where(total > 0, (weight * message).sum(1) / torch.where(total > 0, total, 1.0), 0.0)


def given(csr: CSR, *, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    values = randn(csr.num_entries, seed=2, dtype=dtype).abs()
    return [values, randn(csr.num_columns, 5, seed=3, dtype=dtype), torch.tensor(0.7, dtype=dtype)]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", PATTERNS)
def test_it_is_the_softmax(kind: str) -> None:
    csr = csr_of(PATTERNS[kind])
    ours = values_and_gradients(lambda *parts: softmax_aggregate(csr, *parts), *given(csr))
    theirs = values_and_gradients(lambda *parts: by_hand(csr, *parts), *given(csr))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("spread", [1.0, 500.0])  # the second is beyond the range of any exponential
def test_gradients_are_right_whatever_the_range(spread: float) -> None:
    values, x, temperature = (part.requires_grad_() for part in given(GRAPH, dtype=torch.float64))
    with torch.no_grad():
        x[:5] *= spread

    def run(*parts: Tensor) -> Tensor:
        return softmax_aggregate(GRAPH, *parts)

    assert torch.autograd.gradcheck(run, (values, x, temperature))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_far_below_the_largest_message_nothing_is_lost(sign: float) -> None:
    values, x, _ = given(GRAPH)
    x = x.abs()
    x[0] += 2000  # whoever does not hear it has sums of e^-2000 beside its own
    temperature = torch.tensor(sign)
    expected = softmax_by_message(GRAPH, values, x + EPS, temperature)
    torch.testing.assert_close(softmax_aggregate(GRAPH, values, x, temperature), expected)


@pytest.mark.parametrize("change", [1.0, 100.0, 1e4, 1e30])
def test_a_value_of_zero_is_no_message_to_the_last_bit(change: float) -> None:
    values, x, temperature = given(GRAPH)
    values[GRAPH.indices == 7] = 0
    other = x.clone()
    other[7] = change
    one, two = (softmax_aggregate(GRAPH, values, each, temperature) for each in (x, other))
    assert torch.equal(one, two)
    kept = GRAPH.indices != 7
    without = softmax_aggregate(GRAPH.select(kept.nonzero().squeeze(1)), values[kept], x, temperature)
    torch.testing.assert_close(one, without, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("backend")
def test_who_hears_nothing_gets_nothing() -> None:
    values, x, temperature = given(GRAPH)
    values[GRAPH.rows == 3] = 0
    out = softmax_aggregate(GRAPH, values, x, temperature)
    assert not out[3].any()
    assert out[4].all()


@pytest.mark.usefixtures("backend")
def test_what_is_not_finite_is_not_hidden() -> None:
    values, x, temperature = given(GRAPH)
    x[2, 1] = float("nan")
    assert softmax_aggregate(GRAPH, values, x, temperature).isnan().any()
