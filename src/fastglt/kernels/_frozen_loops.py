"""Compiled loops for weights that do not change any more; see `fastglt.kernels.frozen`."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, ELU, RELU, _add, _elu, _relu
from fastglt.kernels.frozen import LANES

_ROWS = 32  # that one thread takes at a time, sharing a buffer


@njit(**_OPTIONS)
def project(indptr, indices, values, bounds, dense, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """out[i] = activation(Σ_k values[k] · dense[indices[k]] + bias) · columnsᵀ; the sum never leaves the cache.

    There are LANES columns, or a multiple of that.
    """
    rows = out.shape[0]
    for block in prange((rows + _ROWS - 1) // _ROWS):
        total = np.empty(dense.shape[1], dense.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            total[:] = dense.dtype.type(0)
            for h in range(values.shape[1]):
                _sum_rows(indices, values, h, dense, bounds[h], bounds[h + 1], indptr[i], indptr[i + 1], total)
            if activation == RELU:
                _relu(total, bias)
            elif activation == ELU:
                _elu(total, bias)
            else:
                _add(total, dense.dtype.type(1), bias)
            for c in range(0, columns.shape[0], 4):
                _four_dots(total, columns[c], columns[c + 1], columns[c + 2], columns[c + 3], out[i, c : c + 4])


@njit(**_OPTIONS)
def narrow_sum(indptr, indices, values, dense, bias, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · dense[indices[k]] + bias for rows of LANES numbers, or a multiple of that."""
    rows = out.shape[0]
    for block in prange((rows + _ROWS - 1) // _ROWS):
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            for low in range(0, out.shape[1], LANES):
                row = out[i, low : low + LANES]
                for c in range(LANES):
                    row[c] = bias[low + c]
                for k in range(indptr[i], indptr[i + 1]):
                    value = values[k]
                    other = dense[indices[k], low : low + LANES]
                    for c in range(LANES):
                        row[c] += value * other[c]


@njit(**_OPTIONS)
def mixed(indptr, indices, values, split, block, pointers, columns, weights, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · weight[indices[k]], where the first columns' weights are whole rows of `block`.

    Row i's entries up to split[i] meet whole rows; the others meet what is left of theirs, one number at a time.
    """
    for i in prange(out.shape[0]):
        row = out[i]
        row[:] = out.dtype.type(0)
        _sum_rows(indices, values, 0, block, 0, row.shape[0], indptr[i], split[i], row)
        for k in range(split[i], indptr[i + 1]):
            f = indices[k] - block.shape[0]
            _scatter(
                values[k, 0], columns[pointers[f] : pointers[f + 1]], weights[pointers[f] : pointers[f + 1]], row
            )


@njit(**_ROW)
def _four_dots(x, a, b, c, d, out):  # type: ignore[no-untyped-def]
    """Four dot products with one reading of x."""
    zero = x.dtype.type(0)
    p, q, r, s = zero, zero, zero, zero
    for k in range(x.shape[0]):
        p += x[k] * a[k]
        q += x[k] * b[k]
        r += x[k] * c[k]
        s += x[k] * d[k]
    out[0], out[1], out[2], out[3] = p, q, r, s


@njit(**_ROW)
def _scatter(value, columns, weights, row):  # type: ignore[no-untyped-def]
    for j in range(columns.shape[0]):
        row[columns[j]] += value * weights[j]


@njit(**_ROW)
def _sum_rows(indices, values, h, dense, low, high, begin, end, total):  # type: ignore[no-untyped-def]
    """Add values[k, h] · dense[indices[k]] between two columns for begin ≤ k < end, four at a time.

    Rows are cut out of the whole matrix here: of a part of it the compiler would not know that rows are contiguous.
    """
    part = total[low:high]
    k = begin
    while k + 4 <= end:
        a, b, c, d = values[k, h], values[k + 1, h], values[k + 2, h], values[k + 3, h]
        p, q = dense[indices[k], low:high], dense[indices[k + 1], low:high]
        r, s = dense[indices[k + 2], low:high], dense[indices[k + 3], low:high]
        for x in range(part.shape[0]):
            part[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        k += 4
    while k < end:
        _add(part, values[k, h], dense[indices[k], low:high])
        k += 1
