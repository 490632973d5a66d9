import os

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from fastglt import InputError, set_threads
from fastglt.kernels import CSR, attention, dropout, spmm
from tests.helpers import randn, values_and_gradients


def _hub() -> Tensor:
    pattern = torch.eye(9, dtype=torch.bool)
    pattern[0], pattern[:, 0] = True, True
    return pattern


def _empty_rows() -> Tensor:
    pattern = randn(6, 6, seed=3) > 0
    pattern[[0, 3, 5]] = False
    pattern[:, 2] = False
    return pattern


PATTERNS = {
    "hub": _hub(),
    "empty rows": _empty_rows(),
    "rectangular": randn(4, 9, seed=4) > 0,
    "one node": torch.ones(1, 1, dtype=torch.bool),
    "no edges": torch.zeros(3, 3, dtype=torch.bool),
}
by_pattern = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())


def csr_of(pattern: Tensor) -> CSR:
    rows, entries = pattern.nonzero().unbind(1)
    return CSR.from_entries(rows, entries, (pattern.shape[0], pattern.shape[1]))[0]


def dense_product(pattern: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """What `spmm` should give: each head's matrix written out, times that head's columns."""
    parts = dense.chunk(values.shape[1], dim=1)
    zero = torch.zeros(pattern.shape, dtype=values.dtype)
    matrices = [zero.masked_scatter(pattern, head) for head in values.unbind(1)]
    return torch.cat([matrix @ part for matrix, part in zip(matrices, parts, strict=True)], dim=1)


def dense_attention(pattern: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """What `attention` should give, one row after the other."""
    rows = [
        leaky_relu(target[i] + source[row], slope).softmax(0) for i, row in enumerate(pattern) if bool(row.any())
    ]
    return torch.cat(rows) if rows else (target[:0] + source[:0])


class TestCSR:
    @by_pattern
    def test_rows_and_columns_tell_where_the_entries_are(self, pattern: Tensor) -> None:
        csr = csr_of(pattern)
        assert torch.stack([csr.rows, csr.indices]).T.tolist() == pattern.nonzero().tolist()
        assert (csr.num_rows, csr.num_columns, csr.num_entries) == (*pattern.shape, int(pattern.sum()))

    @by_pattern
    def test_the_transpose_is_the_pattern_of_the_transposed_matrix(self, pattern: Tensor) -> None:
        csr, expected = csr_of(pattern), csr_of(pattern.T)
        assert_same_pattern(csr.transposed, expected)
        assert_same_pattern(csr.transposed.transposed, csr)

    def test_transpose_order_names_the_entry_of_each_transposed_entry(self) -> None:
        matrix = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]])
        csr = csr_of(matrix != 0)
        assert matrix[matrix != 0][csr.transpose_order].tolist() == [3, 1, 2, 4]

    def test_from_entries_returns_the_order_that_sorts(self) -> None:
        csr, order = CSR.from_entries(torch.tensor([1, 0, 1]), torch.tensor([2, 1, 0]), (2, 3))
        assert order.tolist() == [1, 2, 0]
        assert csr.indices.tolist() == [1, 0, 2]

    @by_pattern
    def test_select_is_the_pattern_of_what_is_left(self, pattern: Tensor) -> None:
        keep = torch.arange(int(pattern.sum())) % 3 != 1
        left = torch.zeros_like(pattern).masked_scatter(pattern, keep)
        assert_same_pattern(csr_of(pattern).select(keep), csr_of(left))

    @by_pattern
    def test_take_rows_is_the_pattern_of_those_rows(self, pattern: Tensor) -> None:
        rows = torch.arange(pattern.shape[0]).flip(0)[::2]
        taken, entries = csr_of(pattern).take_rows(rows)
        assert_same_pattern(taken, csr_of(pattern[rows]))
        assert pattern.nonzero()[entries].tolist() == [
            [row, column] for row in rows.tolist() for column in pattern[row].nonzero().flatten().tolist()
        ]


