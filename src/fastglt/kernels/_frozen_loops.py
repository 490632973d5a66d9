"""Compiled loops for weights that do not change any more; see `fastglt.kernels.frozen`."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, ELU, NONE, RELU, _elu, _relu
from fastglt.kernels._vectors import DOTS, WIDE, activated_dots, sum_columns, sum_rows
from fastglt.kernels.frozen import LANES, STRIP


@njit(**_OPTIONS)
def project(indptr, indices, values, first, starts, dense, bias, activation, columns, shift, out):  # type: ignore[no-untyped-def]
    """out[i] = activation(Σ_k values[k, head] · dense[indices[k]] + bias) · columnsᵀ + shift.

    The head is that of the dense column: starts[h] is where those of head first + h start. The sum never leaves the
    cache. There are DOTS columns, or a multiple of that.
    """
    rows = out.shape[0]
    for block in prange((rows + _ROWS - 1) // _ROWS):
        total = np.empty(dense.shape[1], dense.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            total[:] = dense.dtype.type(0)
            for h in range(starts.shape[0] - 1):
                part = total[starts[h] : starts[h + 1]]
                sum_rows(indices, values, first + h, dense, indptr[i], indptr[i + 1], starts[h], part)
            for c in range(0, columns.shape[0], DOTS):
                _dots(total, bias, activation, columns, c, out[i, c : c + DOTS])
                for j in range(c, c + DOTS):
                    out[i, j] += shift[j]


@njit(**_OPTIONS)
def project_strips(  # type: ignore[no-untyped-def]
    x_indptr, x_indices, x_values, strips, indptr, indices, values, heads, bias, columns, activation, out
):
    """out[s] is what `project` gives for x · strips[s], with the strip's own head, bias and columns, but no shift.

    A thread goes through all rows with one strip, whose numbers stay in its cache, and waits for nobody on the way.
    """
    for s in prange(heads.shape[0]):
        dense, total = np.empty((x_indptr.shape[0] - 1, STRIP), strips.dtype), np.empty(STRIP, strips.dtype)
        for i in range(dense.shape[0]):
            dense[i] = strips.dtype.type(0)
            sum_columns(x_indices, x_values, 0, strips[s], x_indptr[i], x_indptr[i + 1], 0, dense[i], 0, STRIP)
        for i in range(out.shape[1]):
            total[:] = strips.dtype.type(0)
            sum_columns(indices, values, heads[s], dense, indptr[i], indptr[i + 1], 0, total, 0, STRIP)
            for c in range(0, out.shape[2], DOTS):
                _dots(total, bias[s], activation, columns[s], c, out[s, i, c : c + DOTS])


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
                sum_columns(indices, values, 0, dense, indptr[i], indptr[i + 1], low, row, 0, LANES)


@njit(**_OPTIONS)
def product(indptr, indices, values, dense, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · dense[indices[k]]."""
    for i in prange(out.shape[0]):
        out[i] = out.dtype.type(0)
        sum_rows(indices, values, 0, dense, indptr[i], indptr[i + 1], 0, out[i])


@njit(**{**_ROW, "fastmath": {"contract"}})
def _dots(x, bias, activation, columns, first, out):  # type: ignore[no-untyped-def]
    """DOTS dot products with activation(x + bias) at once."""
    length = x.shape[0] // WIDE * WIDE
    if activation == ELU:
        activated_dots(x, bias, ELU, columns, first, length, out)
    elif activation == RELU:
        activated_dots(x, bias, RELU, columns, first, length, out)
    else:
        activated_dots(x, bias, NONE, columns, first, length, out)
    if length < x.shape[0]:
        _add_rest(x[length:].copy(), bias[length:], activation, columns[first : first + DOTS, length:], out)


@njit(**_ROW)
def _add_rest(x, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """Add the dot products of fewer numbers than a vector has."""
    if activation == RELU:
        _relu(x, bias)
    elif activation == ELU:
        _elu(x, bias)
    else:
        x += bias
    for j in range(DOTS):
        for k in range(x.shape[0]):
            out[j] += x[k] * columns[j, k]
