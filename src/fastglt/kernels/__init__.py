"""The few products everything else is made of: differentiable, sparse, one function each.

Three back ends compute them: compiled loops (`_numba`), PyTorch's sparse matrices (`_torch`), and gather
and scatter for any device (`_plain`). All give the same results to float tolerance and the same dropout
bits. Which one serves what stands in a `Table`; ``FASTGLT_BACKEND`` forces one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from fastglt.errors import InputError
from fastglt.kernels.csr import CSR, true_indices
from fastglt.kernels.drop import Drop
from fastglt.kernels.table import Table, backend, use_backend

__all__ = [
    "CSR",
    "Table",
    "adam",
    "adam_product",
    "affine",
    "aggregate",
    "attention",
    "backend",
    "dropout",
    "dropped",
    "extremes",
    "head_dots",
    "matmul",
    "set_threads",
    "spmm",
    "table",
    "true_indices",
    "use_backend",
    "use_table",
    "weigh",
    "zero_outside",
]

_chosen: list[Table] = []
_BETAS, _EPS = (0.9, 0.999), 1e-8  # Adam's, as everybody has them


def spmm(csr: CSR, values: Tensor, dense: Tensor, *, known: Tensor | None = None) -> Tensor:
    """Sparse times dense: ``out[i] = Σ_j values[i, j] · dense[j]``, differentiable in both.

    `values` has one number per entry, or one row of numbers per entry, one for each head; the heads
    then split the columns of `dense` into equal parts. A `known` result is not computed again.
    """
    return _Aggregate.apply(csr, _by_head(values), dense, None, "none", None, known)  # type: ignore[no-any-return, no-untyped-call]


def aggregate(
    csr: CSR,
    values: Tensor,
    dense: Tensor,
    bias: Tensor | None,
    *,
    activation: str = "none",
    p: float = 0.0,
    training: bool = False,
) -> Tensor:
    """`spmm` plus a bias, through an activation (none, relu or elu) and `dropout`, in one pass over the rows."""
    drop = Drop.draw(p, training=training)
    return _Aggregate.apply(csr, _by_head(values), dense, bias, activation, drop, None)  # type: ignore[no-any-return, no-untyped-call]


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """Dense times dense, for tall `x`: a product with few columns is where BLAS is slow."""
    return _MatMul.apply(x, weight)  # type: ignore[no-any-return, no-untyped-call]


def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight + bias``, for tall `x`."""
    return _Affine.apply(x, weight, bias)  # type: ignore[no-any-return, no-untyped-call]


