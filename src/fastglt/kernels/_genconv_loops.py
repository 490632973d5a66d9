"""Compiled loops of a residual GENConv layer, so that norm, ReLU and dropout are never written down.

A row of the layer's input h becomes x̂ by its norm, then z = dropout(relu(x̂·weight + bias)), then the messages that
its node sends: see `_softmax_loops`. Every loop that needs z makes it anew from h, one row at a time. Sums over all
rows are taken for `_ROWS` rows at a time, whatever the number of threads.
"""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, _add, _copy, _drop, _words
from fastglt.kernels._prefetch import fetch_rows
from fastglt.kernels._softmax_loops import _divide, _shares, _sum

NONE, BATCH, LAYER = 0, 1, 2  # norms


@njit(**_OPTIONS)
def statistics(h, out):  # type: ignore[no-untyped-def]
    """Mean, summed squares about it, largest and smallest of each channel, for `_ROWS` rows at a time."""
    for block in prange(out.shape[0]):
        rows = h[block * _ROWS : (block + 1) * _ROWS]
        out[block, :2] = h.dtype.type(0)
        _copy(rows[0], out[block, 2])
        _copy(rows[0], out[block, 3])
        for i in range(rows.shape[0]):
            _look(rows[i], out[block, 0], out[block, 2], out[block, 3])
        _divide_by(out[block, 0], h.dtype.type(rows.shape[0]))
        for i in range(rows.shape[0]):
            _square(rows[i], out[block, 0], out[block, 1])


