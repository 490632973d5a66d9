"""The kernels on a CPU, as compiled loops."""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import get_num_threads, set_num_threads
from torch import Tensor

from fastglt.kernels import _edge_loops, _element_loops, _frozen_loops, _loops, _plain, _softmax_loops
from fastglt.kernels._ready import make_ready, start_threads
from fastglt.kernels.csr import CSR
from fastglt.kernels.drop import Drop
from fastglt.kernels.frozen import NARROW, Product, StoredRows

make_ready()
start_threads()

_WORTH_WAKING = 200_000  # multiplications, some 50 µs: about what it takes to wake a thread that sleeps
_ALONE = 2**21  # multiplications of frozen weights that one thread has done before several have agreed on shares
_EXP = 20  # multiplications that an exponential is worth
_LARGE = 2**24  # numbers that are not worth keeping for the next call
_PARTS = 64  # in which sums over all entries are taken, whatever the number of threads
_FAR = 2**25  # bytes of a matrix that no cache holds
_LONG_ROW = 2**11  # bytes: longer rows are not fetched ahead, they would drive one another out
_AHEAD = 8  # entries
_MANY_HEADS = 4  # from which an entry's heads are worth a vector

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
    work = csr.num_entries * dense.shape[1] + out.numel()
    given = (*csr.arrays, *arrays, _ACTIVATIONS[activation], *_words(drop, out), _ahead(dense))
    _run(work, _loops.aggregate, *given, *_arrays(out))
    return out


def activation_backward(y: Tensor, grad: Tensor, activation: str, drop: Drop | None) -> Tensor:
    """The gradient before activation and dropout, from their result and its gradient."""
    out = y.new_empty(y.shape)
    arrays = _arrays(y, grad)
    _run(y.numel(), _loops.activation_backward, *arrays, _ACTIVATIONS[activation], *_words(drop, y), *_arrays(out))
    return out


def dropout(x: Tensor, drop: Drop) -> Tensor:
    """See `fastglt.kernels.dropout`."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _run(x.numel(), _loops.dropout, *_arrays(x), *_words(drop, x), *_arrays(out))
    return out


def sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """One dot product per entry and head."""
    out = left.new_empty(csr.num_entries, heads)
    given = (*csr.arrays, *_arrays(left, right), _ahead(right))
    _run(csr.num_entries * left.shape[1], _loops.sddmm, *given, *_arrays(out))
    return out


def softmax_shares(x: Tensor, rate: float, eps: float, shift: Tensor) -> Tensor:
    """See `_plain`."""
    scalar, out = _scalar(x), x.new_empty(x.shape[0], 2 * x.shape[1])
    numbers = scalar(rate), scalar(eps)
    _run(_EXP * x.numel(), _softmax_loops.shares, *_arrays(x), *numbers, *_arrays(shift, out))
    return out


def softmax_means(csr: CSR, values: Tensor, both: Tensor, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """See `_plain`."""
    width, lost = both.shape[1] // 2, torch.empty(csr.num_rows, dtype=torch.bool)
    out, below = (both.new_empty(csr.num_rows, width) for _ in range(2))
    given, work = (*csr.arrays, *_arrays(values, both)), csr.num_entries * both.shape[1]
    _run(work, _softmax_loops.means, *given, _scalar(both)(least), _ahead(both), *_arrays(out, below, lost))
    return out, below, lost


def softmax_lost_means(
    rows: Tensor, csr: CSR, values: Tensor, x: Tensor, rate: float, eps: float, out: Tensor
) -> None:
    """See `_plain`."""
    given, scalar = (*_arrays(rows), *csr.arrays, *_arrays(values, x)), _scalar(x)
    _softmax_loops.lost_means(*given, scalar(rate), scalar(eps), out.numpy())


def softmax_means_backward(grad: Tensor, mean: Tensor, below: Tensor, least: float) -> Tensor:
    """See `_plain`."""
    out = mean.new_empty(mean.shape[0], 2 * mean.shape[1])
    arrays = _arrays(grad, mean, below)
    _run(mean.numel(), _softmax_loops.means_backward, *arrays, _scalar(mean)(least), *_arrays(out))
    return out


def softmax_shares_backward(
    x: Tensor, temperature: float, eps: float, both: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """See `_plain`."""
    scalar, out, by_row = _scalar(x), x.new_empty(x.shape), x.new_empty(x.shape[0])
    numbers, arrays = (scalar(temperature), scalar(eps)), _arrays(both, grad, out, by_row)
    _run(4 * x.numel(), _softmax_loops.shares_backward, *_arrays(x), *numbers, *arrays)
    return out, by_row.double().sum()


def edge_softmax_means(
    csr: CSR, features: Tensor, rows: Tensor, values: Tensor, x: Tensor, *learnt: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The means of `fastglt.kernels.edge_softmax`, then what their gradients need: each row's top and sum."""
    weight, bias, temperature = learnt
    mean, top, below = (x.new_empty(csr.num_rows, x.shape[1]) for _ in range(3))
    scalar, found = _scalar(x), (mean, top, below)
    given = (*csr.arrays, *_arrays(values, x, features.to(x.dtype), rows, weight, bias))
    work = csr.num_entries * x.shape[1] * (features.shape[1] + _EXP)
    _run(work, _edge_loops.means, *given, scalar(float(temperature)), scalar(eps), *_arrays(*found))
    return found


