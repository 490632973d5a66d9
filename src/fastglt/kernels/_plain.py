"""The kernels of `_numba` with PyTorch's own gather and scatter: any device, any dtype, slower."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fastglt.kernels.csr import CSR, true_indices
from fastglt.kernels.drop import Drop

if TYPE_CHECKING:
    from fastglt.kernels.frozen import Product

_U32 = 0xFFFFFFFF
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": torch.Tensor.contiguous,
    "relu": torch.relu,
    "elu": torch.nn.functional.elu,
}


def spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    """See `fastglt.kernels.spmm`."""
    heads = values.shape[1]
    messages = _by_head(dense[csr.indices], heads) * values.unsqueeze(-1)
    out = dense.new_zeros(csr.num_rows, dense.shape[1])
    return out.index_add_(0, csr.rows, messages.flatten(1))


def aggregate(
    csr: CSR, values: Tensor, dense: Tensor, bias: Tensor | None, activation: str, drop: Drop | None
) -> Tensor:
    """See `fastglt.kernels.aggregate`."""
    return finish(spmm(csr, values, dense), bias, activation, drop)


def finish(total: Tensor, bias: Tensor | None, activation: str, drop: Drop | None) -> Tensor:
    """What comes after the sum over the neighbours."""
    y = _ACTIVATIONS[activation](total if bias is None else total + bias)
    return y if drop is None else dropout(y, drop)


def activation_backward(y: Tensor, grad: Tensor, activation: str, drop: Drop | None) -> Tensor:
    """The gradient before activation and dropout, from their result and its gradient."""
    scale = 1.0
    if drop is not None:
        grad, scale = dropout(grad, drop), drop.scale
    if activation == "relu":
        return torch.where(y > 0, grad, 0.0)
    return grad if activation == "none" else torch.where(y > 0, grad, grad * (y / scale + 1))


def softmax_shares(x: Tensor, rate: float, eps: float, shift: Tensor) -> Tensor:
    """e = 2^(rate·m − shift), for whole shifts, and e·m side by side, with m = relu(x) + eps."""
    message = x.relu() + eps
    whole = (rate * message).floor()
    e = torch.ldexp((rate * message - whole).exp2(), whole - shift)
    return torch.cat([e, e * message], dim=1)


def softmax_lost_means(
    rows: Tensor, csr: CSR, values: Tensor, x: Tensor, rate: float, eps: float, out: Tensor
) -> None:
    """Fill in the means of some rows, message by message."""
    part, entries = csr.take_rows(rows)
    out[rows] = softmax_by_message(part, values[entries], x.relu() + eps, x.new_tensor(rate * math.log(2)))


def softmax_by_message(csr: CSR, values: Tensor, messages: Tensor, temperature: Tensor) -> Tensor:
    """Each row's softmax-weighted mean, shifted by its own largest message that has a value."""
    sent = messages.index_select(0, csr.indices)
    rows, scaled, weight = csr.rows.unsqueeze(1).expand(sent.shape), sent * temperature, values.unsqueeze(1)
    heard = torch.where(weight > 0, scaled, -torch.inf).detach()
    start = messages.new_full((csr.num_rows, sent.shape[1]), -torch.inf)
    largest = start.scatter_reduce(0, rows, heard, "amax").gather(0, rows)
    shifted = scaled - torch.where(largest.isfinite(), largest, 0.0)
    e = weight * shifted.clamp(max=80.0).exp()  # what has no value, and so no part in the sum, may be larger
    zero = torch.zeros_like(start)
    below, above = zero.scatter_add(0, rows, e), zero.scatter_add(0, rows, e * sent)
    heard = below != 0  # NaN stays
    return torch.where(heard, above / torch.where(heard, below, 1.0), 0.0)