def assert_same_pattern(one: CSR, other: CSR) -> None:
    assert one.num_columns == other.num_columns
    for name in ("indptr", "indices", "transpose_order"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.usefixtures("backend")
class TestSpMM:
    @by_pattern
    @pytest.mark.parametrize(("heads", "width"), [(1, 1), (1, 7), (1, 512), (3, 5)])
    def test_equals_the_dense_product_and_its_gradients(self, pattern: Tensor, heads: int, width: int) -> None:
        csr = csr_of(pattern)
        inputs = randn(csr.num_entries, heads, seed=1), randn(pattern.shape[1], heads * width, seed=2)
        ours = values_and_gradients(lambda values, dense: spmm(csr, values, dense), *inputs)
        expected = values_and_gradients(lambda values, dense: dense_product(pattern, values, dense), *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=2e-5)

    def test_a_vector_of_values_is_one_head(self) -> None:
        csr = csr_of(torch.tensor([[True, True], [False, True]]))
        assert spmm(csr, torch.tensor([2.0, 3.0, 5.0]), torch.tensor([[1.0], [10.0]])).tolist() == [[32], [50]]

    def test_gradcheck(self) -> None:
        csr = csr_of(PATTERNS["empty rows"])
        values = randn(csr.num_entries, 2, dtype=torch.float64).requires_grad_()
        dense = randn(6, 4, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda v, d: spmm(csr, v, d), (values, dense))

    def test_only_the_gradient_asked_for_is_computed(self) -> None:
        csr = csr_of(PATTERNS["hub"])
        dense = randn(9, 3).requires_grad_()
        spmm(csr, torch.ones(csr.num_entries), dense).sum().backward()  # type: ignore[no-untyped-call]
        assert dense.grad is not None
        assert dense.grad[:, 0].tolist() == [9, *[2] * 8]

    def test_inputs_need_not_be_contiguous(self) -> None:
        pattern = PATTERNS["hub"]
        csr = csr_of(pattern)
        values, dense = randn(2, csr.num_entries).T, randn(4, 9).T
        ours = values_and_gradients(lambda v, d: spmm(csr, v, d), values, dense)
        expected = values_and_gradients(lambda v, d: dense_product(pattern, v, d), values, dense)
        torch.testing.assert_close(ours, expected)


@pytest.mark.usefixtures("backend")
class TestAttention:
    @by_pattern
    @pytest.mark.parametrize("heads", [1, 8])
    def test_equals_the_softmax_of_each_row_and_its_gradients(self, pattern: Tensor, heads: int) -> None:
        csr = csr_of(pattern)
        inputs = randn(pattern.shape[0], heads, seed=1), randn(pattern.shape[1], heads, seed=2)
        ours = values_and_gradients(lambda t, s: attention(csr, t, s, 0.2), *inputs)
        expected = values_and_gradients(lambda t, s: dense_attention(pattern, t, s, 0.2), *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)

    def test_gradcheck(self) -> None:
        csr = csr_of(PATTERNS["empty rows"])
        target = randn(6, 2, seed=1, dtype=torch.float64).requires_grad_()
        source = randn(6, 2, seed=2, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda t, s: attention(csr, t, s, 0.2), (target, source))

    def test_large_logits_do_not_overflow(self) -> None:
        csr = csr_of(torch.ones(1, 2, dtype=torch.bool))
        alpha = attention(csr, torch.tensor([[1000.0]]), torch.tensor([[500.0], [-3e4]]), 0.2)
        assert alpha.tolist() == [[1], [0]]

    def test_inputs_need_not_be_contiguous(self) -> None:
        pattern = PATTERNS["hub"]
        csr = csr_of(pattern)
        inputs = randn(3, 9, seed=1).T, randn(3, 9, seed=2).T
        ours = values_and_gradients(lambda t, s: attention(csr, t, s, 0.2), *inputs)
        expected = values_and_gradients(lambda t, s: dense_attention(pattern, t, s, 0.2), *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def kept_by_dropout(rows: int, width: int, p: float, seed: int) -> Tensor:
    """Which numbers a dropout keeps."""
    torch.manual_seed(seed)
    return dropout(torch.ones(rows, width), p, training=True) > 0


@pytest.mark.usefixtures("backend")
class TestDropout:
    @pytest.mark.parametrize("p", [0.1, 0.5, 0.6, 0.9])
    def test_keeps_the_share_and_the_mean(self, p: float) -> None:
        torch.manual_seed(0)
        out = dropout(torch.ones(500, 400), p, training=True)
        noise = (p * (1 - p) / out.numel()) ** 0.5  # one standard deviation of the share kept
        assert float((out > 0).float().mean()) == pytest.approx(1 - p, abs=4 * noise)
        assert float(out.double().mean()) == pytest.approx(1, abs=4 * noise / (1 - p))
        assert float(out[out > 0].min()) == float(out.max()) == pytest.approx(1 / (1 - p))

    def test_the_seed_decides(self) -> None:
        assert torch.equal(kept_by_dropout(20, 30, 0.5, seed=7), kept_by_dropout(20, 30, 0.5, seed=7))
        assert not torch.equal(kept_by_dropout(20, 30, 0.5, seed=7), kept_by_dropout(20, 30, 0.5, seed=8))

    def test_two_calls_in_a_row_differ(self) -> None:
        torch.manual_seed(0)
        one, two = (dropout(torch.ones(20, 30), 0.5, training=True) for _ in range(2))
        assert not torch.equal(one, two)

    def test_eval_and_zero_change_nothing_and_draw_nothing(self) -> None:
        x, before = randn(3, 4), torch.get_rng_state()
        assert dropout(x, 0.5, training=False) is x
        assert dropout(x, 0.0, training=True) is x
        assert torch.equal(torch.get_rng_state(), before)

    def test_gradcheck(self) -> None:
        def function(x: Tensor) -> Tensor:
            torch.manual_seed(3)
            return dropout(x, 0.4, training=True)

        x = randn(5, 6, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(function, (x,))

    def test_the_gradient_is_masked_like_the_value(self) -> None:
        x = torch.ones(9, 11, requires_grad=True)
        torch.manual_seed(0)
        out = dropout(x, 0.5, training=True)
        assert torch.equal(torch.autograd.grad(out.sum(), x)[0], out.detach())

    def test_the_input_need_not_be_contiguous(self) -> None:
        x = randn(6, 5)
        torch.manual_seed(0)
        expected = dropout(x.T.contiguous(), 0.5, training=True)
        torch.manual_seed(0)
        assert torch.equal(dropout(x.T, 0.5, training=True), expected)


def test_dropout_has_the_same_bits_on_both_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for name in ("numba", "plain"):
        monkeypatch.setenv("FASTGLT_BACKEND", name)
        torch.manual_seed(5)
        results.append([dropout(randn(67, width), 0.37, training=True) for width in (1, 7, 512)])
    for compiled, plain in zip(*results, strict=True):
        assert torch.equal(compiled, plain)


@pytest.mark.parametrize("lag", [1, 2, 16, 64])
def test_dropout_is_uncorrelated_between_rows_and_columns(lag: int) -> None:
    kept = kept_by_dropout(1024, 1024, 0.5, seed=1).double() * 2 - 1
    deviation = 1 / 1000  # of the mean of a million fair signs
    assert abs(float((kept[lag:] * kept[:-lag]).mean())) < 4 * deviation
    assert abs(float((kept[:, lag:] * kept[:, :-lag]).mean())) < 4 * deviation
    assert abs(float((kept[lag:, lag:] * kept[:-lag, :-lag]).mean())) < 4 * deviation


def test_dropout_is_uncorrelated_between_calls() -> None:
    signs = [kept_by_dropout(1024, 1024, 0.5, seed=seed).double() * 2 - 1 for seed in range(3)]
    for one, two in ((0, 1), (1, 2), (0, 2)):
        assert abs(float((signs[one] * signs[two]).mean())) < 4 / 1000


def test_dropout_drops_as_often_in_every_row_and_column() -> None:
    kept = kept_by_dropout(1024, 1024, 0.5, seed=2).double()
    for axis in (0, 1):
        worst = float((kept.mean(axis) - 0.5).abs().max())
        assert worst < 5 * 0.5 / 32  # five standard deviations: one in a thousand such tests would fail by chance


def test_results_do_not_depend_on_the_thread_count() -> None:
    csr = csr_of(randn(300, 300, seed=1) > 1.5)
    values, dense, halves = randn(csr.num_entries, 2), randn(300, 64, seed=2), randn(300, 2, seed=3)
    results = []
    for threads in (1, 2):
        set_threads(threads)
        torch.manual_seed(0)
        product = values_and_gradients(lambda v, d: spmm(csr, v, d), values, dense)
        softmax = values_and_gradients(lambda t, s: attention(csr, t, s, 0.2), halves, halves)
        results.append([*product, *softmax, dropout(dense, 0.5, training=True)])
    for one, two in zip(*results, strict=True):
        assert torch.equal(one, two)


def test_an_unknown_back_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "numbar")
    csr = csr_of(PATTERNS["one node"])
    with pytest.raises(InputError, match=r"FASTGLT_BACKEND \(got 'numbar'\); did you mean 'numba'\?"):
        spmm(csr, torch.ones(1), torch.ones(1, 1))


def test_set_threads_is_seen_by_both_libraries() -> None:
    import numba

    set_threads(1)
    assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)
    set_threads(10_000)  # numba takes no more than the machine has
    assert numba.get_num_threads() <= max(2, os.cpu_count() or 1)
