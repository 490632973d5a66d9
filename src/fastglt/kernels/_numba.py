"""The kernels on a CPU, as compiled loops."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels import _loops, _plain
from fastglt.kernels.csr import CSR
from fastglt.kernels.drop import Drop

_ACTIVATIONS = {"none": _loops.NONE, "relu": _loops.RELU, "elu": _loops.ELU}


def spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    """See `fastglt.kernels.spmm`."""
    return aggregate(csr, values, dense, None, "none", None)


def aggregate(
    csr: CSR, values: Tensor, dense: Tensor, bias: Tensor | None, activation: str, drop: Drop | None
) -> Tensor:
    """See `fastglt.kernels.aggregate`."""
    out = dense.new_empty(csr.num_rows, dense.shape[1])
    if bias is None:
        bias = dense.new_zeros(0 if activation == "none" else dense.shape[1])
    arrays = _arrays(values, dense, bias)
    _loops.aggregate(*csr.arrays, *arrays, _ACTIVATIONS[activation], *_words(drop, out), *_arrays(out))
    return out


def activation_backward(y: Tensor, grad: Tensor, activation: str, drop: Drop | None) -> Tensor:
    """The gradient before activation and dropout, from their result and its gradient."""
    out = y.new_empty(y.shape)
    _loops.activation_backward(*_arrays(y, grad), _ACTIVATIONS[activation], *_words(drop, y), *_arrays(out))
    return out


def dropout(x: Tensor, drop: Drop) -> Tensor:
    """See `fastglt.kernels.dropout`."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _loops.dropout(*_arrays(x), *_words(drop, x), *_arrays(out))
    return out


def sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """One dot product per entry and head."""
    out = left.new_empty(csr.num_entries, heads)
    _loops.sddmm(*csr.arrays, *_arrays(left, right, out))
    return out


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """See `fastglt.kernels.matmul`; made for a weight of few columns."""
    out = x.new_empty(x.shape[0], weight.shape[1])
    _loops.narrow(*_arrays(x, weight.t(), out))
    return out


def head_dots(x: Tensor, vectors: Tensor) -> Tensor:
    """See `fastglt.kernels.head_dots`."""
    out = x.new_empty(x.shape[0], *vectors.shape[:2])
    _loops.head_dots(*_arrays(x, vectors, out))
    return out


def head_dots_backward(x: Tensor, vectors: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x and of the vectors."""
    grad_x, grad_vectors = x.new_empty(x.shape), vectors.new_zeros(vectors.shape)
    _loops.head_dots_rows(*_arrays(vectors, grad, grad_x))
    _loops.head_dots_vectors(*_arrays(x, grad, grad_vectors))
    return grad_x, grad_vectors


def attention(csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """See `fastglt.kernels.attention`."""
    alpha = target.new_empty(csr.num_entries, target.shape[1])
    _loops.attention(*csr.arrays, *_arrays(target, source), slope, *_arrays(alpha))
    return alpha


def attention_backward(
    csr: CSR, target: Tensor, source: Tensor, slope: float, alpha: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the two halves of the logits."""
    logits, grad_target, grad_source = (alpha.new_empty(like.shape) for like in (alpha, target, source))
    arrays = _arrays(target, source)
    _loops.attention_backward(*csr.arrays, *arrays, slope, *_arrays(alpha, grad, logits, grad_target))
    _loops.row_sums(*_arrays(csr.transposed.indptr, csr.transpose_order, logits, grad_source))
    return grad_target, grad_source


def sum_and_mask(grad: Tensor, kept: Tensor, total: Tensor) -> None:
    """See `fastglt.kernels.sum_and_mask`."""
    if not grad.dim() or not all(tensor.is_contiguous() for tensor in (grad, kept, total)):
        _plain.sum_and_mask(grad, kept, total)
        return
    _loops.sum_and_mask(*(tensor.view(tensor.shape[0], -1).numpy() for tensor in (grad, kept, total)))


def adam(tensor: Tensor, grad: Tensor, first: Tensor, second: Tensor, *numbers: float) -> None:
    """See `fastglt.kernels.adam`."""
    if not all(part.is_contiguous() for part in (tensor, first, second)):
        _plain.adam(tensor, grad, first, second, *numbers)
        return
    scalar = _scalar(tensor)
    arrays = (part.detach().view(-1).numpy() for part in (tensor, grad.contiguous(), first, second))
    *before, beta1, beta2, eps = numbers
    _loops.adam(*arrays, *map(scalar, (*before, beta1, beta2, 1 - beta1, 1 - beta2, eps)))


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


def _scalar(like: Tensor) -> Any:
    return np.float32 if like.dtype == torch.float32 else np.float64


def _words(drop: Drop | None, like: Tensor) -> tuple[Any, Any, Any]:
    scalar = _scalar(like)
    if drop is None:
        return np.uint64(0), np.uint32(0), scalar(1)
    return np.uint64(drop.key), np.uint32(drop.threshold), scalar(drop.scale)
