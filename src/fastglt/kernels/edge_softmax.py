"""Softmax aggregation of GENConv with edge features: memory grows with edges × features, never with edges × width.

A message is m = ReLU(x_j + f_ij·W + b) + ε, so each edge has its own. Compiled loops compute messages where they
are needed, and again for gradients; each receiver has a shift of its own, by its largest message. A value of 0 is
exactly a message that is not there. Who hears nothing gets 0.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.kernels import _backend_for
from fastglt.kernels._plain import softmax_by_message
from fastglt.kernels.csr import CSR
from fastglt.kernels.softmax import EPS

_AT_ONCE = 2**24  # numbers that are written down at a time where there are no loops


def edge_softmax_aggregate(
    csr: CSR,
    values: Tensor,
    x: Tensor,
    features: Tensor,
    rows: Tensor,
    weight: Tensor,
    bias: Tensor,
    temperature: Tensor,
) -> Tensor:
    """Each receiver's softmax-weighted mean of ReLU(x[sender] + features[row] · weight + bias) + ε.

    `rows` has the row of `features` of each entry, whatever order they are in. `values` multiply the softmax's
    weights before they are normalised; they must not be negative. Differentiable in all but features and rows.
    """
    given = (values, x, weight, bias, temperature)
    if torch.compiler.is_exporting():  # a trace can ask nothing about numbers
        return _by_message(csr, features, rows, *given)
    return _EdgeSoftmax.apply(csr, features, rows, *given)  # type: ignore[no-any-return, no-untyped-call]


class _EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, features: Tensor, rows: Tensor, *given: Tensor) -> Tensor:
        server, ctx.csr = _backend_for(given[1], "numba"), csr
        if not hasattr(server, "edge_softmax_means"):
            ctx.save_for_backward(features, rows, *given)
            return torch.cat(
                [
                    _by_message(part, features, rows[at], given[0][at], *given[1:])
                    for _, part, at in _parts(csr, given[1])
                ]
            )
        found = server.edge_softmax_means(csr, features, rows, *given, eps=EPS)
        ctx.save_for_backward(features, rows, *given, *found)
        out: Tensor = found[0]
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        features, rows, *saved = ctx.saved_tensors
        given, state = saved[:5], saved[5:]
        if state:
            server = _backend_for(given[1], "numba")
            found = server.edge_softmax_backward(ctx.csr, features, rows, *given, *state, grads[0], eps=EPS)
        else:
            found = _backward_by_message(ctx.csr, features, rows, given, grads[0])
        wanted = ctx.needs_input_grad[3:]
        return None, None, None, *(part if want else None for part, want in zip(found, wanted, strict=True))


def _by_message(
    csr: CSR, features: Tensor, rows: Tensor, values: Tensor, x: Tensor, weight: Tensor, bias: Tensor, t: Tensor
) -> Tensor:
    """The softmax in plain torch, with all messages written down."""
    encoded = features.index_select(0, rows.long()).to(x.dtype) @ weight + bias
    messages = (x.index_select(0, csr.indices.long()) + encoded).relu() + EPS
    own = torch.arange(csr.num_entries, dtype=csr.indices.dtype, device=x.device)
    return softmax_by_message(CSR(indptr=csr.indptr, indices=own, num_columns=csr.num_entries), values, messages, t)


def _parts(csr: CSR, x: Tensor) -> list[tuple[slice, CSR, slice]]:
    """Some receivers after the other, with their entries: so many as can be written down."""
    most = max(1, _AT_ONCE // x.shape[1])
    piece = torch.div(csr.indptr[1:] - 1, most, rounding_mode="floor").clamp(min=0)
    bounds = [0, *(torch.nonzero(piece.diff()).squeeze(1) + 1).tolist(), csr.num_rows]
    found = []
    for first, last in pairwise(bounds):
        begin, end = int(csr.indptr[first]), int(csr.indptr[last])
        indptr = csr.indptr[first : last + 1] - begin
        part = CSR(indptr=indptr, indices=csr.indices[begin:end], num_columns=csr.num_columns)
        found.append((slice(first, last), part, slice(begin, end)))
    return found


def _backward_by_message(
    csr: CSR, features: Tensor, rows: Tensor, given: list[Tensor], grad: Tensor
) -> list[Tensor]:
    """Gradients of everything, some receivers after the other."""
    values, *others = (tensor.detach().requires_grad_() for tensor in given)
    totals = [torch.zeros_like(tensor) for tensor in (values, *others)]
    for some, part, at in _parts(csr, given[1]):
        with torch.enable_grad():
            out = _by_message(part, features, rows[at], values[at], *others)
        found = torch.autograd.grad(out, (values, *others), grad[some])
        totals = [total.add_(one) for total, one in zip(totals, found, strict=True)]
    return totals
