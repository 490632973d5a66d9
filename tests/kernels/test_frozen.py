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


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.parametrize(("rows", "columns", "width"), [(5, 7, 3), (70, 40, 33), (1, 1, 1), (4, 3, 20)])
@pytest.mark.usefixtures("backend")
def test_project_is_aggregate_and_product(rows: int, columns: int, width: int, activation: str) -> None:
    adjacency, dense = sparse(rows, columns, 0.3, 0), torch.randn(columns, width)
    bias, weight, shift = torch.randn(width), torch.randn(width, 16), torch.randn(16)
    function = {"none": lambda x: x, "relu": torch.relu, "elu": torch.nn.functional.elu}[activation]
    expected = function(adjacency @ dense + bias) @ weight + shift
    csr, values = as_csr(adjacency)
    found = projection(csr, bias, weight, shift, activation=activation)(values.unsqueeze(1), dense)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["none", "relu", "elu"])
@pytest.mark.usefixtures("backend")
def test_project_takes_double_precision_too(activation: str) -> None:
    adjacency, dense = sparse(20, 15, 0.4, 1).double(), torch.randn(15, 24).double()
    bias, weight, shift = torch.randn(24).double(), torch.randn(24, 8).double(), torch.randn(8).double()
    function = {"none": lambda x: x, "relu": torch.relu, "elu": torch.nn.functional.elu}[activation]
    csr, values = as_csr(adjacency)
    found = projection(csr, bias, weight, shift, activation=activation)(values.unsqueeze(1), dense)
    torch.testing.assert_close(found, function(adjacency @ dense + bias) @ weight + shift)


@pytest.mark.usefixtures("backend")
def test_each_head_has_its_columns_and_its_values() -> None:
    adjacency, dense, bias, weight = sparse(20, 15, 0.4, 1), torch.randn(15, 9), torch.randn(9), torch.randn(9, 8)
    csr, values = as_csr(adjacency)
    heads, factors = torch.stack([values, 2 * values, -values], 1), torch.tensor([2.0] * 4 + [-1.0] * 5)
    shift = torch.zeros(8)

    found = projection(csr, bias, weight, shift, activation="relu", head=1)(heads, dense)
    torch.testing.assert_close(found, torch.relu(2 * adjacency @ dense + bias) @ weight, rtol=1e-4, atol=1e-5)

    several = projection(csr, bias, weight, shift, activation="relu", head=1, starts=torch.tensor([0, 4, 9]))
    expected = torch.relu(adjacency @ dense * factors + bias) @ weight
    torch.testing.assert_close(several(heads, dense), expected, rtol=1e-4, atol=1e-5)


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
@pytest.mark.usefixtures("backend")
def test_strips_are_projected_like_their_product(
    rows: int, columns: int, features: int, dtype: torch.dtype, activation: str
) -> None:
    adjacency, x = sparse(rows, columns, 0.3, 0).to(dtype), sparse(columns, features, 0.5, 1).to(dtype)
    weight, starts = sparse(features, 3 * STRIP, 0.1, 2).to(dtype), torch.tensor([0, STRIP, 3 * STRIP])
    bias, out, shift = (torch.randn(*shape, dtype=dtype) for shape in ((3 * STRIP,), (3 * STRIP, 16), (16,)))
    csr, values = as_csr(adjacency)
    heads = torch.stack([values, 2 * values, -values], 1)
    run = projection(csr, bias, out, shift, activation=activation, head=1, starts=starts)

    strips = StoredMatrix.of(weight, strips=True).prepare(*as_csr(x)).product()
    assert not isinstance(strips, Tensor)
    whole = StoredMatrix.of(weight).prepare(*as_csr(x)).product()
    function = {"none": lambda x: x, "relu": torch.relu, "elu": torch.nn.functional.elu}[activation]
    factors = torch.cat([torch.full((STRIP,), 2), torch.full((2 * STRIP,), -1)])
    expected = function(adjacency @ (x @ weight) * factors + bias) @ out + shift
    torch.testing.assert_close(run(heads, strips), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(run(heads, whole), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("backend")
def test_no_strips_add_nothing() -> None:
    csr, values = as_csr(sparse(5, 5, 0.4, 0))
    strips = StoredMatrix.of(torch.zeros(3, 0), strips=True).prepare(*as_csr(sparse(5, 3, 0.5, 1))).product()
    found = projection(csr, torch.zeros(0), torch.zeros(0, 8), torch.arange(8.0), activation="relu")
    assert torch.equal(found(values.unsqueeze(1), strips), torch.arange(8.0).expand(5, 8))
