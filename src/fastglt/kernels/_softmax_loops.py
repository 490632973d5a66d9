"""Compiled loops of the softmax aggregation: each reads and writes every number once."""

import math

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, _add, _exp


@njit(**_OPTIONS)
def shares(x, temperature, eps, shift, out):  # type: ignore[no-untyped-def]
    """out[i] = e, then e·m, with m = relu(x) + eps and e = exp(temperature·m − shift), which is at most 1."""
    width = x.shape[1]
    for i in prange(x.shape[0]):
        _shares(x[i], temperature, eps, shift, out[i, :width], out[i, width:])


@njit(**_OPTIONS)
def means(indptr, indices, values, both, least, out, below, lost):  # type: ignore[no-untyped-def]
    """out = Σ v·e·m / Σ v·e of each row, below = Σ v·e; a row with a sum under `least` is lost, its mean there 0."""
    rows, width = out.shape
    for block in prange((rows + _ROWS - 1) // _ROWS):
        sums = np.empty(2 * width, both.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            _sum(indptr[i], indptr[i + 1], indices, values, both, sums)
            below[i] = sums[:width]
            lost[i] = _divide(sums[width:], below[i], least, out[i])


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
def _shares(x, temperature, eps, shift, e, product):  # type: ignore[no-untyped-def]
    zero = x.dtype.type(0)
    if x.itemsize == 4:
        for c in range(x.shape[0]):
            m = (zero if x[c] < zero else x[c]) + eps  # NaN stays
            y = np.float32(temperature * m - shift[c])
            e[c] = _exp(y if y < zero else zero)
            product[c] = e[c] * m
    else:
        for c in range(x.shape[0]):
            m = (zero if x[c] < zero else x[c]) + eps
            e[c] = math.exp(temperature * m - shift[c])
            product[c] = e[c] * m


@njit(**_ROW)
def _sum(k, end, indices, values, both, row):  # type: ignore[no-untyped-def]
    row[:] = row.dtype.type(0)
    while k + 4 <= end:
        a, b, c, d = values[k], values[k + 1], values[k + 2], values[k + 3]
        p, q, r, s = both[indices[k]], both[indices[k + 1]], both[indices[k + 2]], both[indices[k + 3]]
        for x in range(row.shape[0]):
            row[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        k += 4
    while k < end:
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
