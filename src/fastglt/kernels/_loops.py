"""Compiled loops over compressed rows, parallel over rows, so results do not depend on the thread count.

Every function fills an output that the caller allocated. Rows are vectorised along the dense axis;
entries are taken four at a time so that the output row is loaded and stored once for four of them.
"""

import math

import numpy as np
from numba import njit, prange

from fastglt.kernels._prefetch import fetch_rows

_FAST = {"contract", "reassoc", "nsz"}
_COMMON = {
    "fastmath": _FAST,
    "error_model": "numpy",  # a division checks for nothing
    "cache": True,
    "nogil": True,
    "no_cfunc_wrapper": True,  # nobody calls it from C: sooner compiled
}
_OPTIONS = {"parallel": True, **_COMMON}
_ROW = _COMMON  # a loop over one row vectorises best as a function of its own
_INSIDE = {"inline": "always", "fastmath": _FAST, "error_model": "numpy"}

_ROWS = 32  # that one thread takes at a time where they share something

NONE, RELU, ELU = 0, 1, 2  # activations


@njit(**_OPTIONS)
def aggregate(indptr, indices, values, dense, bias, activation, key, threshold, scale, ahead, out):  # type: ignore[no-untyped-def]
    """out[i] = dropout(activation(Σ_k values[k] · dense[indices[k]] + bias)) over the entries k of row i.

    Each of the values' columns, a head, multiplies its equal part of dense's columns. Without an
    activation the bias may be empty; a threshold of 0 leaves dropout out. Rows are fetched so many entries ahead.
    """
    heads = values.shape[1]
    width = dense.shape[1] // heads
    zero = out.dtype.type(0)
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = zero
        for h in range(heads):
            target = row[h * width : (h + 1) * width]
            k = indptr[i]
            end = indptr[i + 1]
            while k + 4 <= end:
                if ahead:
                    fetch_rows(dense, indices, k + ahead, 4)
                a, b, c, d = values[k, h], values[k + 1, h], values[k + 2, h], values[k + 3, h]
                p = dense[indices[k], h * width : (h + 1) * width]
                q = dense[indices[k + 1], h * width : (h + 1) * width]
                r = dense[indices[k + 2], h * width : (h + 1) * width]
                s = dense[indices[k + 3], h * width : (h + 1) * width]
                for x in range(width):
                    target[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
                k += 4
            while k < end:
                if ahead:
                    fetch_rows(dense, indices, k + ahead, 1)
                a = values[k, h]
                p = dense[indices[k], h * width : (h + 1) * width]
                for x in range(width):
                    target[x] += a * p[x]
                k += 1
        if activation == RELU:
            _relu(row, bias)
        elif activation == ELU:
            _elu(row, bias)
        elif bias.shape[0]:
            _add(row, zero + out.dtype.type(1), bias)
        if threshold:
            _drop(row, *_words(key, i), threshold, scale)


@njit(**_OPTIONS)
def activation_backward(y, grad, activation, key, threshold, scale, out):  # type: ignore[no-untyped-def]
    """The gradient before relu or elu and dropout, from their result y and its gradient."""
    for i in prange(y.shape[0]):
        row = out[i]
        if activation == RELU:  # what is dropped is 0, and so is its gradient
            _relu_backward(y[i], grad[i], scale, row)
        else:
            _elu_backward(y[i], grad[i], scale, row)
            if threshold:
                _drop(row, *_words(key, i), threshold, scale)


@njit(**_OPTIONS)
def dropout(x, key, threshold, scale, out):  # type: ignore[no-untyped-def]
    """out = x · scale where the hash of (key, row, column) is at least `threshold`, else 0."""
    for i in prange(x.shape[0]):
        _copy(x[i], out[i])
        _drop(out[i], *_words(key, i), threshold, scale)


@njit(**_OPTIONS)
def sddmm(indptr, indices, left, right, ahead, out):  # type: ignore[no-untyped-def]
    """out[k, h] = ⟨left[i], right[indices[k]]⟩ over head h's columns, for each entry k of row i."""
    heads = out.shape[1]
    width = left.shape[1] // heads
    for i in prange(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if ahead:
                fetch_rows(right, indices, k + ahead, 1)
            for h in range(heads):
                part = slice(h * width, (h + 1) * width)
                out[k, h] = _dot(left[i, part], right[indices[k], part])


@njit(**_OPTIONS)
def narrow(x, columns, out):  # type: ignore[no-untyped-def]
    """out[i, c] = ⟨x[i], columns[c]⟩: a product with a matrix of few columns, given as rows."""
    zero = x.dtype.type(0)
    for i in prange(x.shape[0]):
        row = x[i]
        c = 0
        while c + 4 <= columns.shape[0]:
            p, q, r, s = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
            a = b = d = e = zero
            for k in range(row.shape[0]):
                a += row[k] * p[k]
                b += row[k] * q[k]
                d += row[k] * r[k]
                e += row[k] * s[k]
            out[i, c], out[i, c + 1], out[i, c + 2], out[i, c + 3] = a, b, d, e
            c += 4
        while c < columns.shape[0]:
            p = columns[c]
            a = zero
            for k in range(row.shape[0]):
                a += row[k] * p[k]
            out[i, c] = a
            c += 1


@njit(**_OPTIONS)
def head_dots(x, vectors, out):  # type: ignore[no-untyped-def]
    """out[i, k, h] = ⟨x[i], vectors[k, h]⟩ over head h's columns."""
    sets, heads, width = vectors.shape
    for i in prange(x.shape[0]):
        for h in range(heads):
            for k in range(sets):
                out[i, k, h] = _dot(x[i, h * width : (h + 1) * width], vectors[k, h])


@njit(**_OPTIONS)
def head_dots_rows(vectors, grad, out):  # type: ignore[no-untyped-def]
    """The gradient of x: out[i] = Σ_k grad[i, k, h] · vectors[k, h] in head h's columns."""
    sets, heads, width = vectors.shape
    zero = out.dtype.type(0)
    for i in prange(out.shape[0]):
        for h in range(heads):
            row = out[i, h * width : (h + 1) * width]
            row[:] = zero
            for k in range(sets):
                _add(row, grad[i, k, h], vectors[k, h])


@njit(**_OPTIONS)
def head_dots_vectors(x, grad, out):  # type: ignore[no-untyped-def]
    """The gradient of the vectors, which start at zero: out[k, h] += grad[i, k, h] · x[i] over head h's columns."""
    sets, heads, width = out.shape
    for h in prange(heads):
        for i in range(x.shape[0]):
            for k in range(sets):
                _add(out[k, h], grad[i, k, h], x[i, h * width : (h + 1) * width])


@njit(**_ROW)
def _dot(a, b):  # type: ignore[no-untyped-def]
    total = a.dtype.type(0)
    for x in range(a.shape[0]):
        total += a[x] * b[x]
    return total


@njit(**_ROW)
def _add(row, factor, other):  # type: ignore[no-untyped-def]
    for x in range(row.shape[0]):
        row[x] += factor * other[x]


@njit(**_ROW)
def _copy(row, other):  # type: ignore[no-untyped-def]
    """other = row; written as `other[:] = row`, numba compiles and links a message about shapes for seconds."""
    for x in range(row.shape[0]):
        other[x] = row[x]


@njit(**_OPTIONS)
def attention(indptr, indices, target, source, slope, out):  # type: ignore[no-untyped-def]
    """out[k, h] = softmax over row i of leaky_relu(target[i, h] + source[indices[k], h])."""
    heads = out.shape[1]
    for i in prange(indptr.shape[0] - 1):
        for h in range(heads):
            largest = -np.inf
            for k in range(indptr[i], indptr[i + 1]):
                logit = target[i, h] + source[indices[k], h]
                logit = logit if logit > 0 else slope * logit
                out[k, h] = logit
                largest = max(largest, logit)
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                weight = math.exp(out[k, h] - largest)
                out[k, h] = weight
                total += weight
            for k in range(indptr[i], indptr[i + 1]):
                out[k, h] /= total


@njit(**_OPTIONS)
def attention_logits(indptr, indices, target, source, slope, largest, out):  # type: ignore[no-untyped-def]
    """The logits of `attention` less the largest of their row, all heads of an entry at a time."""
    for i in prange(indptr.shape[0] - 1):
        largest[i] = -np.inf
        for k in range(indptr[i], indptr[i + 1]):
            _leaky_sum(target[i], source[indices[k]], slope, largest[i], out[k])
        for k in range(indptr[i], indptr[i + 1]):
            _add(out[k], out.dtype.type(-1), largest[i])


@njit(**_OPTIONS)
def attention_shares(indptr, total, out):  # type: ignore[no-untyped-def]
    """Each entry divided, head by head, by its row's total."""
    for i in prange(indptr.shape[0] - 1):
        total[i] = 0
        for k in range(indptr[i], indptr[i + 1]):
            _add(total[i], out.dtype.type(1), out[k])
        for k in range(indptr[i], indptr[i + 1]):
            _divide(out[k], total[i])


@njit(**_ROW)
def _leaky_sum(a, b, slope, largest, out):  # type: ignore[no-untyped-def]
    for x in range(out.shape[0]):
        logit = a[x] + b[x]
        out[x] = logit if logit > 0 else slope * logit
        largest[x] = max(largest[x], out[x])


@njit(**_ROW)
def _divide(row, other):  # type: ignore[no-untyped-def]
    for x in range(row.shape[0]):
        row[x] /= other[x]


@njit(**_OPTIONS)
def attention_backward(indptr, indices, target, source, slope, alpha, grad, out, grad_target):  # type: ignore[no-untyped-def]
    """Gradients of `attention`: of the logits before the leaky ReLU (out) and of target (their row sums)."""
    heads = alpha.shape[1]
    for i in prange(indptr.shape[0] - 1):
        for h in range(heads):
            dot = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                dot += alpha[k, h] * grad[k, h]
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                g = alpha[k, h] * (grad[k, h] - dot)
                if target[i, h] + source[indices[k], h] <= 0:
                    g *= slope
                out[k, h] = g
                total += g
            grad_target[i, h] = total


@njit(**_OPTIONS)
def row_sums(indptr, order, values, out):  # type: ignore[no-untyped-def]
    """out[i] = Σ values[order[k]] over the entries k of row i."""
    heads = values.shape[1]
    for i in prange(indptr.shape[0] - 1):
        for h in range(heads):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += values[order[k], h]
            out[i, h] = total


@njit(**_ROW)
def _words(key, i):  # type: ignore[no-untyped-def]
    """Two words for row i: splitmix64 of the key and i."""
    z = np.uint64(key) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.uint32(z & np.uint64(0xFFFFFFFF)), np.uint32(z >> np.uint64(32))


@njit(**_ROW)
def _drop(row, low, high, threshold, scale):  # type: ignore[no-untyped-def]
    """`dropout` of one row in place; its two words are mixed with the column."""
    zero = row.dtype.type(0)
    for column in range(row.shape[0]):
        u = np.uint32(np.uint32(column) * np.uint32(0x9E3779B9) + low)
        u = np.uint32((u ^ (u >> np.uint32(16))) * np.uint32(0x7FEB352D))
        u = np.uint32((u ^ high ^ (u >> np.uint32(15))) * np.uint32(0x846CA68B))
        u = np.uint32(u ^ (u >> np.uint32(16)))
        row[column] = row[column] * scale if u >= threshold else zero


@njit(**_ROW)
def _relu(row, bias):  # type: ignore[no-untyped-def]
    """row = relu(row + bias)."""
    zero = row.dtype.type(0)
    for x in range(row.shape[0]):
        y = row[x] + bias[x]
        row[x] = zero if y < zero else y  # NaN stays


@njit(**_ROW)
def _relu_backward(y, grad, scale, out):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)
    for x in range(out.shape[0]):
        out[x] = grad[x] * scale if y[x] > zero else zero


@njit(**_ROW)
def _elu_backward(y, grad, scale, out):  # type: ignore[no-untyped-def]
    zero, one = out.dtype.type(0), out.dtype.type(1)
    for x in range(out.shape[0]):
        out[x] = grad[x] if y[x] > zero else grad[x] * (y[x] / scale + one)


@njit(**_ROW)
def _elu(row, bias):  # type: ignore[no-untyped-def]
    """row = elu(row + bias)."""
    if row.itemsize == 4:
        zero, one = np.float32(0), np.float32(1)  # of one type throughout, or it would be computed in doubles
        for x in range(row.shape[0]):
            y = np.float32(row[x] + bias[x])
            row[x] = _exp(y if y < zero else zero) - one if y <= zero else y  # NaN stays
    else:
        for x in range(row.shape[0]):
            y = row[x] + bias[x]
            row[x] = math.expm1(y) if y <= 0 else y


LOG2_E = np.float32(1.4426950408889634)
LOWEST = np.float32(-126)  # power of two
POWERS_OF_2 = tuple(  # 2^f: 1 at 0, and right at six places that keep the error below 6e-9 in between
    np.float32(c) for c in (0.000154531629, 0.00133908634, 0.00961808256, 0.0555035711, 0.240226508, 0.693147188, 1)
)


@njit(**_INSIDE)
def _exp(x):  # type: ignore[no-untyped-def]
    """e^x for x ≤ 0 in single precision, made to vectorise: 2^n · 2^f with |f| ≤ ½, 2^f by a polynomial."""
    t = x * LOG2_E
    t = t if t > LOWEST else LOWEST
    n = np.floor(t + np.float32(0.5))
    f = t - n
    e = POWERS_OF_2[0]
    for c in POWERS_OF_2[1:]:
        e = e * f + c
    return e * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