def edge_softmax_backward(
    csr: CSR, features: Tensor, rows: Tensor, values: Tensor, x: Tensor, *others: Tensor, eps: float
) -> tuple[Tensor, ...]:
    """The gradients of values, x, weight, bias and temperature.

    `others` are the last three, what `edge_softmax_means` gave, and the gradient of the means.
    """
    weight, bias, temperature, mean, top, below, grad = others
    share = torch.where(below > 0, grad / below, 0.0)
    of_x, of_values, of_t = x.new_empty(x.shape), values.new_empty(values.shape), x.new_empty(_PARTS)
    of_weight, of_bias = x.new_zeros(_PARTS, *weight.shape), x.new_zeros(_PARTS, *bias.shape)
    given = (*csr.transposed.arrays, csr.transpose_order.numpy())
    arrays, scalar = _arrays(values, x, features.to(x.dtype), rows, weight, bias), _scalar(x)
    numbers, out = (scalar(float(temperature)), scalar(eps)), (of_x, of_values, of_weight, of_bias, of_t)
    work = 2 * csr.num_entries * x.shape[1] * (features.shape[1] + _EXP)
    _run(work, _edge_loops.backward, *given, *arrays, *numbers, *_arrays(share, mean, top, *out))
    summed = of_t.double().sum().to(temperature.dtype).view(temperature.shape)
    return of_values, of_x, of_weight.sum(0), of_bias.sum(0), summed


def matmul(x: Tensor, weight: Tensor) -> Tensor:
    """See `fastglt.kernels.matmul`; made for a weight of few columns."""
    out = x.new_empty(x.shape[0], weight.shape[1])
    _run(x.numel() * weight.shape[1], _loops.narrow, *_arrays(x, weight.t(), out))
    return out


def head_dots(x: Tensor, vectors: Tensor) -> Tensor:
    """See `fastglt.kernels.head_dots`."""
    out = x.new_empty(x.shape[0], *vectors.shape[:2])
    _run(x.numel() * vectors.shape[0], _loops.head_dots, *_arrays(x, vectors, out))
    return out


