"""Softmax aggregation, channel by channel, as two sparse products: no number for each edge and channel.

Where a message depends on its sender alone, ``out[i] = Σ_j v_ij·e_j·m_j / Σ_j v_ij·e_j`` with ``e = exp(t·m)`` of each
*sender*: two products with one sparse matrix. A value of 0 is exactly a message that is not there. A receiver that
hears nothing gets 0.

An exponential has a limited range. Each channel is shifted so that its largest is e^HEADROOM; where all that a
receiver hears is so far below that its sum is lost, that receiver's softmax is taken message by message.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.kernels import _for
from fastglt.kernels.csr import CSR, true_indices

_HEADROOM = 40.0  # the largest exponent of a channel: sums over 1e20 messages stay finite
_LOST = 1e-25  # a sum of exponentials below this is taken message by message
_AT_ONCE = 2**24  # numbers that are written down at a time where it is


def softmax_aggregate(csr: CSR, values: Tensor, messages: Tensor, temperature: Tensor) -> Tensor:
    """Each receiver's softmax-weighted mean of its senders' messages, differentiable in all three.

    `values` multiply the softmax's weights before they are normalised; they must not be negative. `messages` has a
    row for each sender, `temperature` is one number.
    """
    if torch.compiler.is_exporting():  # a trace can ask nothing about numbers
        return _by_message(csr, values, messages, temperature)
    return _SoftmaxAggregate.apply(csr, values, messages, temperature)  # type: ignore[no-any-return, no-untyped-call]


class _SoftmaxAggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, values: Tensor, messages: Tensor, temperature: Tensor) -> Tensor:
        shares = _shares(messages, temperature)
        below, above = _for("spmm", shares).spmm(csr, values.unsqueeze(1), shares).chunk(2, dim=1)
        del shares
        lost = below < _LOST
        rows = _lost_rows(csr, values, lost)
        out = torch.where(lost, 0.0, above / below)
        for some in rows:
            part, entries = csr.take_rows(some)
            out[some] = _by_message(part, values[entries], messages, temperature)
        ctx.csr, ctx.rows = csr, rows
        ctx.save_for_backward(values, messages, temperature, out, below)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        csr, (values, messages, temperature, out, below) = ctx.csr, ctx.saved_tensors
        back = torch.empty(out.shape[0], 2 * out.shape[1], dtype=out.dtype, device=out.device)
        left, right = back.chunk(2, dim=1)
        torch.div(grads[0], below, out=right)
        right.masked_fill_(below < _LOST, 0.0)
        for some in ctx.rows:
            right[some] = 0.0
        torch.mul(right, out, out=left).neg_()
        shares = _shares(messages, temperature)
        found = [None, None, None]
        if ctx.needs_input_grad[1]:
            found[0] = _for("sddmm", back).sddmm(csr, back, shares, 1).squeeze(1)
        if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
            order = csr.transpose_order
            of_e, of_product = (
                _for("spmm", back).spmm(csr.transposed, values.index_select(0, order).unsqueeze(1), back)
            ).chunk(2, dim=1)
            e = shares[:, : out.shape[1]]
            through = of_e.addcmul_(messages, of_product).mul_(e)
            found[2] = (through * messages).sum().view(temperature.shape) if ctx.needs_input_grad[3] else None
            found[1] = through.mul_(temperature).addcmul_(e, of_product)
        for some in ctx.rows:
            _add_by_message(found, csr, some, (values, messages, temperature), grads[0])
        return None, *found


def _shares(messages: Tensor, temperature: Tensor) -> Tensor:
    """e = exp(t·m), shifted by channel, and e·m side by side."""
    width = messages.shape[1]
    both = messages.new_empty(messages.shape[0], 2 * width)
    e, product = both[:, :width], both[:, width:]
    torch.mul(messages, temperature, out=e)
    e.sub_(e.amax(0) - _HEADROOM).exp_()
    torch.mul(e, messages, out=product)
    return both


def _lost_rows(csr: CSR, values: Tensor, lost: Tensor) -> tuple[Tensor, ...]:
    """The receivers that hear something, but whose sums are lost; so many at a time as can be written down."""
    rows = true_indices(lost.any(1) & (csr.row_counts > 0))
    if rows.numel():
        part, entries = csr.take_rows(rows)
        heard = values.new_zeros(rows.numel()).index_add(0, part.rows, values[entries])
        rows = rows[heard > 0]
    numbers = (csr.row_counts[rows] * lost.shape[1]).cumsum(0)
    return tuple(rows[numbers // _AT_ONCE == part] for part in (numbers // _AT_ONCE).unique())  # type: ignore[no-untyped-call]


def _by_message(csr: CSR, values: Tensor, messages: Tensor, temperature: Tensor) -> Tensor:
    """The softmax in plain torch, each receiver shifted by its own largest message that has a value."""
    sent = messages.index_select(0, csr.indices)
    rows, scaled, weight = csr.rows.unsqueeze(1).expand(sent.shape), sent * temperature, values.unsqueeze(1)
    heard = torch.where(weight > 0, scaled, -torch.inf).detach()
    start = messages.new_full((csr.num_rows, sent.shape[1]), -torch.inf)
    largest = start.scatter_reduce(0, rows, heard, "amax").gather(0, rows)
    e = weight * (scaled - torch.where(largest.isfinite(), largest, 0.0)).clamp(max=2 * _HEADROOM).exp()
    zero = torch.zeros_like(start)
    below, above = zero.scatter_add(0, rows, e), zero.scatter_add(0, rows, e * sent)
    return torch.where(below > 0, above / torch.where(below > 0, below, 1.0), 0.0)


def _add_by_message(
    found: list[Tensor | None], csr: CSR, rows: Tensor, given: tuple[Tensor, Tensor, Tensor], grad: Tensor
) -> None:
    """Add what some receivers, message by message, contribute to the gradients that are wanted."""
    part, entries = csr.take_rows(rows)
    values, messages, temperature = given
    used, columns = part.indices.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    part = CSR(indptr=part.indptr, indices=columns.int(), num_columns=used.numel())
    inputs = [values[entries], messages[used], temperature]
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        out = _by_message(part, *leaves)
    gradients = torch.autograd.grad(out, leaves, grad[rows])
    if found[0] is not None:
        found[0][entries] += gradients[0]
    if found[1] is not None:
        found[1].index_add_(0, used, gradients[1])
    if found[2] is not None:
        found[2] += gradients[2]
