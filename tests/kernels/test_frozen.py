"""Products with frozen weights against dense references, on every back end."""

import numba
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt.kernels import CSR
from fastglt.kernels.frozen import NARROW, STRIP, StoredMatrix, narrow_sums, padded, projection


def sparse(rows: int, columns: int, share: float, seed: int) -> Tensor:
    """A matrix of which about so much is not zero."""
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(rows, columns, generator=draw)
    return matrix * (torch.rand(rows, columns, generator=draw) < share)


def as_csr(matrix: Tensor) -> tuple[CSR, Tensor]:
    rows, columns = matrix.nonzero().unbind(1)
    csr, _ = CSR.from_entries(rows, columns, (matrix.shape[0], matrix.shape[1]))
    return csr, matrix[csr.rows, csr.indices.long()]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("classes", [1, 7, 8, 9])
def test_narrow_rows_are_summed_with_their_padding(classes: int) -> None:
    adjacency, dense, bias = sparse(70, 15, 0.4, 1), torch.randn(15, classes), torch.randn(classes)
    csr, values = as_csr(adjacency)
    found = narrow_sums(csr, padded(bias))(values.unsqueeze(1), padded(dense))
    torch.testing.assert_close(found[:, :classes], adjacency @ dense + bias, rtol=1e-4, atol=1e-5)
    assert not found[:, classes:].any()


@pytest.mark.usefixtures("backend")
def test_a_stored_matrix_multiplies_like_the_whole() -> None:
    x, weight = sparse(30, 12, 0.4, 2), sparse(12, 21, 0.06, 3)
    weight[4] = 0
    x[7] = 0
    rows = StoredMatrix.of(weight).prepare(*as_csr(x))
    torch.testing.assert_close(rows.product(), x @ weight, rtol=1e-4, atol=1e-5)
    some = torch.tensor([3, 7, 3, 29])
    torch.testing.assert_close(rows.take(some).product(), (x @ weight)[some], rtol=1e-4, atol=1e-5)


@given(st.integers(0, 6), st.integers(1, 6), st.integers(1, 40), st.floats(0, 1), st.integers(0, 99))
@settings(max_examples=50, deadline=None)
def test_any_shape_and_density(rows: int, inner: int, columns: int, share: float, seed: int) -> None:
    x, weight = sparse(rows, inner, share, seed), sparse(inner, columns, share, seed + 1)
    matrix = StoredMatrix.of(weight)
    assert matrix.numbers.shape == (int(weight.any(1).sum()), columns)
    torch.testing.assert_close(matrix.prepare(*as_csr(x)).product(), x @ weight, rtol=1e-4, atol=1e-5)


