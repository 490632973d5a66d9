"""Compiled loops that build sparse patterns by counting, in one pass: sorting would take longer.

They are not parallel: what is written next depends on what was written before.
"""

import numpy as np
from numba import njit

_OPTIONS = {"cache": True, "nogil": True}


@njit(**_OPTIONS)
def transpose(indptr, indices, starts, order, rows):  # type: ignore[no-untyped-def]
    """The entries column by column, within a column in their order: which entry, and which row it was in.

    `starts` has each column's first place and is used up.
    """
    for i in range(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            place = starts[indices[k]]
            starts[indices[k]] = place + 1
            order[place] = k
            rows[place] = i


@njit(**_OPTIONS)
def number_columns(source, target, starts, numbers):  # type: ignore[no-untyped-def]
    """The number of each column's edge, and how many edges there are; -1 if the columns are not in strict order.

    For an undirected graph without loops: edges are numbered by their smaller ends, then by their larger.
    `starts` has the number of the first edge of each smaller end and is used up. Ascending larger ends bring each
    edge's second column in its turn, if it has one: see `are_edges`.
    """
    number = 0
    for k in range(source.shape[0]):
        low, high = source[k], target[k]
        if low == high or (k and (source[k - 1] > low or (source[k - 1] == low and target[k - 1] >= high))):
            return -1
        if low < high:
            numbers[k] = number
            number += 1
        else:
            numbers[k] = starts[high]
            starts[high] += 1
    return number


@njit(**_OPTIONS)
def are_edges(source, target, numbers, low, high):  # type: ignore[no-untyped-def]
    """Whether every column that leads downwards is the second of the edge whose number it has."""
    for k in range(source.shape[0]):
        if source[k] > target[k]:
            number = numbers[k]
            if number >= low.shape[0] or low[number] != target[k] or high[number] != source[k]:
                return False
    return True


@njit(**_OPTIONS)
def every_message(source, target, both_ways, places, indices, entry_edge):  # type: ignore[no-untyped-def]
    """Each node's senders in ascending order, itself among them, and along which edge; edges are sorted.

    `places` has each node's first entry and is used up. Whoever is below a node has sent to it before its turn.
    """
    edges, e = source.shape[0], 0
    for node in range(places.shape[0]):
        at = places[node]
        indices[at], entry_edge[at] = node, edges
        at += 1
        while e < edges and source[e] == node:
            other = target[e]
            if both_ways:
                indices[at], entry_edge[at] = other, e
                at += 1
            place = places[other]
            indices[place], entry_edge[place] = node, e
            places[other] = place + 1
            e += 1
        places[node] = at


@njit(**_OPTIONS)
def group(indptr, indices, most, sweeps, labels, sizes):  # type: ignore[no-untyped-def]
    """Let each node in turn join the group that most of its neighbours are in, if it is not full; some times."""
    count = np.zeros(labels.shape[0], np.int32)
    for _ in range(sweeps):
        for i in range(labels.shape[0]):
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] != i:
                    count[labels[indices[k]]] += 1
            best = labels[i]
            for k in range(indptr[i], indptr[i + 1]):
                other = labels[indices[k]]
                if count[other] > count[best] and sizes[other] < most:
                    best = other
            for k in range(indptr[i], indptr[i + 1]):
                count[labels[indices[k]]] = 0
            if best != labels[i]:
                sizes[labels[i]] -= 1
                sizes[best] += 1
                labels[i] = best


@njit(**_OPTIONS)
def within_groups(indptr, indices, labels):  # type: ignore[no-untyped-def]
    """How many messages stay within a group."""
    found = 0
    for i in range(labels.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            found += indices[k] != i and labels[indices[k]] == labels[i]
    return found
