"""Compiled loops over compressed rows, parallel over rows, so results do not depend on the thread count.

Every function fills an output that the caller allocated. Rows are vectorised along the dense axis;
entries are taken four at a time so that the output row is loaded and stored once for four of them.
"""

import math

import numpy as np
from numba import njit, prange

_OPTIONS = {"parallel": True, "fastmath": {"contract", "reassoc", "nsz"}, "cache": True, "nogil": True}


@njit(**_OPTIONS)
def spmm(indptr, indices, values, dense, out):  # type: ignore[no-untyped-def]
    """out[i, h·w + c] = Σ_k values[k, h] · dense[indices[k], h·w + c] over the entries k of row i."""
    heads = values.shape[1]
    width = dense.shape[1] // heads
    for i in prange(indptr.shape[0] - 1):
        row = out[i]
        row[:] = 0
        for h in range(heads):
            target = row[h * width : (h + 1) * width]
            k = indptr[i]
            end = indptr[i + 1]
            while k + 4 <= end:
                a, b, c, d = values[k, h], values[k + 1, h], values[k + 2, h], values[k + 3, h]
                p = dense[indices[k], h * width : (h + 1) * width]
                q = dense[indices[k + 1], h * width : (h + 1) * width]
                r = dense[indices[k + 2], h * width : (h + 1) * width]
                s = dense[indices[k + 3], h * width : (h + 1) * width]
                for x in range(width):
                    target[x] += (a * p[x] + b * q[x]) + (c * r[x] + d * s[x])
                k += 4
            while k < end:
                a = values[k, h]
                p = dense[indices[k], h * width : (h + 1) * width]
                for x in range(width):
                    target[x] += a * p[x]
                k += 1


@njit(**_OPTIONS)
def sddmm(indptr, indices, left, right, out):  # type: ignore[no-untyped-def]
    """out[k, h] = ⟨left[i], right[indices[k]]⟩ over head h's columns, for each entry k of row i."""
    heads = out.shape[1]
    width = left.shape[1] // heads
    zero = left.dtype.type(0)
    for i in prange(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            for h in range(heads):
                a = left[i, h * width : (h + 1) * width]
                b = right[indices[k], h * width : (h + 1) * width]
                total = zero
                for x in range(width):
                    total += a[x] * b[x]
                out[k, h] = total


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


@njit(**_OPTIONS)
def dropout(x, key, threshold, scale, out):  # type: ignore[no-untyped-def]
    """out = x · scale where the hash of (key, row, column) is at least `threshold`, else 0."""
    for i in prange(x.shape[0]):
        z = np.uint64(key) + np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        low = np.uint32(z & np.uint64(0xFFFFFFFF))
        high = np.uint32(z >> np.uint64(32))
        for c in range(x.shape[1]):
            u = np.uint32(np.uint32(c) * np.uint32(0x9E3779B9) + low)
            u = np.uint32((u ^ (u >> np.uint32(16))) * np.uint32(0x7FEB352D))
            u = np.uint32((u ^ high ^ (u >> np.uint32(15))) * np.uint32(0x846CA68B))
            u = np.uint32(u ^ (u >> np.uint32(16)))
            out[i, c] = x[i, c] * scale if u >= threshold else 0