def attention(csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """Each row's softmax over ``leaky_relu(target[row] + source[column])``, one column per head."""
    return _Attention.apply(csr, target.contiguous(), source.contiguous(), slope)  # type: ignore[no-any-return, no-untyped-call]


def head_dots(x: Tensor, vectors: Tensor) -> Tensor:
    """``out[i, k, h] = ⟨x[i], vectors[k, h]⟩`` over head h's part of the columns; vectors: [sets, heads, width]."""
    return _HeadDots.apply(x, vectors)  # type: ignore[no-any-return, no-untyped-call]


def dropout(x: Tensor, p: float, *, training: bool) -> Tensor:
    """Zero each number with probability `p`, scale the rest by ``1 / (1 - p)``.

    The key is drawn from PyTorch's default generator, so `torch.manual_seed` decides the result; the
    bits are a hash of (key, row, column), the same on every device and for every thread count.
    """
    return dropped(x, Drop.draw(p, training=training))


def dropped(x: Tensor, drop: Drop | None) -> Tensor:
    """`dropout` with what has been drawn before; None: x itself."""
    return x if drop is None else _Dropout.apply(x, drop)  # type: ignore[no-untyped-call]


def weigh(norm: Tensor, soft_edge_mask: Tensor, ids: Tensor) -> Tensor:
    """``norm[k] · soft_edge_mask[ids[k]]``, differentiable in the soft mask; a self-loop has 1."""
    return _Weigh.apply(norm, soft_edge_mask, ids)  # type: ignore[no-any-return, no-untyped-call]


def extremes(kept: Tensor, strength: Tensor, potential: Tensor, weak: float, promising: float) -> tuple[Any, Any]:
    """Where a vector's kept elements are at most `weak` in size, and where the others are `promising` or more."""
    found: tuple[Any, Any] = _backend_for(strength, "numba").extremes(kept, strength, potential, weak, promising)
    return found


def zero_outside(tensor: Tensor, kept: Tensor) -> None:
    """Set a tensor to zero, in place, where the boolean `kept` is false."""
    _backend_for(tensor, "numba").zero_outside(tensor, kept)
    torch.autograd.graph.increment_version(tensor)


def adam(
    tensor: Tensor,
    grad: Tensor,
    first: Tensor,
    second: Tensor,
    *,
    step: int,
    lr: float,
    weight_decay: float,
    kept: Tensor | None = None,
    total: Tensor | None = None,
) -> None:
    """One step of Adam in place: the tensor and its two moments.

    Where the boolean `kept` is false, all three must be zero and stay so. The gradient's size is added to `total`,
    everywhere.
    """
    numbers = (*_moved(step, lr), weight_decay, *_BETAS, _EPS)
    _backend_for(tensor, "numba").adam(tensor, grad, kept, total, first, second, *numbers)
    torch.autograd.graph.increment_version(tensor)  # compiled loops write behind PyTorch's back


def adam_product(
    left: Tensor,
    right: Tensor,
    product: Tensor,
    grad: Tensor,
    moments: tuple[Tensor, Tensor, Tensor, Tensor],
    *,
    step: int,
    lr: float,
    weight_decay: float,
    l1: float,
) -> None:
    """One step of Adam for both factors from the gradient of their product, which is taken anew.

    Weight decay is left's; l1·sign(right) is added to right's gradient.
    """
    numbers = (*_moved(step, lr), weight_decay, *_BETAS, _EPS)
    _backend_for(left, "numba").adam_product(left, right, product, grad, moments, l1, *numbers)
    torch.autograd.graph.increment_version([left, right, product])


def _moved(step: int, lr: float) -> tuple[float, float]:
    """The learning rate and the second moment's factor, corrected for moments that started at zero."""
    return lr / (1 - _BETAS[0] ** step), (1 - _BETAS[1] ** step) ** -0.5


def table() -> Table:
    """The table in use: the one that was chosen last, else this machine's."""
    return _chosen[-1] if _chosen else Table.of_machine()


@contextmanager
def use_table(chosen: Table) -> Iterator[None]:
    """Let a table decide for a while."""
    _chosen.append(chosen)
    try:
        yield
    finally:
        _chosen.pop()


def set_threads(count: int) -> None:
    """Use so many threads for PyTorch and for the compiled kernels.

    >>> set_threads(1)
    """
    import numba

    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(count)  # last: numba's pool, when it is made, takes all cores for both


def _by_head(values: Tensor) -> Tensor:
    return values.unsqueeze(-1) if values.dim() == 1 else values


def _backend_for(x: Tensor, preferred: str) -> Any:
    """The back end for a tensor: the forced one, else the preferred; loops are for CPUs only.

    Elsewhere PyTorch's own sparse products come first, if it has them there: no message is ever written down.
    """
    name = backend()
    if name == "auto":
        name = preferred
    if name == "numba" and x.device.type != "cpu":
        name = "torch" if x.is_cuda else "plain"
    return _load(name)


def _load(name: str) -> ModuleType:
    if name == "numba":
        from fastglt.kernels import _numba

        return _numba
    from fastglt.kernels import _plain, _torch

    return _torch if name == "torch" else _plain


def _chosen_backend(kernel: str, dense: Tensor) -> Any:
    """The back end that the table has for a kernel and the columns of a dense matrix."""
    return _backend_for(dense, table().choose(kernel, dense.shape[1]))


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        csr: CSR,
        values: Tensor,
        dense: Tensor,
        bias: Tensor | None,
        activation: str,
        drop: Drop | None,
        known: Tensor | None,
    ) -> Tensor:
        if dense.shape[0] != csr.num_columns or values.shape[0] != csr.num_entries:
            raise InputError(
                f"a product must have a row for each of {csr.num_columns} columns and a value for each of "
                f"{csr.num_entries} entries (got {dense.shape[0]} rows and {values.shape[0]} values)"
            )
        out = known
        if out is None:
            out = _chosen_backend("spmm", dense).aggregate(csr, values, dense, bias, activation, drop)
        ctx.csr, ctx.activation, ctx.drop = csr, activation, drop
        finished = activation != "none"
        ctx.save_for_backward(values, dense if ctx.needs_input_grad[1] else None, out if finished else None)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        csr, (values, dense, out), grad = ctx.csr, ctx.saved_tensors, grads[0].contiguous()
        if out is not None:
            grad = _chosen_backend("spmm", grad).activation_backward(out, grad, ctx.activation, ctx.drop)
        elif ctx.drop is not None:
            grad = _chosen_backend("spmm", grad).dropout(grad, ctx.drop)
        grad_values = grad_dense = grad_bias = None
        if ctx.needs_input_grad[1]:
            grad_values = _chosen_backend("sddmm", grad).sddmm(csr, grad, dense, values.shape[1])
        if ctx.needs_input_grad[2]:
            grad_dense = _chosen_backend("spmm", grad).spmm(
                csr.transposed, values.index_select(0, csr.transpose_order), grad
            )
        if ctx.needs_input_grad[3]:
            grad_bias = grad.sum(0)
        return None, grad_values, grad_dense, grad_bias, None, None, None


class _MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        out: Tensor = _chosen_backend("matmul", weight).matmul(x, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        (x, weight), grad = ctx.saved_tensors, grads[0]
        return grad @ weight.t(), (grad.t() @ x).t()  # the long axis of x stays innermost: several times faster


class _Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        (x, weight), grad = ctx.saved_tensors, grads[0]
        return grad @ weight.t(), (grad.t() @ x).t(), grad.sum(0)  # see _MatMul


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
        alpha: Tensor = _backend_for(target, "numba").attention(csr, target, source, slope)
        ctx.csr, ctx.slope = csr, slope
        ctx.save_for_backward(target, source, alpha)
        return alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, Tensor, None]:
        csr, (target, source, alpha), grad = ctx.csr, ctx.saved_tensors, grads[0]
        serving = _backend_for(target, "numba")
        return None, *serving.attention_backward(csr, target, source, ctx.slope, alpha, grad), None


class _HeadDots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(x, vectors)
        out: Tensor = _backend_for(x, "numba").head_dots(x, vectors)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        gradients: tuple[Tensor, Tensor] = _backend_for(grads[0], "numba").head_dots_backward(
            *ctx.saved_tensors, grads[0]
        )
        return gradients


class _Weigh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, norm: Tensor, soft_edge_mask: Tensor, ids: Tensor) -> Tensor:
        ctx.edges = soft_edge_mask.numel()
        ctx.save_for_backward(norm, ids)
        out: Tensor = _backend_for(norm, "numba").weigh(norm, soft_edge_mask, ids)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        norm, ids = ctx.saved_tensors
        return None, _backend_for(norm, "numba").weigh_backward(norm, grads[0], ids, ctx.edges), None


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, drop: Drop) -> Tensor:
        ctx.drop = drop
        out: Tensor = _backend_for(x, "numba").dropout(x, drop)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return _backend_for(grads[0], "numba").dropout(grads[0], ctx.drop), None
