"""Adam as `torch.optim.Adam` computes it, one pass over each tensor.

PyTorch's own optimisers import its compiler when the first one is made: seconds and 60 MB that every
process would pay for a few lines of arithmetic.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from fastglt.kernels import adam


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
    def step(self) -> None:
        """Move each tensor that has a gradient, and forget the gradient."""
        for tensors, weight_decay in self.groups:
            for tensor in tensors:
                if tensor.grad is None:
                    continue
                if tensor not in self.state:
                    first, second = torch.zeros_like(tensor), torch.zeros_like(tensor)
                    self.state[tensor] = {"step": torch.zeros(()), "exp_avg": first, "exp_avg_sq": second}
                state = self.state[tensor]
                state["step"] += 1
                moments = state["exp_avg"], state["exp_avg_sq"]
                step = int(state["step"])
                adam(tensor, tensor.grad, *moments, step=step, lr=self.lr, weight_decay=weight_decay)
                tensor.grad = None
