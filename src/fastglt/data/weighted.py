"""Edges with weights from a user's file: distinct, sorted, and with one weight each."""

from __future__ import annotations

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
    edges = tidy_edges(graph.source, graph.target, nodes=nodes, directed=directed, keep_loops=True)
    if graph.weights is None:
        return edges, None
    source, target, weights = graph.source, graph.target, graph.weights
    if not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        weights = np.concatenate([weights, weights])
    _, first, which = np.unique(source * nodes + target, return_index=True, return_inverse=True)
    other = np.flatnonzero(weights[first][which] != weights)
    if other.size:
        both = (int(first[which[other[0]]]), int(other[0]))
        raise _unequal(graph, graph.weights, path, *both, directed=directed)
    with np.errstate(over="ignore"):  # too large becomes inf, which is refused later by name
        return edges, weights[first].astype(np.float32)


def _unequal(graph: FileGraph, weights: Weights, path: str, *places: int, directed: bool) -> InputError:
    """Two listings of an edge; places beyond the last are those of its other direction."""
    first, second = sorted(place % len(weights) for place in places)
    ends = (int(graph.source[first]), int(graph.target[first]))
    names = ends if graph.names is None else [graph.names.nodes[end] for end in ends]
    hint = "keep one of them" if directed else "keep one of them, or say --directed (directed=True)"
    return InputError(
        f"{path}: an edge must have the same weight wherever it is listed (got {weights[first]:g} and "
        f"{weights[second]:g} between {names[0]} and {names[1]}); {hint}"
    )
