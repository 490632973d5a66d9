"""Compiled loops over single numbers: scores of messages, and the extremes of a mask's elements."""

import numpy as np
from numba import njit, prange

from fastglt.kernels._loops import _OPTIONS, _ROW

LOOKED_AT = 2**15  # numbers that one thread looks at at a time


@njit(cache=True, nogil=True)
def weigh(norm, score, ids, out):  # type: ignore[no-untyped-def]
    """out[k] = norm[k] · score[ids[k]], or norm[k] where there is no such score."""
    for k in range(out.shape[0]):
        out[k] = norm[k] * score[ids[k]] if ids[k] < score.shape[0] else norm[k]


@njit(cache=True, nogil=True)
def weigh_backward(norm, grad, ids, out):  # type: ignore[no-untyped-def]
    """out[e] = Σ grad[k] · norm[k] over the k with ids[k] = e."""
    for k in range(norm.shape[0]):
        if ids[k] < out.shape[0]:
            out[ids[k]] += grad[k] * norm[k]


@njit(**_OPTIONS)
def mark_extremes(kept, strength, potential, weak, promising, marks, counts):  # type: ignore[no-untyped-def]
    """marks = 1 for a weak kept element, 2 for a promising other; counts[b + 1] = how many of each in block b."""
    for b in prange(counts.shape[0] - 1):
        part = slice(b * LOOKED_AT, (b + 1) * LOOKED_AT)
        _mark_extremes(kept[part], strength[part], potential[part], weak, promising, marks[part])
        counts[b + 1, 0], counts[b + 1, 1] = _count_marks(marks[part])


@njit(**_ROW)
def _mark_extremes(kept, strength, potential, weak, promising, marks):  # type: ignore[no-untyped-def]
    for x in range(kept.shape[0]):
        few = np.uint8(kept[x] & (abs(strength[x]) <= weak))
        more = np.uint8((not kept[x]) & (potential[x] >= promising))
        marks[x] = few | (more << np.uint8(1))


@njit(**_ROW)
def _count_marks(marks):  # type: ignore[no-untyped-def]
    few, more = np.int32(0), np.int32(0)
    for x in range(marks.shape[0]):
        few += np.int32(marks[x] & 1)
        more += np.int32(marks[x] >> 1)
    return few, more


@njit(**_OPTIONS)
def find_marks(marks, starts, few, more):  # type: ignore[no-untyped-def]
    """Where the marks are, those of block b from starts[b] on."""
    for b in prange(starts.shape[0] - 1):
        first, end = starts[b], starts[b + 1]
        places = np.empty(LOOKED_AT + 1, np.int32), np.empty(LOOKED_AT + 1, np.int32)
        _find_marks(marks[b * LOOKED_AT : (b + 1) * LOOKED_AT], *places)
        for i in range(end[0] - first[0]):
            few[first[0] + i] = b * LOOKED_AT + places[0][i]
        for i in range(end[1] - first[1]):
            more[first[1] + i] = b * LOOKED_AT + places[1][i]


@njit(**_ROW)
def _find_marks(marks, few, more):  # type: ignore[no-untyped-def]
    """Every place is written down, and the next one over it if it has no mark: no branch has to be guessed."""
    i, j = np.int64(0), np.int64(0)
    for x in range(marks.shape[0]):
        mark = np.int64(marks[x])
        few[i], more[j] = x, x
        i += mark & 1
        j += mark >> 1
