"""Adam as `torch.optim.Adam` computes it, one pass over each tensor.

PyTorch's own optimisers import its compiler when the first one is made: seconds and 60 MB that every
process would pay for a few lines of arithmetic.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

from fastglt.kernels import adam, adam_product


class Product:
    """A weight times its soft mask, found once for training and evaluation until one of them changes.

    Its value is a leaf of the computation; the optimiser moves both factors by its gradient.
    """

    def __init__(self, left: Tensor, right: Tensor, *, l1: float = 0.0) -> None:
        self.left, self.right, self.l1 = left, right, l1  # weight decay is left's, the l1 term right's
        self.value = (left.detach() * right.detach()).requires_grad_()
        self.is_current()

    def is_current(self) -> None:
        """Note that the value is the product of the factors as they are now."""
        self._versions = self.left._version, self.right._version

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the product anew if a factor has changed."""
        if self._versions != (self.left._version, self.right._version):
            torch.mul(self.left, self.right, out=self.value)
            self.is_current()


# Where a tensor may move, and what the sizes of its gradients add up in.
Limits = tuple[Tensor | None, Tensor | None]


class Adam:
    """Adam (Kingma & Ba, ICLR'15) with L2 weight decay per group of tensors; moments are made when first needed."""

    def __init__(self, groups: Iterable[tuple[Iterable[Tensor], float]], *, lr: float) -> None:
        self.lr = lr
        self.groups = [(list(tensors), weight_decay) for tensors, weight_decay in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = {}  # step, exp_avg and exp_avg_sq of each tensor

    def __iter__(self) -> Iterator[Tensor]:
        """Every tensor that is trained."""
        return (tensor for tensors, _ in self.groups for tensor in tensors)

    @torch.no_grad()
    def step(self, products: Iterable[Product] = (), limits: Mapping[Tensor, Limits] | None = None) -> None:
        """Move each tensor that has a gradient, within its limits, and forget the gradient."""
        limits = limits or {}
        for product in products:
            self._step_product(product)
        for tensors, weight_decay in self.groups:
            for tensor in tensors:
                if tensor.grad is not None:
                    step, moments = self._advance(tensor)
                    kept, total = limits.get(tensor, (None, None))
                    numbers = tensor, tensor.grad, *moments
                    adam(*numbers, step=step, lr=self.lr, weight_decay=weight_decay, kept=kept, total=total)
                    tensor.grad = None

    def _step_product(self, product: Product) -> None:
        """Both factors in one pass; where they have gradients of their own, only hand the product's on to them."""
        left, right, value = product.left, product.right, product.value
        grad, value.grad = value.grad, None
        if grad is None:
            return
        if left.grad is not None or right.grad is not None or self._steps(left) != self._steps(right):
            _add_gradient(left, grad * right)
            _add_gradient(right, grad * left + product.l1 * right.sign())
            return
        (step, ours), (_, theirs) = self._advance(left), self._advance(right)
        decay, moments = self._decay(left), (*ours, *theirs)
        adam_product(left, right, value, grad, moments, step=step, lr=self.lr, weight_decay=decay, l1=product.l1)
        product.is_current()

    def _advance(self, tensor: Tensor) -> tuple[int, tuple[Tensor, Tensor]]:
        """Which step of a tensor this is, and its moments."""
        if tensor not in self.state:
            first, second = torch.zeros_like(tensor), torch.zeros_like(tensor)
            self.state[tensor] = {
                "step": torch.zeros((), dtype=torch.float32),
                "exp_avg": first,
                "exp_avg_sq": second,
            }
        state = self.state[tensor]
        state["step"] += 1
        return int(state["step"]), (state["exp_avg"], state["exp_avg_sq"])

    def _steps(self, tensor: Tensor) -> int:
        return int(self.state[tensor]["step"]) if tensor in self.state else 0

    def _decay(self, tensor: Tensor) -> float:
        return next(decay for tensors, decay in self.groups if any(tensor is one for one in tensors))


class GradientDescent(Adam):
    """Plain steps along the gradient, without moments: what clients do whose server has the optimiser."""

    @torch.no_grad()
    def step(self, products: Iterable[Product] = (), limits: Mapping[Tensor, Limits] | None = None) -> None:
        """Move each tensor that has a gradient, within its limits, and forget the gradient."""
        for tensors, weight_decay in self.groups:
            for tensor in tensors:
                if tensor.grad is not None:
                    kept, _ = (limits or {}).get(tensor, (None, None))
                    gradient = tensor.grad.add(tensor, alpha=weight_decay)
                    tensor.sub_(gradient if kept is None else gradient.mul_(kept), alpha=self.lr)
                    tensor.grad = None


def _add_gradient(tensor: Tensor, gradient: Tensor) -> None:
    tensor.grad = gradient if tensor.grad is None else tensor.grad.add_(gradient)
