"""A ResGCN layer as one differentiable function, on compiled loops: for gradients it keeps its input alone.

What it heard is kept as well while there is room, so that messages are gone through three times an epoch instead of
four: forwards, backwards and in evaluation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from fastglt.graphs.messages import Hop
from fastglt.kernels.drop import Drop
from fastglt.kernels.genconv import Gradients, Heard, Norm, Sent, Statistics
from fastglt.models.resgcn.norms import BatchRenorm, count
from fastglt.system.blocks import reused_empty

_KEPT = 5 << 28  # bytes of what layers heard that a network may keep for its gradients
MLP = Callable[..., Tensor]  # from what was heard and the parameters to a layer's output


@dataclass
class Room:
    """How much memory is left for what need not be kept."""

    left: int = _KEPT

    def take(self, size: int) -> bool:
        """Whether there are so many bytes; they are taken then."""
        enough = size <= self.left
        self.left -= size if enough else 0
        return enough


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """What a layer does its work with, parameters apart."""

    hop: Hop
    norm: nn.Module | None  # None: the rows are sent as they are, and there is no residual
    drop: Drop | None
    mlp: MLP | None  # None: one matrix and a bias
    room: Room
    parts: Callable[..., Tensor]  # the layer put together of its parts, for the gradients of sums that were lost


def convolved(step: Step, h: Tensor, values: Tensor, temperature: Tensor, *learnt: Tensor | None) -> Tensor:
    """The receivers' rows from the senders'; `learnt` are the norm's weight and bias, then the MLP's parameters."""
    return _Convolved.apply(step, h, values, temperature, *learnt)  # type: ignore[no-any-return, no-untyped-call]


def activated(norm: nn.Module, drop: Drop | None, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """dropout(relu(norm(h)))."""
    return _Activated.apply(norm, drop, h, weight, bias)  # type: ignore[no-any-return, no-untyped-call]


class _Convolved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, step: Step, h: Tensor, values: Tensor, t: Tensor, *learnt: Tensor | None) -> Tensor:
        found, own = _counted(step.norm, h), step.hop.receiver_columns
        sent = Sent.of(h, _norm(step.norm, found, *learnt[:2]), step.drop, found)
        size = 2 * step.hop.csr.num_rows * h.shape[1] * h.element_size()
        keep = any(ctx.needs_input_grad) and step.room.take(size)
        heard = sent.hear(step.hop.csr, values, own, float(t), keep=keep)
        ctx.correction = _correction(step.norm)
        ctx.step, ctx.heard, ctx.made_of = step, heard if keep else None, (sent.norm, sent.bound)
        ctx.save_for_backward(h, values, t, *learnt)
        return _finished(step, h, heard.rows, learnt[2:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        step, (h, values, t, *learnt), grad = ctx.step, ctx.saved_tensors, grads[0].contiguous()
        csr, own = step.hop.csr, step.hop.receiver_columns
        norm, bound = ctx.made_of
        sent = Sent(h=h, norm=norm, drop=step.drop, bound=bound)
        heard: Heard = ctx.heard or sent.hear(csr, values, own, float(t), keep=True)
        ctx.heard = None
        if heard.lost:
            return None, *_by_parts(step.parts, (h, values, t, *learnt), ctx.needs_input_grad[1:], grad)
        of_rows, *of_mlp = _mlp_backward(step, heard.rows, learnt[2:], grad)
        more = None
        if step.norm is not None:
            more = grad if own is None else torch.zeros_like(h).index_add_(0, own, grad)
        found = sent.backward(
            csr, values, own, float(t), heard, of_rows, more=more, of_values=ctx.needs_input_grad[2]
        )
        of_t = found.temperature.to(t.dtype).view(t.shape)
        of_weight = _of_weight(found, ctx.correction)
        return None, found.h, found.values, of_t, of_weight, found.bias, *of_mlp


class _Activated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, norm: nn.Module, drop: Drop | None, h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        found = _counted(norm, h)
        sent = Sent.of(h, _norm(norm, found, weight, bias), drop, found)
        ctx.correction = _correction(norm)
        ctx.sent = replace(sent, h=h.new_empty(0))
        ctx.save_for_backward(h)
        return sent.activated()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        found = replace(ctx.sent, h=ctx.saved_tensors[0]).activated_backward(grads[0].contiguous())
        return None, None, found.h, _of_weight(found, ctx.correction), found.bias


def _by_parts(
    parts: Callable[..., Tensor], given: tuple[Tensor | None, ...], wanted: tuple[bool, ...], grad: Tensor
) -> list[Tensor | None]:
    """The gradients of a layer that PyTorch puts together."""
    leaves = [
        None if tensor is None else tensor.detach().requires_grad_(want)
        for tensor, want in zip(given, wanted, strict=True)
    ]
    with torch.enable_grad():
        out = parts(*(leaf for leaf in leaves if leaf is not None))
    found = iter(
        torch.autograd.grad(out, [leaf for leaf in leaves if leaf is not None and leaf.requires_grad], grad)
    )
    return [next(found) if want else None for want in wanted]


def _counted(norm: nn.Module | None, h: Tensor) -> Statistics:
    """The statistics of the rows, which a norm that is trained has then taken into account."""
    found = Statistics.of(h)
    count(norm, found.mean, found.variance, h.shape[0])
    return found


def _correction(norm: nn.Module | None) -> tuple[Tensor, Tensor] | None:
    """Scale and shift of a batch renormalisation that is trained."""
    return (norm.scale, norm.shift) if isinstance(norm, BatchRenorm) and norm.training else None


def _of_weight(found: Gradients, correction: tuple[Tensor, Tensor] | None) -> Tensor | None:
    """The gradient of a norm's weight, from those of the weight and bias that rows were computed with."""
    if correction is None or found.weight is None or found.bias is None:
        return found.weight
    scale, shift = correction
    return found.weight * scale + found.bias * shift


