"""Compiled loops of the softmax aggregation: each reads and writes every number once."""

import math

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _INSIDE, _OPTIONS, _ROW, _ROWS, LOWEST, POWERS_OF_2, _add, _copy
from fastglt.kernels._prefetch import fetch_rows


@njit(**_OPTIONS)
def shares(x, rate, eps, shift, out):  # type: ignore[no-untyped-def]
    """out[i] = e, then e·m, with m = relu(x) + eps and e = 2^(rate·m − shift), which is at most 1."""
    width = x.shape[1]
    for i in prange(x.shape[0]):
        _shares(x[i], rate, eps, shift, out[i, :width], out[i, width:])


@njit(**_OPTIONS)
def means(indptr, indices, values, both, least, ahead, out, below, lost):  # type: ignore[no-untyped-def]
    """out = Σ v·e·m / Σ v·e of each row, below = Σ v·e; a row with a sum under `least` is lost.

    Rows are fetched so many entries ahead.
    """
    rows, width = out.shape
    for block in prange((rows + _ROWS - 1) // _ROWS):
        sums = np.empty(2 * width, both.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            sums[:] = both.dtype.type(0)
            _sum(indptr[i], indptr[i + 1], indices, values, both, ahead, sums)
            _copy(sums[:width], below[i])
            lost[i] = _divide(sums[width:], below[i], least, out[i])


@njit(**_OPTIONS)
def lost_means(rows, indptr, indices, values, x, rate, eps, out):  # type: ignore[no-untyped-def]
    """`means` of some rows, each with a shift of its own: the numbers are those that another shift would give."""
    width = out.shape[1]
    for place in prange(rows.shape[0]):
        i = rows[place]
        shift, sums = np.full(width, -np.inf, x.dtype), np.zeros(2 * width, x.dtype)
        both = np.empty((4, 2 * width), x.dtype)
        for k in range(indptr[i], indptr[i + 1]):
            if values[k] > 0:
                _raise(x[indices[k]], rate, eps, shift)
        k, end, four = indptr[i], indptr[i + 1], np.arange(4)
        while k < end:
            count = 4 if k + 4 <= end else 1  # as they are taken where nothing is lost
            for j in range(count):
                _shares(x[indices[k + j]], rate, eps, shift, both[j, :width], both[j, width:])
            _sum(0, count, four, values[k : k + count], both, 0, sums)
            k += count
        _divide(sums[width:], sums[:width], x.dtype.type(0), out[i])


@njit(**_OPTIONS)
def means_backward(grad, mean, below, least, out):  # type: ignore[no-untyped-def]
    """The gradients of Σ v·e and of Σ v·e·m, side by side."""
    for i in prange(mean.shape[0]):
        _divided_backward(grad[i], mean[i], below[i], least, out[i])


@njit(**_OPTIONS)
def shares_backward(x, temperature, eps, both, grad, out, of_temperature):  # type: ignore[no-untyped-def]
    """The gradient of x from those of e and e·m, and what each row adds to the temperature's."""
    width = x.shape[1]
    for i in prange(x.shape[0]):
        of_temperature[i] = _shares_backward(
            x[i], temperature, eps, both[i, :width], grad[i, :width], grad[i, width:], out[i]
        )


@njit(**_ROW)
def _shares(x, rate, eps, shift, e, product):  # type: ignore[no-untyped-def]
    zero = x.dtype.type(0)
    if x.itemsize == 4:
        for c in range(x.shape[0]):
            m = (zero if x[c] < zero else x[c]) + eps  # NaN stays
            e[c] = _power_of_2(np.float32(rate * m), shift[c])
            product[c] = e[c] * m
    else:
        for c in range(x.shape[0]):
            m = (zero if x[c] < zero else x[c]) + eps
            whole = math.floor(rate * m)
            e[c] = 2.0 ** (rate * m - whole) * 2.0 ** max(whole - shift[c], -1022.0)
            product[c] = e[c] * m


@njit(**_INSIDE)
def _power_of_2(y, shift):  # type: ignore[no-untyped-def]
    """2^(y − shift) for whole shifts ≥ y in single precision: another shift changes the exponent, never a digit."""
    n = np.floor(y + np.float32(0.5))
    f = y - n
    n = n - shift
    n = n if n > LOWEST else LOWEST
    n = n if n < np.float32(1) else np.float32(1)
    e = POWERS_OF_2[0]
    for c in POWERS_OF_2[1:]:
        e = e * f + c
    return e * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(**_ROW)
def _raise(x, rate, eps, shift):  # type: ignore[no-untyped-def]
    zero = x.dtype.type(0)
    for c in range(x.shape[0]):
        m = (zero if x[c] < zero else x[c]) + eps
        shift[c] = max(shift[c], math.ceil(rate * m))


@njit(**_ROW)
def _sum(k, end, indices, values, both, ahead, row):  # type: ignore[no-untyped-def]
    while k + 4 <= end:
        if ahead:
            fetch_rows(both, indices, k + ahead, 4)
        a, b, c, d = values[k], values[k + 1], values[k + 2], values[k + 3]
        p, q, r, s = both[indices[k]], both[indices[k + 1]], both[indices[k + 2]], both[indices[k + 3]]
        for x in range(row.shape[0]):
            row[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        k += 4
    while k < end:
        if ahead:
            fetch_rows(both, indices, k + ahead, 1)
        _add(row, values[k], both[indices[k]])
        k += 1


@njit(**_ROW)
def _divide(above, below, least, out):  # type: ignore[no-untyped-def]
    zero, smallest = out.dtype.type(0), below[0]
    for c in range(out.shape[0]):
        out[c] = zero if below[c] < least else above[c] / max(below[c], least)  # NaN stays
        smallest = min(smallest, below[c])
    return smallest < least


@njit(**_ROW)
def _divided_backward(grad, mean, below, least, out):  # type: ignore[no-untyped-def]
    zero, width = mean.dtype.type(0), mean.shape[0]
    for c in range(width):
        out[width + c] = zero if below[c] < least else grad[c] / max(below[c], least)
    for c in range(width):
        out[c] = -out[width + c] * mean[c]


@njit(**_ROW)
def _shares_backward(x, temperature, eps, e, of_e, of_product, out):  # type: ignore[no-untyped-def]
    zero, total = x.dtype.type(0), x.dtype.type(0)
    for c in range(x.shape[0]):
        m = (zero if x[c] < zero else x[c]) + eps
        through = (of_e[c] + m * of_product[c]) * e[c]
        total += through * m
        out[c] = temperature * through + e[c] * of_product[c] if x[c] > zero else zero
    return total
