"""Layers that keep their inputs alone, and compute the rest again when gradients are asked for.

A deep network then holds one tensor for each layer. `torch.utils.checkpoint` would do that as well, but takes a
layer's random numbers and running means twice.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.system.process import LARGE_BLOCK, return_large_memory

Layer = Callable[..., Tensor]


def recomputed(layer: Layer, *tensors: Tensor | None) -> Tensor:
    """What a layer makes of tensors, all of which gradients are for; nothing else of it is kept for them.

    The layer is called a second time, with gradients on, and must give the same: whatever it draws or counts has to
    be drawn or counted only while they are off.
    """
    if not torch.is_grad_enabled():
        return layer(*tensors)
    if any(tensor is not None and tensor.nbytes >= LARGE_BLOCK for tensor in tensors):
        return_large_memory()
    return _Recomputed.apply(layer, *tensors)  # type: ignore[no-any-return, no-untyped-call]


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layer: Layer, *tensors: Tensor | None) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(*tensors)
        return layer(*tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad[1:]
        leaves = [
            None if tensor is None else tensor.detach().requires_grad_(want)
            for tensor, want in zip(ctx.saved_tensors, wanted, strict=True)
        ]
        with torch.enable_grad():
            out = ctx.layer(*leaves)
        asked = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
        found = iter(torch.autograd.grad(out, asked, grads[0], allow_unused=True))
        return None, *(next(found) if want else None for want in wanted)
