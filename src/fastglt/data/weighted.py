"""Edges with weights from a user's file: distinct, sorted, and with one weight each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastglt.data.base import FileGraph, Floats, Ints, tidy_edges
from fastglt.errors import InputError

Weights = npt.NDArray[np.float64]


def tidy_file_edges(graph: FileGraph, *, directed: bool, path: str) -> tuple[Ints, Floats | None]:
    """The edges of a file, both ways unless directed, and their weights if it has some.

    An edge that is listed once has its weight in both directions. One that is listed several times, in either
    direction unless directed, must have the same weight each time.
    """
    nodes = len(graph.labels)
    if graph.weights is None:
        return tidy_edges(graph.source, graph.target, nodes=nodes, directed=directed, keep_loops=True), None
    edges, first, clash = merged(graph.source, graph.target, graph.weights, nodes=nodes, directed=directed)
    if clash is not None:
        raise _unequal(graph, graph.weights, path, *clash, directed=directed)
    with np.errstate(over="ignore"):  # too large becomes inf, which is refused later by name
        return edges, graph.weights[first].astype(np.float32)


def merged(
    source: Ints, target: Ints, values: npt.NDArray[Any], *, nodes: int, directed: bool
) -> tuple[Ints, Ints, tuple[int, int] | None]:
    """Sorted distinct edges, both ways unless directed; where each is listed first; two listings that differ.

    `values` has a number, or a row of them, for each listing.

    >>> edges, first, clash = merged(np.array([1, 0]), np.array([0, 1]), np.array([5, 6]), nodes=2, directed=False)
    >>> edges.tolist(), first.tolist(), clash
    ([[0, 1], [1, 0]], [1, 0], (1, 0))
    """
    listed = len(source)
    if not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    keys, first, which = np.unique(source * nodes + target, return_index=True, return_inverse=True)
    first %= max(1, listed)  # beyond the last are those of the other direction
    here = np.arange(len(source)) % max(1, listed)
    repeats = np.flatnonzero(first[which] != here)
    differ = values[first[which[repeats]]] != values[here[repeats]]
    other = repeats[differ if differ.ndim == 1 else differ.any(1)]
    clash = (int(first[which[other[0]]]), int(here[other[0]])) if other.size else None
    return np.stack([keys // nodes, keys % nodes]), first, clash


def _unequal(graph: FileGraph, weights: Weights, path: str, *places: int, directed: bool) -> InputError:
    """Two listings of an edge."""
    first, second = sorted(places)
    ends = (int(graph.source[first]), int(graph.target[first]))
    names = ends if graph.names is None else [graph.names.nodes[end] for end in ends]
    hint = "keep one of them" if directed else "keep one of them, or say --directed (directed=True)"
    return unequal_weights(path, (weights[first], weights[second]), names, hint)


def unequal_weights(where: str, weights: tuple[float, float], ends: Sequence[object], hint: str) -> InputError:
    """An edge that is listed twice, each time with another weight."""
    return InputError(
        f"{where}: an edge must have the same weight wherever it is listed (got {weights[0]:g} and "
        f"{weights[1]:g} between {ends[0]} and {ends[1]}); {hint}"
    )
