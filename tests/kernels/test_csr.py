import torch
from torch import Tensor

from fastglt.kernels import CSR, true_indices
from tests.kernels.references import by_pattern, csr_of


def assert_same_pattern(one: CSR, other: CSR) -> None:
    assert one.num_columns == other.num_columns
    for name in ("indptr", "indices", "transpose_order", "narrow_indptr"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@by_pattern
def test_rows_and_columns_tell_where_the_entries_are(pattern: Tensor) -> None:
    csr = csr_of(pattern)
    assert torch.stack([csr.rows, csr.indices]).T.tolist() == pattern.nonzero().tolist()
    assert (csr.num_rows, csr.num_columns, csr.num_entries) == (*pattern.shape, int(pattern.sum()))


@by_pattern
def test_the_transpose_is_the_pattern_of_the_transposed_matrix(pattern: Tensor) -> None:
    csr, expected = csr_of(pattern), csr_of(pattern.T)
    assert_same_pattern(csr.transposed, expected)
    assert_same_pattern(csr.transposed.transposed, csr)


def test_transpose_order_names_the_entry_of_each_transposed_entry() -> None:
    matrix = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]])
    csr = csr_of(matrix != 0)
    assert matrix[matrix != 0][csr.transpose_order].tolist() == [3, 1, 2, 4]


def test_from_entries_returns_the_order_that_sorts() -> None:
    csr, order = CSR.from_entries(torch.tensor([1, 0, 1]), torch.tensor([2, 1, 0]), (2, 3))
    assert order.tolist() == [1, 2, 0]
    assert csr.indices.tolist() == [1, 0, 2]


def test_narrow_pointers_have_the_type_of_the_indices() -> None:
    csr = csr_of(torch.tensor([[True, True], [False, True]]))
    assert (csr.indptr.dtype, csr.narrow_indptr.dtype, csr.indices.dtype) == (torch.int64, torch.int32, torch.int32)
    assert csr.narrow_indptr.tolist() == csr.indptr.tolist() == [0, 2, 3]


@by_pattern
def test_select_is_the_pattern_of_what_is_left(pattern: Tensor) -> None:
    keep = torch.arange(int(pattern.sum())) % 3 != 1
    left = torch.zeros_like(pattern).masked_scatter(pattern, keep)
    assert_same_pattern(csr_of(pattern).select(true_indices(keep)), csr_of(left))


@by_pattern
def test_take_rows_is_the_pattern_of_those_rows(pattern: Tensor) -> None:
    rows = torch.arange(pattern.shape[0]).flip(0)[::2]
    taken, entries = csr_of(pattern).take_rows(rows)
    assert_same_pattern(taken, csr_of(pattern[rows]))
    assert pattern.nonzero()[entries].tolist() == [
        [row, column] for row in rows.tolist() for column in pattern[row].nonzero().flatten().tolist()
    ]
