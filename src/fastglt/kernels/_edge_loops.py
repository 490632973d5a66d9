"""Compiled loops of the softmax aggregation with edge features: messages are computed where they are needed.

A message is relu(z) + eps with z = x[sender] + features[edge] · weight + bias. Messages are never written down for
all edges: a few of a receiver's at a time, and for gradients one after the other, sender by sender.
"""

import math

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW, _ROWS, _add, _exp

_AT_ONCE = 16  # messages of one receiver that are written down
_HIGHEST = 80.0  # exponent of a message without value, which has no part in the sum and may exceed what has


@njit(**_OPTIONS)
def means(indptr, indices, values, x, features, rows, weight, bias, t, eps, out, top, below):  # type: ignore[no-untyped-def]
    """out = Σ v·e·m / Σ v·e of each row with e = exp(t·m − top), below = Σ v·e; top is the row's largest t·m."""
    count, width = out.shape
    for block in prange((count + _ROWS - 1) // _ROWS):
        messages, factors = np.empty((_AT_ONCE, width), x.dtype), np.empty(_AT_ONCE, x.dtype)
        largest = np.empty(width, x.dtype)
        for i in range(block * _ROWS, min(count, (block + 1) * _ROWS)):
            top[i], below[i], out[i] = -np.inf, 0.0, 0.0
            k, held = indptr[i], 0
            while k < indptr[i + 1]:
                if values[k] != 0:
                    _encode(x[indices[k]], features[rows[k]], weight, bias, messages[held])
                    factors[held] = values[k]
                    held += 1
                k += 1
                if held == _AT_ONCE or (held and k == indptr[i + 1]):
                    _join(messages[:held], factors, t, eps, largest, top[i], below[i], out[i])
                    held = 0
            _divide(out[i], below[i])


@njit(**_OPTIONS)
def backward(  # type: ignore[no-untyped-def]
    indptr, receivers, entries, values, x, features, rows, weight, bias, t, eps, share, mean, top,
    of_x, of_values, of_weight, of_bias, of_t,
):  # fmt: skip
    """Every gradient, sender by sender; `share` is that of the means, divided by `below`.

    Those of weight, bias and temperature are summed in as many parts as `of_t` has numbers.
    """
    parts, (count, width) = of_t.shape[0], x.shape
    for part in prange(parts):
        z, of_z, of_channel = np.empty(width, x.dtype), np.empty(width, x.dtype), np.zeros(width, x.dtype)
        for j in range(count * part // parts, count * (part + 1) // parts):
            of_x[j] = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                i, entry = receivers[k], entries[k]
                own = features[rows[entry]]
                _encode(x[j], own, weight, bias, z)
                of_values[entry] = _message_backward(
                    z, values[entry], t, eps, share[i], mean[i], top[i], of_z, of_channel
                )
                _add(of_x[j], x.dtype.type(1), of_z)
                for f in range(own.shape[0]):
                    if own[f] != 0:
                        _add(of_weight[part, f], own[f], of_z)
            _add(of_bias[part], x.dtype.type(1), of_x[j])
        of_t[part] = of_channel.sum()


@njit(**_ROW)
def _encode(x, features, weight, bias, z):  # type: ignore[no-untyped-def]
    for c in range(x.shape[0]):
        z[c] = x[c] + bias[c]
    for f in range(features.shape[0]):
        if features[f] != 0:
            _add(z, features[f], weight[f])


@njit(**_ROW)
def _join(messages, factors, t, eps, largest, top, below, above):  # type: ignore[no-untyped-def]
    """Add some messages, given as z, to a receiver's sums, which then are relative to a new top."""
    zero, width = messages.dtype.type(0), top.shape[0]
    for c in range(width):
        largest[c] = top[c]
    for j in range(messages.shape[0]):
        z = messages[j]
        for c in range(width):
            z[c] = (zero if z[c] < zero else z[c]) + eps  # NaN stays
        for c in range(width):
            largest[c] = t * z[c] if t * z[c] > largest[c] else largest[c]
    _rescale(largest, top, below, above)
    for j in range(messages.shape[0]):
        _add_message(messages[j], factors[j], t, top, below, above)


@njit(**_ROW)
def _rescale(largest, top, below, above):  # type: ignore[no-untyped-def]
    if top.itemsize == 4:
        for c in range(top.shape[0]):
            factor = _exp(top[c] - largest[c])
            below[c] *= factor
            above[c] *= factor
            top[c] = largest[c]
    else:
        for c in range(top.shape[0]):
            factor = math.exp(top[c] - largest[c])
            below[c] *= factor
            above[c] *= factor
            top[c] = largest[c]


@njit(**_ROW)
def _add_message(m, value, t, top, below, above):  # type: ignore[no-untyped-def]
    if top.itemsize == 4:
        for c in range(top.shape[0]):
            e = value * _exp(t * m[c] - top[c])
            below[c] += e
            above[c] += e * m[c]
    else:
        for c in range(top.shape[0]):
            e = value * math.exp(t * m[c] - top[c])
            below[c] += e
            above[c] += e * m[c]


@njit(**_ROW)
def _divide(above, below):  # type: ignore[no-untyped-def]
    zero = above.dtype.type(0)
    for c in range(above.shape[0]):
        above[c] = zero if below[c] == zero else above[c] / below[c]


@njit(**_ROW)
def _message_backward(z, value, t, eps, share, mean, top, of_z, of_channel):  # type: ignore[no-untyped-def]
    """The gradients of z and of the temperature, and as the result that of the value."""
    zero, highest, total = z.dtype.type(0), z.dtype.type(_HIGHEST), z.dtype.type(0)
    for c in range(z.shape[0]):
        m = (zero if z[c] < zero else z[c]) + eps
        y = t * m - top[c]
        of_z[c] = y if y < highest else highest
    if z.itemsize == 4:
        for c in range(z.shape[0]):
            of_z[c] = _exp(of_z[c]) * share[c]
    else:
        for c in range(z.shape[0]):
            of_z[c] = math.exp(of_z[c]) * share[c]
    for c in range(z.shape[0]):
        m = (zero if z[c] < zero else z[c]) + eps
        through = of_z[c] * (m - mean[c])
        total += through
        of_channel[c] += value * through * m
        of_z[c] = value * (of_z[c] + t * through) if z[c] > zero else zero
    return total
