"""What looks at single numbers: edge scores of messages, and the extremes of a mask's elements."""

import pytest
import torch

from fastglt.kernels import extremes, weigh
from fastglt.kernels._element_loops import LOOKED_AT
from tests.helpers import randn

pytestmark = pytest.mark.usefixtures("backend")
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


class TestWeigh:
    def test_a_message_counts_as_much_as_its_edge_and_a_self_loop_once(self) -> None:
        norm, soft = torch.tensor([0.5, 0.25, 1.0, 2.0]), torch.tensor([3.0, 4.0])
        assert weigh(norm, soft, torch.tensor([1, 0, 2, 1])).tolist() == [2, 0.75, 1, 8]  # the third has no edge

    def test_the_gradient_of_a_score_is_summed_over_its_messages(self) -> None:
        norm, soft = torch.tensor([0.5, 0.25, 1.0, 2.0]), torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
        out = weigh(norm, soft, torch.tensor([1, 0, 3, 1]))
        out.backward(torch.tensor([1.0, 10.0, 100.0, 1000.0]))  # type: ignore[no-untyped-call]
        assert soft.grad is not None
        assert soft.grad.tolist() == [2.5, 2000.5, 0]

    def test_gradcheck(self) -> None:
        norm, ids = randn(9, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 3, 1, 0, 2, 3])
        soft = randn(3, seed=1, dtype=torch.float64).requires_grad_()
        assert torch.autograd.gradcheck(lambda soft: weigh(norm, soft, ids), (soft,))

    def test_scores_may_have_more_digits_than_norms(self) -> None:
        soft = torch.tensor([3.0], dtype=torch.float64, requires_grad=True)
        out = weigh(torch.tensor([0.5, 1.0]), soft, torch.tensor([0, 1]))
        assert out.dtype == torch.float64
        out.sum().backward()  # type: ignore[no-untyped-call]
        assert soft.grad is not None
        assert soft.grad.tolist() == [0.5]

    def test_a_graph_may_have_no_edges(self) -> None:
        soft = torch.empty(0, requires_grad=True)
        out = weigh(torch.tensor([0.5, 1.0]), soft, torch.tensor([0, 0]))
        assert out.tolist() == [0.5, 1]
        out.sum().backward()  # type: ignore[no-untyped-call]
        assert soft.grad is not None
        assert soft.grad.numel() == 0


class TestExtremes:
    @dtypes
    @pytest.mark.parametrize("size", [0, 1, 1000, 2 * LOOKED_AT + 1])
    def test_it_finds_what_a_comparison_of_all_elements_finds(self, size: int, dtype: torch.dtype) -> None:
        kept = randn(size, seed=1) > 0.5
        strength, potential = randn(size, seed=2, dtype=dtype), randn(size, seed=3, dtype=dtype)
        weak, promising = extremes(kept, strength, potential, 0.4, 1.2)
        assert weak.tolist() == (kept & (strength.abs() <= 0.4)).nonzero().flatten().tolist()
        assert promising.tolist() == (~kept & (potential >= 1.2)).nonzero().flatten().tolist()

    def test_a_border_belongs_to_it_and_no_limit_takes_all(self) -> None:
        kept, numbers = torch.tensor([True, True, False, False]), torch.tensor([-2.0, 3.0, 2.0, 1.0])
        assert [part.tolist() for part in extremes(kept, numbers, numbers, 2.0, 2.0)] == [[0], [2]]
        everything = extremes(kept, numbers, numbers, float("inf"), float("-inf"))
        assert [part.tolist() for part in everything] == [[0, 1], [2, 3]]