def head_dots_backward(x: Tensor, vectors: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of x and of the vectors."""
    grad_x, grad_vectors = x.new_empty(x.shape), vectors.new_zeros(vectors.shape)
    _run(x.numel() * vectors.shape[0], _loops.head_dots_rows, *_arrays(vectors, grad, grad_x))
    _run(x.numel() * vectors.shape[0], _loops.head_dots_vectors, *_arrays(x, grad, grad_vectors))
    return grad_x, grad_vectors


def attention(csr: CSR, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """See `fastglt.kernels.attention`."""
    alpha = target.new_empty(csr.num_entries, target.shape[1])
    work, given, slope = _EXP * alpha.numel(), (*csr.arrays, *_arrays(target, source)), _scalar(target)(slope)
    if target.shape[1] < _MANY_HEADS:
        _run(work, _loops.attention, *given, slope, *_arrays(alpha))
        return alpha
    of_row = torch.empty_like(target)
    _run(work, _loops.attention_logits, *given, slope, *_arrays(of_row, alpha))
    alpha.exp_()  # several times as fast as the loops' own
    _run(work, _loops.attention_shares, csr.arrays[0], *_arrays(of_row, alpha))
    return alpha


def attention_backward(
    csr: CSR, target: Tensor, source: Tensor, slope: float, alpha: Tensor, grad: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the two halves of the logits."""
    logits, grad_target, grad_source = (alpha.new_empty(like.shape) for like in (alpha, target, source))
    arrays = _arrays(target, source)
    _run(
        alpha.numel(),
        _loops.attention_backward,
        *csr.arrays,
        *arrays,
        slope,
        *_arrays(alpha, grad, logits, grad_target),
    )
    _run(alpha.numel(), _loops.row_sums, *_arrays(csr.transposed.indptr, csr.transpose_order, logits, grad_source))
    return grad_target, grad_source


def projection(
    csr: CSR, heads: Tensor, bias: Tensor, activation: str, weight: Tensor, shift: Tensor
) -> Callable[[Tensor, Product], Tensor]:
    """See `fastglt.kernels.frozen.projection`."""
    if bias.dtype != torch.float32:
        return _plain.projection(csr, heads, bias, activation, weight, shift)
    count, outputs = heads.numel(), shift.numel()
    width, kept = bias.numel() // max(1, count), threading.local()
    columns_of = weight.view(count, width, outputs)
    by_strip = bias.view(count, width), columns_of if width == NARROW else columns_of.transpose(1, 2)
    of_strips, added, columns, after = _arrays(heads, *by_strip, shift)
    kind, work = _ACTIVATIONS[activation], (csr.num_entries + csr.num_rows * outputs) * bias.numel()

    def whole(values: Tensor, product: Tensor) -> Tensor:
        out = product.new_empty(csr.num_rows, outputs)
        given, dense, filled = _arrays(values, product, out)
        rest = (dense, added, kind, columns, after, filled)
        loop = _frozen_loops.project_alone if work <= _ALONE else _frozen_loops.project
        loop(*csr.arrays, given, of_strips, *rest)
        return out

    def in_strips(values: Tensor, rows: StoredRows) -> Tensor:
        more = rows.csr.num_entries * bias.numel()
        threads = 1 if work + more <= _ALONE else max(1, min(get_num_threads(), count))
        factors, strips, given = _arrays(rows.values, rows.matrix.numbers, values)
        before = (*rows.csr.arrays, factors, strips, *csr.arrays, given, of_strips, added, columns, kind)
        if threads == 1:
            out = shift.new_empty(csr.num_rows, outputs)
            (dense,) = _scratch(kept, (rows.csr.num_rows, width))
            _frozen_loops.project_strips_alone(*before, dense, after, *_arrays(out))
            return out
        held, parts = _scratch(kept, (threads, rows.csr.num_rows, width), (threads, csr.num_rows, outputs))
        _frozen_loops.project_strips(*before, held, parts)
        return torch.from_numpy(parts.sum(0)).add_(shift)

    def run(values: Tensor, product: Product) -> Tensor:
        return whole(values, product) if isinstance(product, Tensor) else in_strips(values, product)

    return run


def narrow_sums(csr: CSR, bias: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """See `fastglt.kernels.frozen.narrow_sums`."""
    before, work = _arrays(bias), 2 * csr.num_entries * bias.numel()  # rows so short are far from the best speed
    loop = _frozen_loops.narrow_sum_alone if work <= _ALONE else _frozen_loops.narrow_sum

    def run(values: Tensor, dense: Tensor) -> Tensor:
        out = dense.new_empty(csr.num_rows, bias.numel())
        loop(*csr.arrays, *_arrays(values, dense), *before, *_arrays(out))
        return out

    return run


def product(csr: CSR, values: Tensor, dense: Tensor) -> Callable[[], Tensor]:
    """See `fastglt.kernels.frozen.StoredRows.product`."""
    before, shape = (*csr.arrays, *_arrays(values, dense)), (csr.num_rows, dense.shape[1])
    work = csr.num_entries * shape[1]
    loop = _frozen_loops.product_alone if work <= _ALONE else _frozen_loops.product

    def run() -> Tensor:
        out = dense.new_empty(shape)
        loop(*before, out.numpy())
        return out

    return run


def weigh(norm: Tensor, soft_edge_mask: Tensor, ids: Tensor) -> Tensor:
    """See `fastglt.kernels.weigh`."""
    if norm.dtype != soft_edge_mask.dtype:
        return _plain.weigh(norm, soft_edge_mask, ids)
    out = torch.empty_like(norm)
    _element_loops.weigh(*_arrays(norm, soft_edge_mask, ids, out))
    return out


def weigh_backward(norm: Tensor, grad: Tensor, ids: Tensor, edges: int) -> Tensor:
    """The gradient of the soft edge mask."""
    if norm.dtype != grad.dtype:
        return _plain.weigh_backward(norm, grad, ids, edges)
    out = grad.new_zeros(edges)
    _element_loops.weigh_backward(*_arrays(norm, grad, ids, out))
    return out


def extremes(kept: Tensor, strength: Tensor, potential: Tensor, weak: float, promising: float) -> tuple[Any, Any]:
    """See `fastglt.kernels.extremes`."""
    limits, size = (_scalar(strength)(weak), _scalar(potential)(promising)), kept.numel()
    blocks = -(-size // _element_loops.LOOKED_AT)
    marks, counts = np.empty(size, dtype=np.uint8), np.zeros((blocks + 1, 2), dtype=np.int64)
    _run(size, _element_loops.mark_extremes, *_arrays(kept, strength, potential), *limits, marks, counts)
    starts = counts.cumsum(0)
    found = np.empty(starts[-1, 0], dtype=np.int64), np.empty(starts[-1, 1], dtype=np.int64)
    _run(size, _element_loops.find_marks, marks, starts, *found)
    return found


def zero_outside(tensor: Tensor, kept: Tensor) -> None:
    """See `fastglt.kernels.zero_outside`."""
    if not tensor.is_contiguous() or not kept.is_contiguous():
        _plain.zero_outside(tensor, kept)
        return
    _run(tensor.numel(), _element_loops.zero_outside, tensor.detach().view(-1).numpy(), kept.view(-1).numpy())


def adam(
    tensor: Tensor,
    grad: Tensor,
    kept: Tensor | None,
    total: Tensor | None,
    first: Tensor,
    second: Tensor,
    *numbers: float,
) -> None:
    """See `fastglt.kernels.adam`."""
    if not all(part.is_contiguous() for part in (tensor, kept, total, first, second) if part is not None):
        _plain.adam(tensor, grad, kept, total, first, second, *numbers)
        return
    scalar = _scalar(tensor)
    kept = tensor.new_empty(0, dtype=torch.bool) if kept is None else kept
    total = tensor.new_empty(0) if total is None else total
    parts = (tensor, grad.contiguous(), kept, total, first, second)
    arrays = (part.detach().view(-1).numpy() for part in parts)
    *before, beta1, beta2, eps = numbers
    _run(
        tensor.numel(),
        _element_loops.adam,
        *arrays,
        *map(scalar, (*before, beta1, beta2, 1 - beta1, 1 - beta2, eps)),
    )


def adam_product(
    left: Tensor,
    right: Tensor,
    product: Tensor,
    grad: Tensor,
    moments: tuple[Tensor, ...],
    l1: float,
    *numbers: float,
) -> None:
    """See `fastglt.kernels.adam_product`."""
    if not all(part.is_contiguous() for part in (left, right, product, *moments)):
        _plain.adam_product(left, right, product, grad, moments, l1, *numbers)
        return
    scalar = _scalar(left)
    arrays = [part.detach().view(-1).numpy() for part in (left, right, product, grad.contiguous(), *moments)]
    *before, beta1, beta2, eps = numbers
    scalars = map(scalar, (*before, beta1, beta2, 1 - beta1, 1 - beta2, eps))
    _run(2 * left.numel(), _element_loops.adam_product, *arrays[:4], tuple(arrays[4:]), scalar(l1), *scalars)


def _run(work: int, loop: Any, *arguments: Any) -> None:
    """Run a loop of so many steps; one that is over before a second thread has woken up is left to this one."""
    if work >= _WORTH_WAKING or (threads := get_num_threads()) == 1:
        loop(*arguments)
        return
    set_num_threads(1)
    try:
        loop(*arguments)
    finally:
        set_num_threads(threads)


def _ahead(dense: Tensor) -> int:
    """How many entries ahead a matrix's rows are worth fetching."""
    return _AHEAD if dense.nbytes >= _FAR and dense.shape[1] * dense.element_size() <= _LONG_ROW else 0


def _scratch(kept: threading.local, *shapes: tuple[int, ...]) -> "list[npt.NDArray[np.float32]]":
    """Arrays for a moment, in memory that is kept for each thread: new pages cost more than what is done there."""
    sizes = [math.prod(shape) for shape in shapes]
    memory = getattr(kept, "memory", None)
    if memory is None or memory.size < sum(sizes):
        memory = np.empty(sum(sizes), np.float32)
        if memory.size <= _LARGE:
            kept.memory = memory
    parts = np.split(memory[: sum(sizes)], np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _arrays(*tensors: Tensor) -> list[Any]:
    """As compiled loops take them; a tensor that is so already is not asked twice, where an answer takes µs."""
    return [
        tensor.numpy()
        if tensor.is_contiguous() and not tensor.requires_grad
        else tensor.detach().contiguous().numpy()
        for tensor in tensors
    ]


def _scalar(like: Tensor) -> Any:
    return np.float32 if like.dtype == torch.float32 else np.float64


def _words(drop: Drop | None, like: Tensor) -> tuple[Any, Any, Any]:
    scalar = _scalar(like)
    if drop is None:
        return np.uint64(0), np.uint32(0), scalar(1)
    return np.uint64(drop.key), np.uint32(drop.threshold), scalar(drop.scale)
