"""Compiled loops over single numbers: Adam and masks, scores of messages, and the extremes of a mask's elements."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW

LOOKED_AT = 2**15  # numbers that one thread looks at at a time
_BLOCK = 4096  # numbers of a long vector that one thread takes at a time
_STRETCH = 64  # numbers that are looked at together for whether one is kept


@njit(**_OPTIONS)
def adam(tensor, grad, kept, total, first, second, rate, inverse, decay, beta1, beta2, rest1, rest2, eps):  # type: ignore[no-untyped-def]
    """first and second are the decaying means of the gradient and of its square; tensor moves by their ratio.

    The rests are what the betas lack of 1: taken from 1 here, they would have few digits. A total that is not empty
    grows by the gradient's size. Where a kept that is not empty is false, all but that is zero and stays so.
    """
    blocks = (tensor.shape[0] + _BLOCK - 1) // _BLOCK
    for b in prange(blocks):
        part = slice(b * _BLOCK, (b + 1) * _BLOCK)
        block = grad[part]
        if total.shape[0]:
            _add_sizes(block, total[part])
        numbers = (rate, inverse, decay, beta1, beta2, rest1, rest2, eps)
        if kept.shape[0]:
            _masked_adam(tensor[part], block, kept[part], first[part], second[part], *numbers)
        else:
            _adam(tensor[part], block, first[part], second[part], *numbers)


@njit(**_ROW)
def _masked_adam(tensor, grad, kept, first, second, *numbers):  # type: ignore[no-untyped-def]
    """`_adam` for the kept ones; long stretches without any, such as a feature nobody reads, are passed over."""
    masked, low = np.empty_like(grad), 0
    while low < grad.shape[0]:
        high = low
        while high < grad.shape[0] and _any(kept[high : high + _STRETCH]):
            high += _STRETCH
        if high > low:
            part = slice(low, high)
            _mask(grad[part], kept[part], masked[part])
            _adam(tensor[part], masked[part], first[part], second[part], *numbers)
        low = high + _STRETCH


@njit(**_ROW)
def _any(kept):  # type: ignore[no-untyped-def]
    found = False
    for x in range(kept.shape[0]):
        found |= kept[x]
    return found


@njit(**_OPTIONS)
def zero_outside(values, kept):  # type: ignore[no-untyped-def]
    """values = 0 where not kept."""
    for b in prange((values.shape[0] + _BLOCK - 1) // _BLOCK):
        part = slice(b * _BLOCK, (b + 1) * _BLOCK)
        _mask_in_place(values[part], kept[part])


@njit(**_ROW)
def _mask_in_place(values, kept):  # type: ignore[no-untyped-def]
    """Not `_mask` with values for an output: where arrays overlap, nothing is vectorised."""
    for x in range(values.shape[0]):
        values[x] *= values.dtype.type(kept[x])


@njit(**_ROW)
def _add_sizes(values, total):  # type: ignore[no-untyped-def]
    for x in range(values.shape[0]):
        total[x] += abs(values[x])


@njit(**_ROW)
def _mask(values, kept, out):  # type: ignore[no-untyped-def]
    for x in range(values.shape[0]):
        out[x] = values[x] * out.dtype.type(kept[x])


@njit(**_ROW)
def _adam(tensor, grad, first, second, rate, inverse, weight_decay, beta1, beta2, rest1, rest2, eps):  # type: ignore[no-untyped-def]
    for x in range(tensor.shape[0]):
        g = grad[x] + weight_decay * tensor[x]
        m = first[x] * beta1 + g * rest1
        v = second[x] * beta2 + g * g * rest2
        first[x] = m
        second[x] = v
        tensor[x] -= rate * m / (np.sqrt(v) * inverse + eps)


@njit(**_OPTIONS)
def adam_product(left, right, product, grad, moments, l1, rate, inverse, decay, beta1, beta2, rest1, rest2, eps):  # type: ignore[no-untyped-def]
    """`adam` for two factors by the gradient of their product, which is taken anew; left decays, l1 pulls right."""
    first_left, second_left, first_right, second_right = moments
    for b in prange((grad.shape[0] + _BLOCK - 1) // _BLOCK):
        part = slice(b * _BLOCK, (b + 1) * _BLOCK)
        block, a, c = grad[part], left[part], right[part]
        by_right, by_left = np.empty_like(block), np.empty_like(block)
        _multiply(block, c, by_right)
        _multiply_and_pull(block, a, c, l1, by_left)
        numbers = (beta1, beta2, rest1, rest2, eps)
        _adam(a, by_right, first_left[part], second_left[part], rate, inverse, decay, *numbers)
        _adam(c, by_left, first_right[part], second_right[part], rate, inverse, grad.dtype.type(0), *numbers)
        _multiply(a, c, product[part])


@njit(**_ROW)
def _multiply(a, b, out):  # type: ignore[no-untyped-def]
    for x in range(out.shape[0]):
        out[x] = a[x] * b[x]


@njit(**_ROW)
def _multiply_and_pull(a, b, pulled, l1, out):  # type: ignore[no-untyped-def]
    """out = a · b + l1 · sign(pulled)."""
    zero = out.dtype.type(0)
    for x in range(out.shape[0]):
        out[x] = a[x] * b[x] + (l1 if pulled[x] > zero else -l1 if pulled[x] < zero else zero)


@njit(cache=True, nogil=True)
def weigh(norm, score, ids, out):  # type: ignore[no-untyped-def]
    """out[k] = norm[k] · score[ids[k]], or norm[k] where there is no such score."""
    for k in range(out.shape[0]):
        out[k] = norm[k] * score[ids[k]] if ids[k] < score.shape[0] else norm[k]


@njit(cache=True, nogil=True)
def weigh_backward(norm, grad, ids, out):  # type: ignore[no-untyped-def]
    """out[e] = Σ grad[k] · norm[k] over the k with ids[k] = e."""
    for k in range(norm.shape[0]):
        if ids[k] < out.shape[0]:
            out[ids[k]] += grad[k] * norm[k]


@njit(**_OPTIONS)
def mark_extremes(kept, strength, potential, weak, promising, marks, counts):  # type: ignore[no-untyped-def]
    """marks = 1 for a weak kept element, 2 for a promising other; counts[b + 1] = how many of each in block b."""
    for b in prange(counts.shape[0] - 1):
        part = slice(b * LOOKED_AT, (b + 1) * LOOKED_AT)
        _mark_extremes(kept[part], strength[part], potential[part], weak, promising, marks[part])
        counts[b + 1, 0], counts[b + 1, 1] = _count_marks(marks[part])


@njit(**_ROW)
def _mark_extremes(kept, strength, potential, weak, promising, marks):  # type: ignore[no-untyped-def]
    for x in range(kept.shape[0]):
        few = np.uint8(kept[x] & (abs(strength[x]) <= weak))
        more = np.uint8((not kept[x]) & (potential[x] >= promising))
        marks[x] = few | (more << np.uint8(1))


@njit(**_ROW)
def _count_marks(marks):  # type: ignore[no-untyped-def]
    few, more = np.int32(0), np.int32(0)
    for x in range(marks.shape[0]):
        few += np.int32(marks[x] & 1)
        more += np.int32(marks[x] >> 1)
    return few, more


@njit(**_OPTIONS)
def find_marks(marks, starts, few, more):  # type: ignore[no-untyped-def]
    """Where the marks are, those of block b from starts[b] on."""
    for b in prange(starts.shape[0] - 1):
        first, end = starts[b], starts[b + 1]
        places = np.empty(LOOKED_AT + 1, np.int32), np.empty(LOOKED_AT + 1, np.int32)
        _find_marks(marks[b * LOOKED_AT : (b + 1) * LOOKED_AT], *places)
        for i in range(end[0] - first[0]):
            few[first[0] + i] = b * LOOKED_AT + places[0][i]
        for i in range(end[1] - first[1]):
            more[first[1] + i] = b * LOOKED_AT + places[1][i]


@njit(**_ROW)
def _find_marks(marks, few, more):  # type: ignore[no-untyped-def]
    """Every place is written down, and the next one over it if it has no mark: no branch has to be guessed."""
    i, j = np.int64(0), np.int64(0)
    for x in range(marks.shape[0]):
        mark = np.int64(marks[x])
        few[i], more[j] = x, x
        i += mark & 1
        j += mark >> 1
