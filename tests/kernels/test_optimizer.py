import pytest
import torch
from torch import Tensor

from fastglt.kernels.optimizer import Adam, GradientDescent, Product
from tests.helpers import randn

STEPS = 20
SHAPES = [(7, 5), (5,), (2, 3, 4), (1,)]


def tensors(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    return [randn(*shape, seed=seed, dtype=dtype).requires_grad_() for seed, shape in enumerate(SHAPES)]


def gradient(step: int, index: int, dtype: torch.dtype) -> Tensor | None:
    """Of different sizes from step to step; tensor 1 has none on even steps, tensor 3 none at all at first."""
    if (index == 1 and step % 2 == 0) or (index == 3 and step < 9):
        return None
    return randn(*SHAPES[index], seed=100 * step + index, dtype=dtype) * 10.0 ** (step % 3 - 1)


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_moves_like_torchs(dtype: torch.dtype, decay: float) -> None:
    ours, theirs = tensors(dtype), tensors(dtype)
    adam = Adam([(ours[:2], decay), (ours[2:], 0.0)], lr=0.01)
    groups = [{"params": theirs[:2], "weight_decay": decay}, {"params": theirs[2:], "weight_decay": 0.0}]
    reference = torch.optim.Adam(groups, lr=0.01)
    tolerance = 5e-7 if dtype == torch.float32 else 1e-12
    for step in range(STEPS):
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            mine.grad, other.grad = (gradient(step, index, dtype) for _ in range(2))
        adam.step()
        reference.step()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.detach(), other.detach(), rtol=tolerance, atol=tolerance)
    for mine, other in zip(ours, theirs, strict=True):
        state, expected = adam.state[mine], reference.state[other]
        assert list(state) == list(expected) == ["step", "exp_avg", "exp_avg_sq"]
        assert state["step"] == expected["step"]
        for moment in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(state[moment], expected[moment], rtol=tolerance, atol=tolerance)


def test_a_tensor_without_a_gradient_stays_and_its_steps_are_not_counted() -> None:
    moved, still = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    adam = Adam([([moved, still], 0.5)], lr=0.1)
    for _ in range(3):
        moved.grad = torch.ones(2)
        adam.step()
    assert still.tolist() == [1, 1, 1]
    assert still not in adam.state
    still.grad = torch.ones(3)
    adam.step()
    assert (int(adam.state[moved]["step"]), int(adam.state[still]["step"])) == (3, 1)
    assert still.tolist() == pytest.approx([0.9] * 3)  # a first step, whatever the others have done


def test_gradients_are_forgotten_after_a_step() -> None:
    tensor = torch.ones(2, requires_grad=True)
    adam = Adam([([tensor], 0.0)], lr=0.1)
    tensor.grad = torch.ones(2)
    adam.step()
    before = tensor.tolist()
    adam.step()
    assert tensor.tolist() == before
    assert int(adam.state[tensor]["step"]) == 1


@pytest.mark.usefixtures("backend")
def test_a_gradient_in_another_order_of_memory_is_the_same_gradient() -> None:
    one, other = (randn(4, 6).requires_grad_() for _ in range(2))
    for tensor, values in ((one, randn(4, 6, seed=1)), (other, randn(4, 6, seed=1).T.contiguous().T)):
        tensor.grad = values
        Adam([([tensor], 0.1)], lr=0.1).step()
    assert torch.equal(one, other)


def test_a_step_leaves_no_graph() -> None:
    tensor = torch.ones(2, requires_grad=True)
    tensor.grad = torch.ones(2)
    adam = Adam([([tensor], 0.0)], lr=0.1)
    adam.step()
    assert tensor.is_leaf
    assert tensor.requires_grad
    assert not any(value.requires_grad for value in adam.state[tensor].values())


def test_iterating_gives_every_tensor_in_the_order_of_the_groups() -> None:
    given = tensors()
    adam = Adam([((tensor for tensor in given[:3]), 0.1), ([], 0.2), (given[3:], 0.0)], lr=0.1)
    assert all(one is other for one, other in zip(adam, given, strict=True))
    assert [(len(group), decay) for group, decay in adam.groups] == [(3, 0.1), (0, 0.2), (1, 0.0)]


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.2])
def test_the_gradient_of_a_product_moves_both_factors_like_torchs(
    dtype: torch.dtype, strided: bool, l1: float
) -> None:
    """Every fifth step the left factor has a gradient of its own beside the product's."""

    def factors() -> tuple[Tensor, Tensor]:
        left, right = (randn(9, 7, seed=seed, dtype=dtype) for seed in (1, 2))
        return (left.t() if strided else left).requires_grad_(), (right.t() if strided else right).requires_grad_()

    (left, right), (their_left, their_right) = factors(), factors()
    adam, product = Adam([([left], 0.3), ([right], 0.0)], lr=0.01), Product(left, right, l1=l1)
    groups = [{"params": [their_left], "weight_decay": 0.3}, {"params": [their_right], "weight_decay": 0.0}]
    reference = torch.optim.Adam(groups, lr=0.01)
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    for step in range(STEPS):
        gradient = randn(*left.shape, seed=10 + step, dtype=dtype)
        product.value.grad = gradient.clone()
        reference.zero_grad()
        ((their_left * their_right * gradient).sum() + l1 * their_right.abs().sum()).backward()  # type: ignore[no-untyped-call]
        if step % 5 == 4:
            left.grad = torch.ones_like(left)
            assert their_left.grad is not None
            their_left.grad += 1
        adam.step([product])
        product.refresh()
        reference.step()
        assert not [one for one in (product.value, left, right) if one.grad is not None]
        for mine, other in ((left, their_left), (right, their_right), (product.value, their_left * their_right)):
            torch.testing.assert_close(mine.detach(), other.detach(), rtol=tolerance, atol=tolerance)


def test_a_product_is_taken_anew_when_a_factor_changes() -> None:
    left, right = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    product = Product(left, right)
    with torch.no_grad():
        right.mul_(2)
    assert product.value.tolist() == [3, 3]
    product.refresh()
    assert product.value.tolist() == [6, 6]
    assert product.value.requires_grad


def test_plain_steps_move_like_torchs_within_their_limits() -> None:
    ours, theirs = tensors(), tensors()
    plain = GradientDescent([(ours[:2], 0.3), (ours[2:], 0.0)], lr=0.1)
    groups = [{"params": theirs[:2], "weight_decay": 0.3}, {"params": theirs[2:], "weight_decay": 0.0}]
    reference = torch.optim.SGD(groups, lr=0.1)
    kept = torch.arange(35).reshape(7, 5) % 2 == 0
    with torch.no_grad():
        ours[0].mul_(kept)
        theirs[0].mul_(kept)
    for step in range(5):
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            left.grad, right.grad = (gradient(step, index, torch.float32) for _ in range(2))
        plain.step(limits={ours[0]: (kept, None)})
        assert all(tensor.grad is None for tensor in ours)
        reference.step()
        with torch.no_grad():
            theirs[0].mul_(kept)
    for left, right in zip(ours, theirs, strict=True):
        assert torch.allclose(left, right, atol=1e-6)