def _norm(norm: nn.Module | None, found: Statistics, weight: Tensor | None, bias: Tensor | None) -> Norm:
    """A norm as numbers."""
    if norm is None or weight is None or bias is None:
        return Norm.none(found.mean)
    if isinstance(norm, nn.LayerNorm):
        return Norm.layer(norm.eps, weight, bias)
    assert isinstance(norm, nn.BatchNorm1d)
    if norm.training:
        if isinstance(norm, BatchRenorm):
            weight, bias = norm.corrected(weight, bias)
        return Norm.batch(found.mean, found.variance, norm.eps, weight, bias, counts=True)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return Norm.batch(norm.running_mean, norm.running_var, norm.eps, weight, bias, counts=False)


def _finished(step: Step, h: Tensor, rows: Tensor, learnt: tuple[Tensor | None, ...]) -> Tensor:
    """The MLP, and the residual."""
    own = None if step.norm is None else step.hop.of_receivers(h)
    if step.mlp is not None:
        out = step.mlp(rows, *learnt)
        return out if own is None else out.add_(own)
    weight, bias = learnt
    assert weight is not None
    assert bias is not None
    out = reused_empty(rows, rows.shape[0], weight.shape[1])
    if own is None:
        return torch.addmm(bias, rows, weight, out=out)
    return torch.add(own, bias, out=out).addmm_(rows, weight)


def _mlp_backward(step: Step, rows: Tensor, learnt: list[Tensor], grad: Tensor) -> tuple[Tensor, ...]:
    """The gradients of what was heard and of the parameters."""
    if step.mlp is None:
        weight, _ = learnt
        of_rows = torch.mm(grad, weight.t(), out=reused_empty(rows, *rows.shape))
        return of_rows, (grad.t() @ rows).t(), grad.sum(0)  # the long axis stays innermost
    leaves = [tensor.detach().requires_grad_() for tensor in (rows, *learnt)]
    with torch.enable_grad():
        out = step.mlp(*leaves)
    of_rows, *others = torch.autograd.grad(out, leaves, grad)
    return of_rows.contiguous(), *others