FUNCTIONS = {"none": lambda x: x, "relu": torch.relu, "elu": torch.nn.functional.elu}


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns", "features"), [(5, 7, 3), (70, 40, 33), (1, 1, 1), (3, 4, 0)])
@pytest.mark.parametrize("in_strips", [True, False])
@pytest.mark.parametrize("strip", [STRIP, NARROW])
@pytest.mark.usefixtures("backend")
def test_project_is_two_products_and_an_activation(
    rows: int, columns: int, features: int, dtype: torch.dtype, activation: str, in_strips: bool, strip: int
) -> None:
    adjacency, x = sparse(rows, columns, 0.3, 0).to(dtype), sparse(columns, features, 0.5, 1).to(dtype)
    weight, heads = sparse(features, 3 * strip, 0.1, 2).to(dtype), torch.tensor([1, 2, 2])
    bias, out, shift = (torch.randn(*shape, dtype=dtype) for shape in ((3 * strip,), (3 * strip, 16), (16,)))
    csr, values = as_csr(adjacency)
    run = projection(csr, bias, out, shift, activation=activation, heads=heads)

    product = StoredMatrix.of(weight, strip=strip if in_strips else None).prepare(*as_csr(x)).product()
    assert isinstance(product, Tensor) != in_strips
    factors = torch.tensor([2, -1, -1]).repeat_interleave(strip)
    expected = FUNCTIONS[activation](adjacency @ (x @ weight) * factors + bias) @ out + shift
    found = run(torch.stack([values, 2 * values, -values], 1), product)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_threads_share_the_strips() -> None:
    csr, values = as_csr(sparse(300, 300, 0.05, 0))
    x, weight = sparse(300, 50, 0.3, 1), sparse(50, 5 * STRIP, 0.2, 2)
    bias, out, shift = torch.randn(5 * STRIP), torch.randn(5 * STRIP, 8), torch.randn(8)
    heads = torch.zeros(5, dtype=torch.int64)
    run = projection(csr, bias, out, shift, activation="relu", heads=heads)
    rows = StoredMatrix.of(weight, strip=STRIP).prepare(*as_csr(x))
    alone = run(values.unsqueeze(1), rows.product())
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        together, again = (run(values.unsqueeze(1), rows.product()) for _ in range(2))
    finally:
        numba.set_num_threads(before)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    assert torch.equal(together, again)
    assert torch.equal(alone, run(values.unsqueeze(1), rows.product()))  # what it gave before is its own


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("strip", [STRIP, NARROW])
@pytest.mark.parametrize("in_strips", [True, False])
def test_one_thread_gives_what_several_give(
    count: int, strip: int, in_strips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small products are left to the calling thread, by loops of their own."""
    csr, values = as_csr(sparse(70, 40, 0.3, 0))
    x, weight = sparse(40, 33, 0.5, 1), sparse(33, count * strip, 0.1, 2)
    bias, out, shift = torch.randn(count * strip), torch.randn(count * strip, 8), torch.randn(8)
    heads = torch.zeros(count, dtype=torch.int64)
    matrix = StoredMatrix.of(weight, strip=strip if in_strips else None)

    def both_hops() -> Tensor:
        rows = matrix.prepare(*as_csr(x))
        run = projection(csr, bias, out, shift, activation="relu", heads=heads)
        hidden = run(values.unsqueeze(1), rows.product())
        back, factors = as_csr(sparse(9, 70, 0.3, 4))
        return narrow_sums(back, torch.ones(8))(factors.unsqueeze(1), hidden)

    alone = both_hops()
    monkeypatch.setattr("fastglt.kernels._numba._ALONE", -1)
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    try:
        together = both_hops()
    finally:
        numba.set_num_threads(before)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
    hidden = torch.relu(sparse(70, 40, 0.3, 0) @ (x @ weight) + bias) @ out + shift
    torch.testing.assert_close(alone, sparse(9, 70, 0.3, 4) @ hidden + 1, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", FUNCTIONS)
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.usefixtures("backend")
def test_what_is_no_number_stays_so(activation: str, wrong: float) -> None:
    dense = torch.zeros(2, STRIP)
    dense[1, 5] = wrong
    csr, values = as_csr(torch.eye(2))
    run = projection(
        csr,
        torch.zeros(STRIP),
        torch.ones(STRIP, 8),
        torch.zeros(8),
        activation=activation,
        heads=torch.tensor([0]),
    )
    expected = FUNCTIONS[activation](dense).sum(1, keepdim=True).expand(2, 8)
    torch.testing.assert_close(run(values.unsqueeze(1), dense), expected, equal_nan=True)


@pytest.mark.parametrize("strip", [STRIP, None])
@pytest.mark.usefixtures("backend")
def test_no_units_add_nothing(strip: int | None) -> None:
    csr, values = as_csr(sparse(5, 5, 0.4, 0))
    product = StoredMatrix.of(torch.zeros(3, 0), strip=strip).prepare(*as_csr(sparse(5, 3, 0.5, 1))).product()
    none, shift = torch.zeros(0, dtype=torch.int64), torch.arange(8.0)
    found = projection(csr, torch.zeros(0), torch.zeros(0, 8), shift, activation="relu", heads=none)
    assert torch.equal(found(values.unsqueeze(1), product), shift.expand(5, 8))
