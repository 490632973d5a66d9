"""`spmm`, `aggregate`, `matmul` and `head_dots` against products with the zeros written out."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu

from fastglt.errors import InputError
from fastglt.kernels import aggregate, dropout, head_dots, matmul, spmm
from tests.helpers import randn, values_and_gradients
from tests.kernels.references import (
    ACTIVATIONS,
    PATTERNS,
    by_activation,
    by_pattern,
    csr_of,
    dense_aggregate,
    dense_product,
    dropout_factor,
)

SHAPES = [(1, 1), (1, 7), (1, 16), (1, 512), (3, 1), (3, 7)]  # heads, width of one
pytestmark = pytest.mark.usefixtures("backend")


class TestSpMM:
    @by_pattern
    @pytest.mark.parametrize(("heads", "width"), SHAPES)
    def test_equals_the_dense_product_and_its_gradients(self, pattern: Tensor, heads: int, width: int) -> None:
        csr = csr_of(pattern)
        inputs = randn(csr.num_entries, heads, seed=1), randn(pattern.shape[1], heads * width, seed=2)
        ours = values_and_gradients(lambda values, dense: spmm(csr, values, dense), *inputs)
        expected = values_and_gradients(lambda values, dense: dense_product(pattern, values, dense), *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=2e-5)

    @pytest.mark.parametrize("entries", range(1, 10))
    def test_a_row_may_have_any_number_of_entries(self, entries: int) -> None:
        """Loops take four entries at a time."""
        csr = csr_of(torch.ones(1, entries, dtype=torch.bool))
        values = torch.arange(1, entries + 1, dtype=torch.float64)
        digits = "987654321"[-entries:]
        assert spmm(csr, values, 10.0 ** (values - 1).unsqueeze(1)).item() == int(digits)

    def test_a_vector_of_values_is_one_head(self) -> None:
        csr = csr_of(torch.tensor([[True, True], [False, True]]))
        assert spmm(csr, torch.tensor([2.0, 3.0, 5.0]), torch.tensor([[1.0], [10.0]])).tolist() == [[32], [50]]

    def test_heads_split_the_columns_in_order(self) -> None:
        csr = csr_of(torch.ones(1, 1, dtype=torch.bool))
        out = spmm(csr, torch.tensor([[10.0, 100.0]]), torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        assert out.tolist() == [[10, 20, 300, 400]]

    @pytest.mark.parametrize("name", ["empty rows", "rectangular"])
    def test_gradcheck(self, name: str) -> None:
        csr = csr_of(PATTERNS[name])
        values = randn(csr.num_entries, 2, dtype=torch.float64).requires_grad_()
        dense = randn(csr.num_columns, 4, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda v, d: spmm(csr, v, d), (values, dense))

    def test_what_does_not_fit_is_refused(self) -> None:
        csr = csr_of(PATTERNS["rectangular"])
        values, dense = randn(csr.num_entries), randn(csr.num_columns, 3)
        got = r"rows and .* values\)"
        for wrong in ((values, dense[:-1]), (values, randn(csr.num_columns + 1, 3)), (values[1:], dense)):
            with pytest.raises(InputError, match=rf"a row for each of 9 columns .*\(got {wrong[1].shape[0]} {got}"):
                spmm(csr, *wrong)
            with pytest.raises(InputError, match=r"a product must have"):
                aggregate(csr, *wrong, randn(3))

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

    def test_a_known_result_is_returned_and_has_the_gradient_of_the_product(self) -> None:
        pattern = PATTERNS["rectangular"]
        csr = csr_of(pattern)
        inputs, known = (randn(csr.num_entries, 1, seed=1), randn(9, 5, seed=2)), randn(4, 5, seed=3)
        out = spmm(csr, inputs[0], inputs[1].clone().requires_grad_(), known=known)
        assert out.data_ptr() == known.data_ptr()  # whether it is right or not: nothing is computed
        assert out.requires_grad
        assert not known.requires_grad
        ours = values_and_gradients(lambda v, d: spmm(csr, v, d, known=known), *inputs)
        expected = values_and_gradients(lambda v, d: dense_product(pattern, v, d), *inputs)
        torch.testing.assert_close(ours[1:], expected[1:])

    def test_a_known_result_is_not_needed_for_the_gradient(self) -> None:
        csr = csr_of(PATTERNS["hub"])
        dense = randn(9, 3).requires_grad_()
        out = spmm(csr, torch.ones(csr.num_entries), dense, known=torch.zeros(9, 3))
        (gradient,) = torch.autograd.grad(out.sum(), dense)
        assert gradient[:, 0].tolist() == [9, *[2] * 8]


class TestAggregate:
    @by_pattern
    @by_activation
    @pytest.mark.parametrize(("heads", "width"), [(1, 1), (1, 16), (3, 7)])
    @pytest.mark.parametrize("p", [0.0, 0.4])
    def test_equals_the_steps_one_by_one_and_their_gradients(
        self, pattern: Tensor, activation: str, heads: int, width: int, p: float
    ) -> None:
        csr = csr_of(pattern)
        inputs = (
            randn(csr.num_entries, heads, seed=1),
            randn(pattern.shape[1], heads * width, seed=2),
            randn(heads * width, seed=3),
        )
        factor = dropout_factor(pattern.shape[0], heads * width, p, seed=5)

        def ours(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(5)
            return aggregate(csr, values, dense, bias, activation=activation, p=p, training=True)

        def expected(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            return dense_aggregate(pattern, values, dense, bias, activation, factor)

        torch.testing.assert_close(
            values_and_gradients(ours, *inputs), values_and_gradients(expected, *inputs), rtol=1e-5, atol=2e-5
        )

    @by_activation
    def test_a_wide_layer(self, activation: str) -> None:
        pattern = PATTERNS["hub"]
        csr, factor = csr_of(pattern), dropout_factor(9, 512, 0.5, seed=7)
        inputs = randn(csr.num_entries, 1, seed=1), randn(9, 512, seed=2), randn(512, seed=3)

        def ours(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(7)
            return aggregate(csr, values, dense, bias, activation=activation, p=0.5, training=True)

        reference = values_and_gradients(
            lambda v, d, b: dense_aggregate(pattern, v, d, b, activation, factor), *inputs
        )
        torch.testing.assert_close(values_and_gradients(ours, *inputs), reference, rtol=1e-5, atol=5e-5)

    @by_activation
    @pytest.mark.parametrize("p", [0.0, 0.4])
    def test_gradcheck(self, activation: str, p: float) -> None:
        csr = csr_of(PATTERNS["empty rows"])
        values = randn(csr.num_entries, 2, seed=1, dtype=torch.float64).requires_grad_()
        dense = randn(6, 4, seed=2, dtype=torch.float64).requires_grad_()
        bias = randn(4, seed=3, dtype=torch.float64).requires_grad_()

        def function(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(3)
            return aggregate(csr, values, dense, bias, activation=activation, p=p, training=True)

        assert torch.autograd.gradcheck(function, (values, dense, bias))

    @by_activation
    def test_fused_is_what_the_single_functions_give(self, activation: str) -> None:
        pattern = PATTERNS["hub"]
        csr = csr_of(pattern)
        inputs = randn(csr.num_entries, 1, seed=1), randn(9, 16, seed=2), randn(16, seed=3)

        def fused(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(3)
            return aggregate(csr, values, dense, bias, activation=activation, p=0.4, training=True)

        def unfused(values: Tensor, dense: Tensor, bias: Tensor) -> Tensor:
            torch.manual_seed(3)
            return dropout(ACTIVATIONS[activation](spmm(csr, values, dense) + bias), 0.4, training=True)

        ours, expected = (values_and_gradients(function, *inputs) for function in (fused, unfused))
        torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-6)
        assert torch.equal(ours[0] == 0, expected[0] == 0)

    @pytest.mark.parametrize("width", [1, 7, 512])
    def test_what_is_dropped_is_what_dropout_drops(self, width: int) -> None:
        csr = csr_of(torch.eye(67, dtype=torch.bool))
        torch.manual_seed(5)
        fused = aggregate(csr, torch.ones(67), torch.ones(67, width), None, p=0.37, training=True)
        torch.manual_seed(5)
        assert torch.equal(fused, dropout(torch.ones(67, width), 0.37, training=True))

    def test_eval_and_zero_drop_nothing_and_draw_nothing(self) -> None:
        csr, before = csr_of(PATTERNS["hub"]), torch.get_rng_state()
        values, dense = randn(csr.num_entries), randn(9, 4, seed=2)
        plain = spmm(csr, values, dense)
        assert torch.equal(aggregate(csr, values, dense, None, p=0.5, training=False), plain)
        assert torch.equal(aggregate(csr, values, dense, None, p=0.0, training=True), plain)
        assert torch.equal(torch.get_rng_state(), before)

    def test_a_bias_is_optional_and_reaches_empty_rows(self) -> None:
        csr = csr_of(PATTERNS["no edges"])
        none, dense = torch.empty(0), torch.ones(3, 2)
        assert aggregate(csr, none, dense, None).tolist() == [[0, 0]] * 3
        assert aggregate(csr, none, dense, torch.tensor([2.0, -3.0])).tolist() == [[2, -3]] * 3
        assert aggregate(csr, none, dense, torch.tensor([2.0, -3.0]), activation="relu").tolist() == [[2, 0]] * 3

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_elu_is_torchs_at_every_size(self, dtype: torch.dtype) -> None:
        sizes = [0.0, -0.0, 1e-30, -1e-30, 1e-8, -1e-8, -1e-3, -0.3466, -0.35, -0.6931, -1, -5, -16, -30, -86.9]
        edges = [-87, -87.5, -88, -100, -104, -1e3, -1e9, -1e30, -torch.inf, 88, 1e30, torch.inf]
        x = torch.tensor([[size] for size in [*sizes, *edges]], dtype=dtype)
        x = torch.cat([x, torch.linspace(-20, 5, 400, dtype=dtype).view(-1, 1)])
        csr = csr_of(torch.eye(len(x), dtype=torch.bool))
        out = aggregate(csr, torch.ones(len(x), dtype=dtype), x, None, activation="elu")
        # below 1 in size the error is that of e^x, not of e^x - 1
        torch.testing.assert_close(out, elu(x), rtol=0, atol=1.2e-7 if dtype == torch.float32 else 1e-15)

    def test_elus_gradient_at_zero_and_far_below(self) -> None:
        x = torch.tensor([[0.0], [-0.0], [-1e-9], [-200.0], [3.0]], requires_grad=True)
        csr = csr_of(torch.eye(5, dtype=torch.bool))
        out = aggregate(csr, torch.ones(5), x, None, activation="elu")
        (gradient,) = torch.autograd.grad(out.sum(), x)
        assert gradient.flatten().tolist() == pytest.approx([1, 1, 1, 0, 1], abs=1e-7)

    @by_activation
    def test_a_number_that_is_none_stays_so(self, activation: str) -> None:
        """Else a network that has diverged would go on as one with dead units."""
        csr = csr_of(torch.eye(3, dtype=torch.bool))
        x = torch.tensor([[torch.nan], [1.0], [torch.inf]])
        out = aggregate(csr, torch.ones(3), x, None, activation=activation)
        assert torch.equal(out.isnan(), x.isnan())
        assert out[1:].tolist() == [[1], [torch.inf]]

    def test_an_unknown_activation_is_refused(self) -> None:
        csr = csr_of(PATTERNS["one node"])
        with pytest.raises(KeyError, match="tanh"):
            aggregate(csr, torch.ones(1), torch.ones(1, 1), None, activation="tanh")


class TestMatMul:
    @pytest.mark.parametrize("columns", [1, 3, 4, 7, 8, 16, 512])
    @pytest.mark.parametrize("rows", [1, 67])
    def test_equals_the_product_and_its_gradients(self, rows: int, columns: int) -> None:
        inputs = randn(rows, 33, seed=1), randn(33, columns, seed=2)
        ours, expected = values_and_gradients(matmul, *inputs), values_and_gradients(torch.mm, *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=2e-5)

    def test_by_hand(self) -> None:
        x, weight = torch.tensor([[1.0, 2.0], [0.0, -1.0]]), torch.tensor([[1.0, 0.0, 5.0], [3.0, 1.0, 0.0]])
        assert matmul(x, weight).tolist() == [[7, 2, 5], [-3, -1, 0]]

    @pytest.mark.parametrize("columns", [3, 16])
    def test_gradcheck(self, columns: int) -> None:
        x = randn(5, 6, seed=1, dtype=torch.float64).requires_grad_()
        weight = randn(6, columns, seed=2, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(matmul, (x, weight))

    def test_inputs_need_not_be_contiguous(self) -> None:
        inputs = randn(8, 9, seed=1).T, randn(3, 8, seed=2).T
        torch.testing.assert_close(values_and_gradients(matmul, *inputs), values_and_gradients(torch.mm, *inputs))


def written_out(x: Tensor, vectors: Tensor) -> Tensor:
    """What `head_dots` should give, one head after the other."""
    parts = x.chunk(vectors.shape[1], dim=1)
    return torch.stack([part @ vectors[:, head].T for head, part in enumerate(parts)], dim=2)


class TestHeadDots:
    @pytest.mark.parametrize(("sets", "heads", "width"), [(2, 1, 1), (2, 3, 7), (1, 8, 64), (3, 2, 5)])
    def test_equals_the_dot_products_and_their_gradients(self, sets: int, heads: int, width: int) -> None:
        inputs = randn(19, heads * width, seed=1), randn(sets, heads, width, seed=2)
        ours, expected = values_and_gradients(head_dots, *inputs), values_and_gradients(written_out, *inputs)
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=2e-5)

    def test_by_hand(self) -> None:
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]])  # two heads of two
        vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [10.0, 1.0]]])
        assert head_dots(x, vectors).tolist() == [[[1, 4], [3, 34]]]

    def test_gradcheck(self) -> None:
        x = randn(5, 6, seed=1, dtype=torch.float64).requires_grad_()
        vectors = randn(2, 3, 2, seed=2, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(head_dots, (x, vectors))

    def test_inputs_need_not_be_contiguous(self) -> None:
        inputs = randn(6, 9, seed=1).T, randn(2, 3, 2, seed=2).transpose(0, 2)
        ours, expected = values_and_gradients(head_dots, *inputs), values_and_gradients(written_out, *inputs)
        torch.testing.assert_close(ours, expected)
