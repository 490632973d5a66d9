"""Products with frozen weights against dense references, on every back end."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt.kernels import CSR
from fastglt.kernels.frozen import STRIP, StoredMatrix, narrow_sums, padded, projection


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


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns", "features"), [(5, 7, 3), (70, 40, 33), (1, 1, 1), (3, 4, 0)])
@pytest.mark.parametrize("strips", [True, False])
@pytest.mark.usefixtures("backend")
def test_project_is_two_products_and_an_activation(
    rows: int, columns: int, features: int, dtype: torch.dtype, activation: str, strips: bool
) -> None:
    adjacency, x = sparse(rows, columns, 0.3, 0).to(dtype), sparse(columns, features, 0.5, 1).to(dtype)
    weight, heads = sparse(features, 3 * STRIP, 0.1, 2).to(dtype), torch.tensor([1, 2, 2])
    bias, out, shift = (torch.randn(*shape, dtype=dtype) for shape in ((3 * STRIP,), (3 * STRIP, 16), (16,)))
    csr, values = as_csr(adjacency)
    run = projection(csr, bias, out, shift, activation=activation, heads=heads)

    product = StoredMatrix.of(weight, strips=strips).prepare(*as_csr(x)).product()
    assert isinstance(product, Tensor) != strips
    function = {"none": lambda x: x, "relu": torch.relu, "elu": torch.nn.functional.elu}[activation]
    factors = torch.tensor([2, -1, -1]).repeat_interleave(STRIP)
    expected = function(adjacency @ (x @ weight) * factors + bias) @ out + shift
    found = run(torch.stack([values, 2 * values, -values], 1), product)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strips", [True, False])
@pytest.mark.usefixtures("backend")
def test_no_units_add_nothing(strips: bool) -> None:
    csr, values = as_csr(sparse(5, 5, 0.4, 0))
    product = StoredMatrix.of(torch.zeros(3, 0), strips=strips).prepare(*as_csr(sparse(5, 3, 0.5, 1))).product()
    none, shift = torch.zeros(0, dtype=torch.int64), torch.arange(8.0)
    found = projection(csr, torch.zeros(0), torch.zeros(0, 8), shift, activation="relu", heads=none)
    assert torch.equal(found(values.unsqueeze(1), product), shift.expand(5, 8))
