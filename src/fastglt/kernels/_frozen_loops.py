"""Compiled loops for weights that do not change any more; see `fastglt.kernels.frozen`."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, ELU, NONE, RELU, _elu, _relu
from fastglt.kernels._vectors import DOTS, WIDE, activated_dots, add_blocks, sum_columns, sum_rows
from fastglt.kernels.frozen import LANES


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
def mixed(indptr, indices, values, split, whole, pointers, places, blocks, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · weight[indices[k]], where the first columns' weights are rows of `whole`.

    Row i's entries up to split[i] meet whole rows; the others meet the blocks that are not all zero of theirs.
    """
    for i in prange(out.shape[0]):
        row = out[i]
        row[:] = out.dtype.type(0)
        sum_rows(indices, values, 0, whole, indptr[i], split[i], 0, row)
        for k in range(split[i], indptr[i + 1]):
            f = indices[k] - whole.shape[0]
            add_blocks(values[k, 0], places, blocks, pointers[f], pointers[f + 1], row)


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