def softmax_means(csr: CSR, values: Tensor, both: Tensor, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """Σ v·e·m / Σ v·e and Σ v·e of each row, and which rows have a sum under `least`, where the mean is 0."""
    return finish_means(spmm(csr, values.unsqueeze(1), both), least)


def finish_means(sums: Tensor, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """What comes after the two sums over the neighbours."""
    below, above = sums.chunk(2, dim=1)
    lost = below < least
    return torch.where(lost, 0.0, above / below), below, lost.any(1)


def softmax_means_backward(grad: Tensor, mean: Tensor, below: Tensor, least: float) -> Tensor:
    """The gradients of Σ v·e and of Σ v·e·m, side by side."""
    of_product = torch.where(below < least, 0.0, grad / below)
    return torch.cat([-of_product * mean, of_product], dim=1)


def softmax_shares_backward(
    x: Tensor, temperature: float, eps: float, both: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of x and of the temperature from those of e and e·m."""
    (e, _), (of_e, of_product), message = both.chunk(2, dim=1), grad.chunk(2, dim=1), x.relu() + eps
    through = (of_e + message * of_product) * e
    return torch.where(x > 0, temperature * through + e * of_product, 0.0), (through * message).sum()


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """See `fastglt.kernels.matmul`."""
    return x @ weight


def projection(
    csr: CSR, heads: Tensor, bias: Tensor, activation: str, weight: Tensor, shift: Tensor
) -> "Callable[[Tensor, Product], Tensor]":
    """See `fastglt.kernels.frozen.projection`."""

    def run(values: Tensor, product: "Product") -> Tensor:
        if not isinstance(product, Tensor):
            matrix = product.matrix.numbers.transpose(0, 1).flatten(1)
            product = spmm(product.csr, product.values, matrix)
        return finish(spmm(csr, values[:, heads], product), bias, activation, None) @ weight + shift

    return run


def narrow_sums(csr: CSR, bias: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """See `fastglt.kernels.frozen.narrow_sums`."""
    return lambda values, dense: spmm(csr, values, dense) + bias


def product(csr: CSR, values: Tensor, dense: Tensor) -> Callable[[], Tensor]:
    """See `fastglt.kernels.frozen.StoredRows.product`."""
    return lambda: spmm(csr, values, dense)


def weigh(norm: Tensor, soft_edge_mask: Tensor, ids: Tensor) -> Tensor:
    """See `fastglt.kernels.weigh`."""
    return norm * torch.cat([soft_edge_mask, soft_edge_mask.new_ones(1)]).index_select(0, ids)


def weigh_backward(norm: Tensor, grad: Tensor, ids: Tensor, edges: int) -> Tensor:
    """The gradient of the soft edge mask."""
    return grad.new_zeros(edges + 1).index_add_(0, ids, grad * norm)[:edges]


def extremes(kept: Tensor, strength: Tensor, potential: Tensor, weak: float, promising: float) -> tuple[Any, Any]:
    """See `fastglt.kernels.extremes`."""
    chosen = kept & (strength.abs() <= weak), ~kept & (potential >= promising)
    return tuple(true_indices(part).cpu().numpy() for part in chosen)  # type: ignore[return-value]


def zero_outside(tensor: Tensor, kept: Tensor) -> None:
    """See `fastglt.kernels.zero_outside`."""
    tensor.mul_(kept)


def adam(
    tensor: Tensor,
    grad: Tensor,
    kept: Tensor | None,
    total: Tensor | None,
    first: Tensor,
    second: Tensor,
    rate: float,
    inverse: float,
    weight_decay: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """See `fastglt.kernels.adam`."""
    if total is not None:
        total.add_(grad.abs())
    grad = (grad if kept is None else grad * kept) + weight_decay * tensor
    first.lerp_(grad, 1 - beta1)
    second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    tensor.addcdiv_(first, second.sqrt().mul_(inverse).add_(eps), value=-rate)


def adam_product(
    left: Tensor,
    right: Tensor,
    product: Tensor,
    grad: Tensor,
    moments: tuple[Tensor, ...],
    l1: float,
    rate: float,
    inverse: float,
    weight_decay: float,
    *numbers: float,
) -> None:
    """See `fastglt.kernels.adam_product`."""
    by_right, by_left = grad * right, grad * left + l1 * right.sign()
    first_left, second_left, first_right, second_right = moments
    adam(left, by_right, None, None, first_left, second_left, rate, inverse, weight_decay, *numbers)
    adam(right, by_left, None, None, first_right, second_right, rate, inverse, 0.0, *numbers)
    torch.mul(left, right, out=product)


def sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """One dot product per entry and head."""
    product = left[csr.rows] * right[csr.indices]
    return _by_head(product, heads).sum(-1)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    return rows.view(rows.shape[0], heads, rows.shape[1] // max(1, heads))


def head_dots(x: Tensor, vectors: Tensor) -> Tensor:
    """See `fastglt.kernels.head_dots`."""
    return torch.einsum("nhw,khw->nkh", _by_head(x, vectors.shape[1]), vectors)


def head_dots_backward(x: Tensor, vectors: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x and of the vectors."""
    grad_x = torch.einsum("nkh,khw->nhw", grad, vectors).flatten(1)
    return grad_x, torch.einsum("nkh,nhw->khw", grad, _by_head(x, vectors.shape[1]))


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


def dropout(x: Tensor, drop: Drop) -> Tensor:
    """See `fastglt.kernels.dropout`; the same bits as the compiled kernel."""
    row = torch.arange(x.shape[0], device=x.device)
    z = drop.key + row * _signed(0x9E3779B97F4A7C15)
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    z = (z ^ _shift(z, 31)).unsqueeze(1)
    low, high = z & _U32, _shift(z, 32)
    u = (torch.arange(x.shape[1], device=x.device) * 0x9E3779B9 + low) & _U32
    u = ((u ^ (u >> 16)) * 0x7FEB352D) & _U32
    u = ((u ^ high ^ (u >> 15)) * 0x846CA68B) & _U32
    u = u ^ (u >> 16)
    return torch.where(u >= drop.threshold, x * drop.scale, 0.0)


def _shift(z: Tensor, bits: int) -> Tensor:
    """A logical right shift of 64-bit words kept in int64."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word
