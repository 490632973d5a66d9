"""Products with frozen weights against dense references, on every back end."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt.kernels import CSR
from fastglt.kernels.frozen import SplitMatrix, narrow_sums, padded, projection


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


@pytest.mark.parametrize("most", [0, 1, 2, 100])
@pytest.mark.usefixtures("backend")
def test_a_split_matrix_multiplies_like_the_whole(most: int) -> None:
    x, weight = sparse(30, 12, 0.4, 2), sparse(12, 21, 0.06, 3)
    weight[4] = 0
    x[7] = 0
    rows = SplitMatrix.of(weight, most=most).prepare(*as_csr(x))
    torch.testing.assert_close(rows.product(), x @ weight, rtol=1e-4, atol=1e-5)
    some = torch.tensor([3, 7, 3, 29])
    torch.testing.assert_close(rows.take(some).product(), (x @ weight)[some], rtol=1e-4, atol=1e-5)


@given(
    st.integers(0, 6), st.integers(1, 6), st.integers(1, 40), st.integers(0, 5), st.floats(0, 1), st.integers(0, 99)
)
@settings(max_examples=50, deadline=None)
def test_any_shape_and_density(rows: int, inner: int, columns: int, most: int, share: float, seed: int) -> None:
    x, weight = sparse(rows, inner, share, seed), sparse(inner, columns, share, seed + 1)
    matrix = SplitMatrix.of(weight, most=most)
    assert matrix.num_rows == int(weight.any(1).sum())
    torch.testing.assert_close(matrix.prepare(*as_csr(x)).product(), x @ weight, rtol=1e-4, atol=1e-5)