@njit(**_OPTIONS)
def activate(h, norm, drop, out):  # type: ignore[no-untyped-def]
    """out = z."""
    for block in prange((h.shape[0] + _ROWS - 1) // _ROWS):
        xhat = np.empty(h.shape[1], h.dtype)
        for i in range(block * _ROWS, min(h.shape[0], (block + 1) * _ROWS)):
            _sent(h, i, norm, drop, xhat, out[i])


@njit(**_OPTIONS)
def activate_backward(h, norm, drop, out, sums):  # type: ignore[no-untyped-def]
    """Turn the gradient of z into that of x̂·weight + bias, in place; and its sums with x̂ and alone."""
    width = h.shape[1]
    for block in prange(sums.shape[0]):
        z, xhat = np.empty(width, h.dtype), np.empty(width, h.dtype)
        sums[block] = h.dtype.type(0)
        for i in range(block * _ROWS, min(h.shape[0], (block + 1) * _ROWS)):
            _sent(h, i, norm, drop, xhat, z)
            _through(z, drop[2], out[i])
            _add_up(out[i], xhat, sums[block, 0], sums[block, 1])


@njit(**_OPTIONS)
def shares(h, norm, drop, rate, eps, shift, out):  # type: ignore[no-untyped-def]
    """out[i] = e, then e·m, of the messages m = relu(z) + eps: see `_softmax_loops.shares`."""
    width = h.shape[1]
    for block in prange((h.shape[0] + _ROWS - 1) // _ROWS):
        z, xhat = np.empty(width, h.dtype), np.empty(width, h.dtype)
        for i in range(block * _ROWS, min(h.shape[0], (block + 1) * _ROWS)):
            _sent(h, i, norm, drop, xhat, z)
            _shares(z, rate, eps, shift, out[i, :width], out[i, width:])


@njit(**_OPTIONS)
def heard(indptr, indices, values, both, h, own, norm, drop, least, ahead, out, below, lost):  # type: ignore[no-untyped-def]
    """out = Σ v·e·m / Σ v·e of each row plus its own z; below = Σ v·e, if asked for.

    A row with a sum under `least` is lost. `own` has the row of each receiver in h; empty: they are its rows.
    """
    rows, width = out.shape
    for block in prange((rows + _ROWS - 1) // _ROWS):
        sums, z, xhat = np.empty(2 * width, h.dtype), np.empty(width, h.dtype), np.empty(width, h.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            sums[:] = h.dtype.type(0)
            _sum(indptr[i], indptr[i + 1], indices, values, both, ahead, sums)
            lost[i] = _divide(sums[width:], sums[:width], least, out[i])
            _sent(h, own[i] if own.shape[0] else i, norm, drop, xhat, z)
            _add(out[i], h.dtype.type(1), z)
            if below.shape[0]:
                _copy(sums[:width], below[i])


@njit(**_OPTIONS)
def shared(grad, heard, below, h, own, norm, drop, least, out):  # type: ignore[no-untyped-def]
    """What each message adds to gradients, but for its value: g = grad / below, then g times the mean."""
    rows, width = grad.shape
    for block in prange((rows + _ROWS - 1) // _ROWS):
        z, xhat = np.empty(width, h.dtype), np.empty(width, h.dtype)
        for i in range(block * _ROWS, min(rows, (block + 1) * _ROWS)):
            _sent(h, own[i] if own.shape[0] else i, norm, drop, xhat, z)
            _share(grad[i], heard[i], z, below[i], least, out[i, :width], out[i, width:])


@njit(**_OPTIONS)
def backward(  # type: ignore[no-untyped-def]
    pattern, values, both, h, norm, drop, temperature, numbers, ahead, out, of_values, sums
):
    """Turn the gradient of z as its node's own row, in place, into that of x̂·weight + bias; of h without a norm.

    Sender by sender: the receivers' rows of `shared` are fetched once, for the gradients of messages and of values
    alike. `numbers` are rate, eps and each channel's shift. The sums are those of `activate_backward`, then what
    the temperature gets.
    """
    (indptr, receivers, entries), (rate, eps, shift), width = pattern, numbers, h.shape[1]
    for block in prange(sums.shape[0]):
        z, xhat = np.empty(width, h.dtype), np.empty(width, h.dtype)
        total, mine = np.empty(2 * width, h.dtype), np.empty(2 * width, h.dtype)
        dots = np.empty(4, h.dtype)
        sums[block] = h.dtype.type(0)
        for j in range(block * _ROWS, min(h.shape[0], (block + 1) * _ROWS)):
            _sent(h, j, norm, drop, xhat, z)
            _shares(z, rate, eps, shift, mine[width:], mine[:width])
            total[:] = h.dtype.type(0)
            k, end = indptr[j], indptr[j + 1]
            if of_values.shape[0]:
                _sum_and_dots(k, end, receivers, entries, values, both, ahead, mine, total, dots, of_values)
            else:
                _sum_of(k, end, receivers, entries, values, both, ahead, total)
            _of_sent(z, eps, temperature, mine[width:], total[:width], total[width:], out[j], sums[block, 2])
            if norm[0] != NONE:
                _through(z, drop[2], out[j])
                _add_up(out[j], xhat, sums[block, 0], sums[block, 1])


@njit(**_OPTIONS)
def norm_backward(h, norm, first, second, more, out):  # type: ignore[no-untyped-def]
    """Turn the gradient of x̂·weight + bias into that of h, in place, and add more if there is any.

    Of a batch norm, `first` and `second` are the means of the gradient of x̂ alone and times x̂, or 0.
    """
    width = h.shape[1]
    for block in prange((h.shape[0] + _ROWS - 1) // _ROWS):
        xhat, means = np.empty(width, h.dtype), np.empty((2, width), h.dtype)
        for i in range(block * _ROWS, min(h.shape[0], (block + 1) * _ROWS)):
            factor = _normal(h[i], norm, xhat)
            _times(out[i], norm[4])
            if norm[0] == LAYER:
                means[0], means[1] = _two_means(out[i], xhat)
            else:
                _copy(first, means[0])
                _copy(second, means[1])
            _centred(xhat, means[0], means[1], factor, norm[2], out[i])
            if more.shape[0]:
                _add(out[i], h.dtype.type(1), more[i])


@njit(**_ROW)
def _sent(h, i, norm, drop, xhat, z):  # type: ignore[no-untyped-def]
    """x̂ and z of a row; norm is (kind, its ε, factor and shift of each channel, weight, bias)."""
    if norm[0] == NONE:
        _copy(h[i], z)
    else:
        _normal(h[i], norm, xhat)
        _rectify(xhat, norm[4], norm[5], z)
        if drop[1]:
            _drop(z, *_words(drop[0], i), drop[1], drop[2])


@njit(**_ROW)
def _normal(h, norm, xhat):  # type: ignore[no-untyped-def]
    """x̂ of a row; returns what a layer norm has multiplied by."""
    if norm[0] == LAYER:
        mean = _mean(h)
        factor = h.dtype.type(1) / np.sqrt(_spread(h, mean) + norm[1])
        _scale(h, factor, -mean * factor, xhat)
        return factor
    _scale_channels(h, norm[2], norm[3], xhat)
    return h.dtype.type(1)


@njit(**_ROW)
def _mean(h):  # type: ignore[no-untyped-def]
    total = h.dtype.type(0)
    for c in range(h.shape[0]):
        total += h[c]
    return total / h.dtype.type(h.shape[0])


@njit(**_ROW)
def _spread(h, mean):  # type: ignore[no-untyped-def]
    total = h.dtype.type(0)
    for c in range(h.shape[0]):
        total += (h[c] - mean) * (h[c] - mean)
    return total / h.dtype.type(h.shape[0])


@njit(**_ROW)
def _scale(h, factor, shift, out):  # type: ignore[no-untyped-def]
    for c in range(h.shape[0]):
        out[c] = h[c] * factor + shift


@njit(**_ROW)
def _scale_channels(h, factor, shift, out):  # type: ignore[no-untyped-def]
    for c in range(h.shape[0]):
        out[c] = h[c] * factor[c] + shift[c]


@njit(**_ROW)
def _rectify(xhat, weight, bias, out):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)
    for c in range(out.shape[0]):
        y = xhat[c] * weight[c] + bias[c]
        out[c] = zero if y < zero else y  # NaN stays


@njit(**_ROW)
def _look(row, total, largest, smallest):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        total[c] += row[c]
        largest[c] = max(largest[c], row[c])
        smallest[c] = min(smallest[c], row[c])


@njit(**_ROW)
def _divide_by(row, number):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        row[c] /= number


@njit(**_ROW)
def _square(row, mean, total):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        total[c] += (row[c] - mean[c]) * (row[c] - mean[c])


@njit(**_ROW)
def _times(row, factor):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        row[c] *= factor[c]


@njit(**_ROW)
def _through(z, scale, grad):  # type: ignore[no-untyped-def]
    """The gradient before ReLU and dropout: where z is 0, none."""
    zero = z.dtype.type(0)
    for c in range(z.shape[0]):
        grad[c] = grad[c] * scale if z[c] > zero else zero


@njit(**_ROW)
def _add_up(grad, xhat, by_xhat, alone):  # type: ignore[no-untyped-def]
    for c in range(grad.shape[0]):
        by_xhat[c] += grad[c] * xhat[c]
        alone[c] += grad[c]


@njit(**_ROW)
def _two_means(grad, xhat):  # type: ignore[no-untyped-def]
    a = b = grad.dtype.type(0)
    for c in range(grad.shape[0]):
        a += grad[c]
        b += grad[c] * xhat[c]
    return a / grad.dtype.type(grad.shape[0]), b / grad.dtype.type(grad.shape[0])


@njit(**_ROW)
def _centred(xhat, first, second, factor, by_channel, grad):  # type: ignore[no-untyped-def]
    for c in range(grad.shape[0]):
        grad[c] = (grad[c] - first[c] - xhat[c] * second[c]) * factor * by_channel[c]


@njit(**_ROW)
def _share(grad, heard, z, below, least, out, by_mean):  # type: ignore[no-untyped-def]
    zero = grad.dtype.type(0)
    for c in range(grad.shape[0]):
        out[c] = zero if below[c] < least else grad[c] / max(below[c], least)
    for c in range(grad.shape[0]):
        by_mean[c] = out[c] * (heard[c] - z[c])


@njit(**_ROW)
def _of_sent(z, eps, temperature, e, of_product, of_e, grad, of_temperature):  # type: ignore[no-untyped-def]
    """Add what messages give to the gradient of z; `of_e` has the opposite sign."""
    zero, one = z.dtype.type(0), z.dtype.type(1)
    for c in range(z.shape[0]):
        m = (zero if z[c] < zero else z[c]) + eps
        grad[c] += e[c] * (of_product[c] * (one + temperature * m) - temperature * of_e[c]) if z[c] > zero else zero
        of_temperature[c] += (m * of_product[c] - of_e[c]) * e[c] * m


@njit(**_ROW)
def _sum_of(k, end, receivers, entries, values, both, ahead, total):  # type: ignore[no-untyped-def]
    while k + 4 <= end:
        if ahead:
            fetch_rows(both, receivers, k + ahead, 4)
        a, b, c, d = values[entries[k]], values[entries[k + 1]], values[entries[k + 2]], values[entries[k + 3]]
        p, q = both[receivers[k]], both[receivers[k + 1]]
        r, s = both[receivers[k + 2]], both[receivers[k + 3]]
        for x in range(total.shape[0]):
            total[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        k += 4
    while k < end:
        if ahead:
            fetch_rows(both, receivers, k + ahead, 1)
        _add(total, values[entries[k]], both[receivers[k]])
        k += 1


@njit(**_ROW)
def _sum_and_dots(k, end, receivers, entries, values, both, ahead, mine, total, dots, out):  # type: ignore[no-untyped-def]
    """`_sum_of`, and each receiver's row times the sender's (e·m, -e), which is the gradient of a value."""
    width = mine.shape[0] // 2
    _negate(mine[width:])
    while k + 4 <= end:
        if ahead:
            fetch_rows(both, receivers, k + ahead, 4)
        a, b, c, d = values[entries[k]], values[entries[k + 1]], values[entries[k + 2]], values[entries[k + 3]]
        p, q = both[receivers[k]], both[receivers[k + 1]]
        r, s = both[receivers[k + 2]], both[receivers[k + 3]]
        _sum_and_dot(a, b, c, d, p, q, r, s, mine, total, dots)
        for x in range(4):
            out[entries[k + x]] = dots[x]
        k += 4
    while k < end:
        if ahead:
            fetch_rows(both, receivers, k + ahead, 1)
        out[entries[k]] = _sum_and_dot_one(values[entries[k]], both[receivers[k]], mine, total)
        k += 1
    _negate(mine[width:])


@njit(**_ROW)
def _sum_and_dot(a, b, c, d, p, q, r, s, mine, total, dots):  # type: ignore[no-untyped-def]
    i = j = k = n = total.dtype.type(0)
    for x in range(total.shape[0]):
        total[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
        i += mine[x] * p[x]
        j += mine[x] * q[x]
        k += mine[x] * r[x]
        n += mine[x] * s[x]
    dots[0], dots[1], dots[2], dots[3] = i, j, k, n


@njit(**_ROW)
def _sum_and_dot_one(a, p, mine, total):  # type: ignore[no-untyped-def]
    dot = total.dtype.type(0)
    for x in range(total.shape[0]):
        total[x] += a * p[x]
        dot += mine[x] * p[x]
    return dot


@njit(**_ROW)
def _negate(row):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):
        row[c] = -row[c]
