"""Compiled loops for weights that do not change any more; see `fastglt.kernels.frozen`."""

from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, ELU, NONE, RELU, _copy
from fastglt.kernels._vectors import project_row, sum_columns, sum_rows
from fastglt.kernels.frozen import LANES, NARROW, STRIP

_IN_ORDER = {**_ROW, "fastmath": {"contract"}}  # as `project_row` needs it


@njit(**_OPTIONS)
def project(indptr, indices, values, heads, dense, bias, activation, columns, shift, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_s activation(Σ_k values[k, heads[s]] · dense[indices[k]] + bias[s]) · columns[s]ᵀ + shift.

    s goes over strips of dense columns, STRIP or NARROW, each with its head, its bias and its columns.
    """
    rows = out.shape[0]
    for block in prange((rows + _ROWS - 1) // _ROWS):
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            _copy(shift, out[i])
            _add_strips(indices, values, heads, dense, indptr[i], indptr[i + 1], bias, activation, columns, out[i])


@njit(**_IN_ORDER)
def project_alone(indptr, indices, values, heads, dense, bias, activation, columns, shift, out):  # type: ignore[no-untyped-def]
    """`project` by the calling thread."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = shift[c]
    if heads.shape[0] == 1:
        _add_strip(indptr, indices, values, heads[0], dense, bias[0], activation, columns[0], out)
        return
    for i in range(out.shape[0]):
        _add_strips(indices, values, heads, dense, indptr[i], indptr[i + 1], bias, activation, columns, out[i])


@njit(**_IN_ORDER)
def _add_strips(indices, values, heads, dense, low, high, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """`_add_row` for all strips."""
    for s in range(heads.shape[0]):
        first = s * bias.shape[1]
        _add_row(indices, values, heads[s], dense, low, high, first, bias[s], activation, columns[s], out)


@njit(**_OPTIONS)
def project_strips(  # type: ignore[no-untyped-def]
    x_indptr, x_indices, x_values, strips, indptr, indices, values, heads, bias, columns, activation, dense, parts
):
    """The sum of parts is what `project` gives for x · strips side by side, without a shift.

    There are as many parts as threads, each with dense rows for itself. A thread goes through all rows with one
    strip after the other, whose numbers stay in its cache, and waits for nobody on the way. How sums are
    grouped depends on how many threads there are.
    """
    for thread in prange(parts.shape[0]):
        parts[thread] = parts.dtype.type(0)
        for s in range(thread, heads.shape[0], parts.shape[0]):
            _multiply_strip(x_indptr, x_indices, x_values, strips[s], dense[thread])
            _add_strip(
                indptr, indices, values, heads[s], dense[thread], bias[s], activation, columns[s], parts[thread]
            )


@njit(**_IN_ORDER)
def project_strips_alone(  # type: ignore[no-untyped-def]
    x_indptr,
    x_indices,
    x_values,
    strips,
    indptr,
    indices,
    values,
    heads,
    bias,
    columns,
    activation,
    dense,
    shift,
    out,
):
    """`project_strips` by the calling thread, with the shift and without parts."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = shift[c]
    for s in range(heads.shape[0]):
        _multiply_strip(x_indptr, x_indices, x_values, strips[s], dense)
        _add_strip(indptr, indices, values, heads[s], dense, bias[s], activation, columns[s], out)


@njit(**_ROW)
def _multiply_strip(indptr, indices, values, strip, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · strip[indices[k]]."""
    if strip.shape[1] == NARROW:
        _multiply_narrow(indptr, indices, values, strip, out)
        return
    for i in range(out.shape[0]):
        sum_columns(indices, values, 0, strip, indptr[i], indptr[i + 1], 0, out[i], 0, STRIP, 1)


@njit(**_ROW)
def _multiply_narrow(indptr, indices, values, strip, out):  # type: ignore[no-untyped-def]
    """`_multiply_strip` for a NARROW one."""
    for i in range(out.shape[0]):
        sum_columns(indices, values, 0, strip, indptr[i], indptr[i + 1], 0, out[i], 0, NARROW, 1)


@njit(**_IN_ORDER)
def _add_strip(indptr, indices, values, head, dense, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """`_add_row` for all rows; the most usual case for itself, where the compiler need not ask in every row."""
    if bias.shape[0] == NARROW and activation == RELU:
        for i in range(out.shape[0]):
            low, high = indptr[i], indptr[i + 1]
            project_row(indices, values, head, dense, low, high, 0, bias, RELU, columns, out[i], NARROW)
        return
    for i in range(out.shape[0]):
        _add_row(indices, values, head, dense, indptr[i], indptr[i + 1], 0, bias, activation, columns, out[i])


@njit(inline="always")
def _add_row(indices, values, head, dense, low, high, first, bias, activation, columns, out):  # type: ignore[no-untyped-def]
    """Add activation(Σ_k values[k, head] · dense[indices[k]] + bias) · columnsᵀ from a dense column on."""
    if bias.shape[0] == STRIP:
        _add_row_of(indices, values, head, dense, low, high, first, bias, activation, columns, out, STRIP)
    else:
        _add_row_of(indices, values, head, dense, low, high, first, bias, activation, columns, out, NARROW)


@njit(inline="always")
def _add_row_of(indices, values, head, dense, low, high, first, bias, activation, columns, out, width):  # type: ignore[no-untyped-def]
    """`_add_row` for a width that is known to the compiler."""
    if activation == ELU:
        project_row(indices, values, head, dense, low, high, first, bias, ELU, columns, out, width)
    elif activation == RELU:
        project_row(indices, values, head, dense, low, high, first, bias, RELU, columns, out, width)
    else:
        project_row(indices, values, head, dense, low, high, first, bias, NONE, columns, out, width)


@njit(**_OPTIONS)
def narrow_sum(indptr, indices, values, dense, bias, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · dense[indices[k]] + bias for rows of LANES numbers, or a multiple of that."""
    rows = out.shape[0]
    for block in prange((rows + _ROWS - 1) // _ROWS):
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            _narrow_row(indices, values, dense, indptr[i], indptr[i + 1], bias, out[i])


@njit(**_ROW)
def narrow_sum_alone(indptr, indices, values, dense, bias, out):  # type: ignore[no-untyped-def]
    """`narrow_sum` by the calling thread; the shortest rows for themselves, which a loop would cost most."""
    if out.shape[1] == LANES:
        _shortest_rows(indptr, indices, values, dense, bias, out)
        return
    for i in range(out.shape[0]):
        _narrow_row(indices, values, dense, indptr[i], indptr[i + 1], bias, out[i])


@njit(**_ROW)
def _shortest_rows(indptr, indices, values, dense, bias, out):  # type: ignore[no-untyped-def]
    """`narrow_sum` for rows of LANES numbers."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = bias[c]
        sum_columns(indices, values, 0, dense, indptr[i], indptr[i + 1], 0, out[i], 0, LANES, 0)


@njit(inline="always")
def _narrow_row(indices, values, dense, begin, end, bias, out):  # type: ignore[no-untyped-def]
    """One row of `narrow_sum`."""
    for low in range(0, out.shape[0], LANES):
        row = out[low : low + LANES]
        for c in range(LANES):
            row[c] = bias[low + c]
        sum_columns(indices, values, 0, dense, begin, end, low, row, 0, LANES, 0)


@njit(**_OPTIONS)
def product(indptr, indices, values, dense, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ_k values[k] · dense[indices[k]]."""
    for i in prange(out.shape[0]):
        out[i] = out.dtype.type(0)
        sum_rows(indices, values, 0, dense, indptr[i], indptr[i + 1], 0, out[i])


@njit(**_ROW)
def product_alone(indptr, indices, values, dense, out):  # type: ignore[no-untyped-def]
    """`product` by the calling thread."""
    if dense.shape[1] == NARROW:
        _multiply_strip(indptr, indices, values, dense, out)
        return
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = out.dtype.type(0)
        sum_rows(indices, values, 0, dense, indptr[i], indptr[i + 1], 0, out[i])
