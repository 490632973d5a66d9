"""Softmax aggregation of GENConv, channel by channel, as two sparse products: no number for each edge and channel.

A message is m = ReLU(x) + ε of its sender alone, so ``out[i] = Σ_j v_ij·e_j·m_j / Σ_j v_ij·e_j`` with e = exp(t·m)
of each *sender*: two products with one sparse matrix. A value of 0 is exactly a message that is not there. Who
hears nothing gets 0.

An exponential has a limited range. Each channel is shifted by a power of two so that its largest is at most 1; that
changes no digit of the result. Where all that a receiver hears is so far below that its sum is lost, that receiver
gets a shift of its own.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.kernels import _chosen_backend
from fastglt.kernels._plain import softmax_by_message
from fastglt.kernels.csr import CSR, true_indices

EPS = 1e-7  # of a message above ReLU
LEAST = 1e-25  # a sum of exponentials below this is lost; single precision ends at 1e-38
_AT_ONCE = 2**24  # numbers that are written down at a time where softmax is taken message by message


def softmax_aggregate(csr: CSR, values: Tensor, x: Tensor, temperature: Tensor) -> Tensor:
    """Each receiver's softmax-weighted mean of its senders' ReLU(x) + ε, differentiable in all three.

    `values` multiply the softmax's weights before they are normalised; they must not be negative. `x` has a row for
    each sender, `temperature` is one number. For gradients, some seven numbers of each node and channel are kept.
    """
    if torch.compiler.is_exporting():  # a trace can ask nothing about numbers
        return _by_message(csr, values, x, temperature)
    if not x.shape[0]:  # nobody sends, so nobody hears
        return x.new_zeros(csr.num_rows, x.shape[1])
    return _SoftmaxAggregate.apply(csr, values, x, temperature)  # type: ignore[no-any-return, no-untyped-call]


class _SoftmaxAggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, values: Tensor, x: Tensor, temperature: Tensor) -> Tensor:
        rate, backend = float(temperature) * math.log2(math.e), _chosen_backend("spmm", x)
        largest = rate * ((x.amax(0) if rate > 0 else x.amin(0)).clamp(min=0) + EPS)
        both = backend.softmax_shares(x, rate, EPS, largest.ceil())
        out, below, lost = backend.softmax_means(csr, values, both, LEAST)
        rows = heard_but_lost(csr, values, lost, x.shape[1])
        for some in rows:
            backend.softmax_lost_means(some, csr, values, x, rate, EPS, out)
        ctx.csr, ctx.rows = csr, rows
        ctx.save_for_backward(values, x, temperature, both, out, below)
        found: Tensor = out
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        csr, (values, x, temperature, both, out, below) = ctx.csr, ctx.saved_tensors
        backend = _chosen_backend("spmm", x)
        back = backend.softmax_means_backward(grads[0].contiguous(), out, below, LEAST)
        for some in ctx.rows:
            back[some] = 0.0
        found: list[Tensor | None] = [None, None, None]
        if ctx.needs_input_grad[1]:
            found[0] = _chosen_backend("sddmm", back).sddmm(csr, back, both, 1).squeeze(1)
        if ctx.needs_input_grad[2] or ctx.needs_input_grad[3]:
            sent = values.index_select(0, csr.transpose_order).unsqueeze(1)
            grad = backend.spmm(csr.transposed, sent, back)
            del back
            found[1], total = backend.softmax_shares_backward(x, float(temperature), EPS, both, grad)
            found[2] = total.to(temperature.dtype).view(temperature.shape)
        for some in ctx.rows:
            _add_by_message(found, csr, some, (values, x, temperature), grads[0])
        return None, *found


def heard_but_lost(csr: CSR, values: Tensor, lost: Tensor, width: int) -> tuple[Tensor, ...]:
    """The lost receivers that hear something all the same; so many at a time as can be written down."""
    rows = true_indices(lost & (csr.row_counts > 0))
    if rows.numel():
        part, entries = csr.take_rows(rows)
        heard = values.new_zeros(rows.numel()).index_add(0, part.rows, values[entries])
        rows = rows[heard > 0]
    place = (csr.row_counts[rows] * width).cumsum(0) // _AT_ONCE
    return tuple(rows[place == part] for part in place.unique())  # type: ignore[no-untyped-call]


def _by_message(csr: CSR, values: Tensor, x: Tensor, temperature: Tensor) -> Tensor:
    """The softmax in plain torch, message by message."""
    return softmax_by_message(csr, values, x.relu() + EPS, temperature)


def _add_by_message(
    found: list[Tensor | None], csr: CSR, rows: Tensor, given: tuple[Tensor, Tensor, Tensor], grad: Tensor
) -> None:
    """Add what some receivers, message by message, contribute to the gradients that are wanted."""
    part, entries = csr.take_rows(rows)
    values, x, temperature = given
    used, columns = part.indices.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    part = CSR(indptr=part.indptr, indices=columns.int(), num_columns=used.numel())
    leaves = [tensor.detach().requires_grad_() for tensor in (values[entries], x[used], temperature)]
    with torch.enable_grad():
        out = _by_message(part, *leaves)
    gradients = torch.autograd.grad(out, leaves, grad[rows])
    if found[0] is not None:
        found[0][entries] += gradients[0]
    if found[1] is not None:
        found[1].index_add_(0, used, gradients[1])
    if found[2] is not None:
        found[2] += gradients[2]
