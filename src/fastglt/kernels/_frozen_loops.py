"""Compiled loops for weights that do not change any more; see `fastglt.kernels.frozen`."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, ELU, NONE, RELU, _elu, _relu
from fastglt.kernels._vectors import DOTS, WIDE, activated_dots, project_row, sum_columns, sum_rows
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
    x_indptr, x_indices, x_values, strips, indptr, indices, values, heads, bias, columns, activation, dense, parts
):
    """The sum of parts is what `project` gives for x · strips side by side, without a shift.

    Each strip has its head, its bias and its columns. There are as many parts as threads, each with rows of a strip
    for itself: it goes through all rows with one strip after the other, whose numbers stay in its cache, and waits
    for nobody on the way.
    """
    for thread in prange(parts.shape[0]):
        parts[thread] = parts.dtype.type(0)
        for s in range(thread, heads.shape[0], parts.shape[0]):
            _multiply_strip(x_indptr, x_indices, x_values, strips[s], dense[thread])
            _add_strip(
                indptr, indices, values, heads[s], dense[thread], bias[s], activation, columns[s], parts[thread]
            )


@njit(**_ROW)
def _multiply_strip(indptr, indices, values, strip, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · strip[indices[k]]."""
    for i in range(out.shape[0]):
        sum_columns(indices, values, 0, strip, indptr[i], indptr[i + 1], 0, out[i], 0, STRIP, 1)


@njit(**{**_ROW, "fastmath": {"contract"}})
def _add_strip(indptr, indices, values, head, dense, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """Add activation(Σ_k values[k, head] · dense[indices[k]] + bias) · columnsᵀ to out[i]."""
    for i in range(out.shape[0]):
        if activation == ELU:
            project_row(indices, values, head, dense, indptr[i], indptr[i + 1], bias, ELU, columns, out[i])
        elif activation == RELU:
            project_row(indices, values, head, dense, indptr[i], indptr[i + 1], bias, RELU, columns, out[i])
        else:
            project_row(indices, values, head, dense, indptr[i], indptr[i + 1], bias, NONE, columns, out[i])


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
                sum_columns(indices, values, 0, dense, indptr[i], indptr[i + 1], low, row, 0, LANES, 0)


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
