"""The few products everything else is made of: differentiable, sparse, one function each.

On a CPU they run as compiled loops (`_numba`); on any other device, or with
``FASTGLT_BACKEND=plain``, as gather and scatter (`_plain`). Both give the same results to float
tolerance, and the same dropout bits.
"""

import os
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.errors import unknown_name
from fastglt.kernels import _plain
from fastglt.kernels.csr import CSR

__all__ = ["CSR", "attention", "backend", "dropout", "set_threads", "spmm"]

_BACKENDS = ("auto", "numba", "plain")


def spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    """Sparse times dense: ``out[i] = Σ_j values[i, j] · dense[j]``, differentiable in both.

    `values` has one number per entry, or one row of numbers per entry, one for each head; the heads
    then split the columns of `dense` into equal parts.
    """
    if values.dim() == 1:
        values = values.unsqueeze(-1)
    return _SpMM.apply(csr, values, dense)  # type: ignore[no-any-return, no-untyped-call]


def attention(csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """Each row's softmax over ``leaky_relu(target[row] + source[column])``, one column per head."""
    return _Attention.apply(csr, target.contiguous(), source.contiguous(), slope)  # type: ignore[no-any-return, no-untyped-call]


def dropout(x: Tensor, p: float, *, training: bool) -> Tensor:
    """Zero each number with probability `p`, scale the rest by ``1 / (1 - p)``.

    The key is drawn from PyTorch's default generator, so `torch.manual_seed` decides the result; the
    bits are a hash of (key, row, column), the same on every device and for every thread count.
    """
    if not training or p == 0:
        return x
    key = int(torch.randint(2**62, ()).item())
    return _Dropout.apply(x, p, key)  # type: ignore[no-any-return, no-untyped-call]


def set_threads(count: int) -> None:
    """Use `count` threads for PyTorch and for the compiled kernels."""
    import numba

    torch.set_num_threads(count)
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


def backend() -> str:
    """What `FASTGLT_BACKEND` asks for."""
    choice = os.environ.get("FASTGLT_BACKEND", "auto")
    if choice not in _BACKENDS:
        raise unknown_name("FASTGLT_BACKEND", choice, _BACKENDS)
    return choice


def _compiled(x: Tensor) -> bool:
    """Whether the compiled kernels serve this tensor."""
    return x.device.type == "cpu" and backend() != "plain"


def _spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    if not _compiled(dense):
        return _plain.spmm(csr, values, dense)
    from fastglt.kernels import _numba

    out = dense.new_empty(csr.num_rows, dense.shape[1])
    _numba.spmm(*_arrays(csr.indptr, csr.indices, values, dense, out))
    return out


def _sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    if not _compiled(left):
        return _plain.sddmm(csr, left, right, heads)
    from fastglt.kernels import _numba

    out = left.new_empty(csr.num_entries, heads)
    _numba.sddmm(*_arrays(csr.indptr, csr.indices, left, right, out))
    return out


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


class _SpMM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
        ctx.csr = csr
        ctx.save_for_backward(values, dense)
        return _spmm(csr, values, dense)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        csr, (values, dense), grad = ctx.csr, ctx.saved_tensors, grads[0]
        grad_values = grad_dense = None
        if ctx.needs_input_grad[1]:
            grad_values = _sddmm(csr, grad, dense, values.shape[1])
        if ctx.needs_input_grad[2]:
            grad_dense = _spmm(csr.transposed, values[csr.transpose_order], grad)
        return None, grad_values, grad_dense


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
        if _compiled(target):
            from fastglt.kernels import _numba

            alpha = target.new_empty(csr.num_entries, target.shape[1])
            arrays = _arrays(csr.indptr, csr.indices, target, source)
            _numba.attention(*arrays, slope, *_arrays(alpha))
        else:
            alpha = _plain.attention(csr, target, source, slope)
        ctx.csr, ctx.slope = csr, slope
        ctx.save_for_backward(target, source, alpha)
        return alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor, None]:
        csr, (target, source, alpha), grad = ctx.csr, ctx.saved_tensors, grads[0]
        if not _compiled(target):
            gradients = _plain.attention_backward(csr, target, source, ctx.slope, alpha, grad)
            return None, *gradients, None
        from fastglt.kernels import _numba

        logits, grad_target, grad_source = (alpha.new_empty(like.shape) for like in (alpha, target, source))
        arrays = _arrays(csr.indptr, csr.indices, target, source)
        _numba.attention_backward(*arrays, ctx.slope, *_arrays(alpha, grad, logits, grad_target))
        _numba.row_sums(*_arrays(csr.transposed.indptr, csr.transpose_order, logits, grad_source))
        return None, grad_target, grad_source, None


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, key: int) -> Tensor:
        ctx.p, ctx.key = p, key
        return _Dropout.masked(x, p, key)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return _Dropout.masked(grads[0], ctx.p, ctx.key), None, None

    @staticmethod
    def masked(x: Tensor, p: float, key: int) -> Tensor:
        threshold = round(p * 2**32)
        scale = 1 / (1 - threshold / 2**32)
        if not _compiled(x):
            return _plain.dropout(x, key, threshold, scale)
        import numpy as np

        from fastglt.kernels import _numba

        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        source, target = _arrays(x, out)
        _numba.dropout(source, np.uint64(key), np.uint32(threshold), source.dtype.type(scale), target)
        return out
