"""The same kernels with PyTorch's own gather and scatter: any device, any dtype, slower."""

import torch
from torch import Tensor

from fastglt.kernels.csr import CSR

_U32 = 0xFFFFFFFF


def spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    """See `fastglt.kernels.spmm`."""
    heads = values.shape[1]
    messages = _by_head(dense[csr.indices], heads) * values.unsqueeze(-1)
    out = dense.new_zeros(csr.num_rows, dense.shape[1])
    return out.index_add_(0, csr.rows, messages.flatten(1))


def sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """One dot product per entry and head."""
    product = left[csr.rows] * right[csr.indices]
    return _by_head(product, heads).sum(-1)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    return rows.view(rows.shape[0], heads, rows.shape[1] // heads)


def attention(csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """See `fastglt.kernels.attention`."""
    logits = torch.nn.functional.leaky_relu(target[csr.rows] + source[csr.indices], slope)
    index = csr.rows.unsqueeze(-1).expand_as(logits)
    shape = (csr.num_rows, logits.shape[1])
    largest = logits.new_full(shape, -torch.inf).scatter_reduce(0, index, logits, "amax")
    weights = (logits - largest[csr.rows]).exp()
    return weights / logits.new_zeros(shape).index_add(0, csr.rows, weights)[csr.rows]


def attention_backward(
    csr: CSR, target: Tensor, source: Tensor, slope: float, alpha: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the two halves of the logits."""
    dot = torch.zeros_like(target).index_add_(0, csr.rows, alpha * grad)
    logits = alpha * (grad - dot[csr.rows])
    negative = target[csr.rows] + source[csr.indices] <= 0
    logits = torch.where(negative, slope * logits, logits)
    grad_target = torch.zeros_like(target).index_add_(0, csr.rows, logits)
    grad_source = torch.zeros_like(source).index_add_(0, csr.indices, logits)
    return grad_target, grad_source


def dropout(x: Tensor, key: int, threshold: int, scale: float) -> Tensor:
    """See `fastglt.kernels.dropout`; the same bits as the compiled kernel."""
    row = torch.arange(x.shape[0], device=x.device)
    z = key + row * _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    z = (z ^ _shift(z, 31)).unsqueeze(1)
    low, high = z & _U32, _shift(z, 32)
    u = (torch.arange(x.shape[1], device=x.device) * 0x9E3779B9 + low) & _U32
    u = ((u ^ (u >> 16)) * 0x7FEB352D) & _U32
    u = ((u ^ high ^ (u >> 15)) * 0x846CA68B) & _U32
    u = u ^ (u >> 16)
    return torch.where(u >= threshold, x * scale, 0.0)


def _shift(z: Tensor, bits: int) -> Tensor:
    """A logical right shift of 64-bit words kept in int64."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word
