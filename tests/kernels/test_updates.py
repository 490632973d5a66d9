"""What changes tensors in place: `adam`, with and without limits, and `zero_outside`."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from fastglt.kernels import adam, zero_outside
from tests.helpers import randn

pytestmark = pytest.mark.usefixtures("backend")
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def numbers(shape: tuple[int, ...], seed: int, dtype: torch.dtype) -> Tensor:
    return randn(math.prod(shape), seed=seed, dtype=dtype).view(shape)


def zeros(like: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros_like(like), torch.zeros_like(like)


class TestAdam:
    def test_two_steps_by_hand(self) -> None:
        tensor, (first, second) = torch.tensor([1.0, -2.0]), (torch.zeros(2), torch.zeros(2))
        adam(tensor, torch.tensor([0.5, -4.0]), first, second, step=1, lr=0.1, weight_decay=0.0)
        assert first.tolist() == pytest.approx([0.05, -0.4])  # a tenth of the gradient
        assert second.tolist() == pytest.approx([0.00025, 0.016])  # a thousandth of its square
        assert tensor.tolist() == pytest.approx([0.9, -1.9])  # the first step is lr against the gradient's sign
        adam(tensor, torch.tensor([0.5, 0.0]), first, second, step=2, lr=0.1, weight_decay=0.0)
        assert first.tolist() == pytest.approx([0.095, -0.36])
        # the same gradient again: the same step; none: 0.36 / 0.19 over sqrt(0.016 * 0.999 / 0.001999)
        assert tensor.tolist() == pytest.approx([0.8, -1.9 + 0.1 * (0.36 / 0.19) / (0.015984 / 0.001999) ** 0.5])

    def test_weight_decay_adds_to_the_gradient(self) -> None:
        tensor, moments = torch.tensor([2.0]), (torch.zeros(1), torch.zeros(1))
        adam(tensor, torch.tensor([1.0]), *moments, step=1, lr=0.1, weight_decay=0.25)
        assert moments[0].item() == pytest.approx(0.15)  # a tenth of 1 + 0.25 * 2

    @dtypes
    @pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4), (20_001,)])  # the last is several blocks
    def test_any_shape_is_torchs(self, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        ours, gradient = numbers(shape, 1, dtype), numbers(shape, 2, dtype)
        theirs, moments = ours.clone().requires_grad_(), zeros(ours)
        optimiser = torch.optim.Adam([theirs], lr=0.01, weight_decay=0.1)
        for step in (1, 2, 3):
            theirs.grad = gradient * step
            optimiser.step()
            adam(ours, gradient * step, *moments, step=step, lr=0.01, weight_decay=0.1)
        tolerance = 1e-6 if dtype == torch.float32 else 1e-13
        torch.testing.assert_close(ours, theirs.detach(), rtol=tolerance, atol=tolerance)

    def test_a_gradient_need_not_be_contiguous(self) -> None:
        whole, strided = randn(3, 4), randn(3, 4)
        gradient = randn(4, 3, seed=1).T
        adam(whole, gradient.contiguous(), *zeros(whole), step=1, lr=0.1, weight_decay=0.0)
        adam(strided, gradient, *zeros(strided), step=1, lr=0.1, weight_decay=0.0)
        assert torch.equal(strided, whole)

    def test_a_tensor_need_not_be_contiguous(self) -> None:
        whole = randn(3, 4)
        strided, gradient = whole.T.contiguous().T, randn(3, 4, seed=1)
        assert not strided.is_contiguous()
        adam(whole, gradient, *zeros(whole), step=1, lr=0.1, weight_decay=0.0)
        adam(strided, gradient, *zeros(strided), step=1, lr=0.1, weight_decay=0.0)
        torch.testing.assert_close(strided, whole)

    def test_the_change_is_seen_by_autograd(self) -> None:
        leaf = torch.ones(3, requires_grad=True)
        loss = leaf.square().sum()
        before = leaf._version
        with torch.no_grad():
            adam(leaf, torch.ones(3), torch.zeros(3), torch.zeros(3), step=1, lr=0.1, weight_decay=0.0)
        assert leaf._version > before
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()  # type: ignore[no-untyped-call]


SHAPES = [(4,), (2, 3), (2, 2, 2), (), (20_001,)]  # the last is several blocks


class TestMaskedAdam:
    def test_by_hand(self) -> None:
        tensor, (first, second) = torch.zeros(2, 2), zeros(torch.zeros(2, 2))
        grad, total = torch.tensor([[1.0, -2.0], [-3.0, 0.0]]), torch.tensor([[10.0, 20.0], [30.0, 40.0]])
        kept = torch.tensor([[True, False], [True, False]])
        adam(tensor, grad, first, second, step=1, lr=0.1, weight_decay=0.0, kept=kept, total=total)
        assert total.tolist() == [[11, 22], [33, 40]]  # pruned or not
        assert tensor.tolist() == [[pytest.approx(-0.1), 0], [pytest.approx(0.1), 0]]
        assert (first != 0).tolist() == (second != 0).tolist() == [[True, False], [True, False]]

    @dtypes
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("summed", [False, True])
    def test_of_any_shape_it_is_a_step_by_the_masked_gradient(
        self, shape: tuple[int, ...], dtype: torch.dtype, summed: bool
    ) -> None:
        kept = numbers(shape, 3, dtype) > 0
        if shape == (20_001,):
            kept[500:9000] = kept[-1000:] = False  # long stretches are passed over
        ours = numbers(shape, 1, dtype) * kept
        theirs, total = ours.clone(), torch.full(shape, 5, dtype=dtype) if summed else None
        moments, their_moments = zeros(ours), zeros(ours)
        sizes = torch.full(shape, 5, dtype=dtype)
        for step in (1, 2):
            grad = numbers(shape, 10 * step, dtype)
            sizes += grad.abs()
            move = partial(adam, step=step, lr=0.01, weight_decay=0.1)
            move(theirs, grad * kept, *their_moments)
            move(ours, grad, *moments, kept=kept, total=total)
        assert torch.equal(ours, theirs)
        assert all(torch.equal(mine, other) for mine, other in zip(moments, their_moments, strict=True))
        assert total is None or torch.equal(total, sizes)

    @pytest.mark.parametrize("axes", [(1, 0), (2, 0, 1)])
    def test_nothing_need_be_contiguous(self, axes: tuple[int, ...]) -> None:
        grad = randn(*(3, 4, 5)[: len(axes)], seed=1).permute(axes)
        strided, total = torch.empty_like(grad).copy_(grad), torch.zeros_like(grad)
        assert not strided.is_contiguous()
        kept = randn(*grad.shape, seed=2) > 0
        strided.mul_(kept)
        whole = strided.contiguous()
        move = partial(adam, step=1, lr=0.01, weight_decay=0.1, kept=kept)
        move(strided, grad, *zeros(strided), total=total)
        move(whole, grad.contiguous(), *zeros(whole))
        torch.testing.assert_close(strided, whole)
        assert torch.equal(total, grad.abs())


@dtypes
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strided", [False, True])
def test_outside_is_zero_and_inside_untouched(shape: tuple[int, ...], dtype: torch.dtype, strided: bool) -> None:
    before, kept = numbers(shape, 1, dtype), numbers(shape, 2, dtype) > 0
    tensor = before.clone()
    if strided:
        tensor = torch.stack([before, before], dim=-1)[..., 0]
        assert before.dim() == 0 or not tensor.is_contiguous()
    version = tensor._version
    zero_outside(tensor, kept)
    assert torch.equal(tensor, torch.where(kept, before, torch.zeros_like(before)))
    assert tensor._version > version
