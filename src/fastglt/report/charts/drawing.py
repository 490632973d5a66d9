"""A graph as a drawing: a part of it that is small enough to be looked at, and places for its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastglt.report.charts.masks import network_drawing
from fastglt.report.charts.picture import Picture

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
MOST_NODES = 260
_BRANCH = 5  # neighbours of a node that are followed, so that a hub does not fill the picture
_STEPS = 160


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A graph to draw: its edges as two rows of node numbers, and which of them are kept."""

    edges: Ints  # [2, edges]
    kept: Bools  # [edges]
    nodes: int
    groups: Sequence[str] | None = None  # of each node, such as its class

    def picture(self, *, title: str, most: int = MOST_NODES, seed: int = 0) -> Picture:
        """The graph with its kept and pruned edges, or a part of it where it has more nodes than that."""
        chosen = sample(self.edges, self.nodes, most=most, seed=seed)
        inside = np.isin(self.edges, chosen).all(0)
        edges, kept = np.searchsorted(chosen, self.edges[:, inside]), self.kept[inside]
        place = layout(edges, len(chosen), seed=seed)
        before = np.bincount(self.edges.ravel(), minlength=self.nodes)
        after = np.bincount(self.edges[:, self.kept].ravel(), minlength=self.nodes)
        nodes = [
            {
                "x": round(float(x), 4),
                "y": round(float(y), 4),
                "group": self._group(int(node)),
                "about": f"node {node}{self._told(int(node))}: {before[node]} edges before, {after[node]} after",
            }
            for node, (x, y) in zip(chosen, place, strict=True)
        ]
        lines = [
            {**_ends(nodes[source], nodes[target]), "kept": bool(stays)}
            for (source, target), stays in zip(edges.T, kept, strict=True)
        ]
        part = (
            "" if len(chosen) == self.nodes else f" A part of the graph: {len(chosen):,} of {self.nodes:,} nodes."
        )
        text = (
            f"{int(kept.sum()):,} kept and {int((~kept).sum()):,} pruned edges between {len(chosen):,} nodes.{part}"
        )
        return network_drawing(nodes, lines, title=title, text=text)

    def _group(self, node: int) -> str:
        return "nodes" if self.groups is None else self.groups[node]

    def _told(self, node: int) -> str:
        return "" if self.groups is None else f", {self.groups[node]}"


def _ends(source: dict[str, Any], target: dict[str, Any]) -> dict[str, float]:
    return {"x": source["x"], "y": source["y"], "x2": target["x"], "y2": target["y"]}


def sample(edges: Ints, nodes: int, *, most: int, seed: int) -> Ints:
    """At most so many nodes, sorted: all, or those that are met first on a walk along a few edges of each.

    >>> ring = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> sample(ring, 4, most=9, seed=0).tolist(), len(sample(ring, 4, most=3, seed=0))
    ([0, 1, 2, 3], 3)
    """
    if nodes <= most:
        return np.arange(nodes)
    rng = np.random.default_rng(seed)
    both = np.concatenate([edges, edges[::-1]], axis=1)
    order = np.argsort(both[0], kind="stable")
    neighbours, starts = both[1, order], np.searchsorted(both[0, order], np.arange(nodes + 1))
    found: dict[int, None] = {}
    linked = np.flatnonzero(np.diff(starts) > 1)
    for first in rng.permutation(linked if len(linked) else nodes).tolist():
        waiting = [first]
        while waiting and len(found) < most:
            node = waiting.pop(0)
            if node not in found:
                found[node] = None
                around = neighbours[starts[node] : starts[node + 1]]
                waiting += rng.permutation(around)[:_BRANCH].tolist()
        if len(found) == most:
            break
    return np.sort(np.array(list(found), dtype=np.int64))


def layout(edges: Ints, nodes: int, *, seed: int) -> Floats:
    """Places in the unit square: linked nodes attract each other, all others keep away (Fruchterman, Reingold)."""
    place = np.random.default_rng(seed).random((nodes, 2))
    if nodes < 2:
        return place
    ideal = 1 / np.sqrt(nodes)
    for step in range(_STEPS):
        apart = place[:, None] - place[None]
        distance = np.sqrt((apart**2).sum(-1)) + 1e-9
        push = (apart * np.minimum(ideal**2 / distance**2, 5.0)[..., None]).sum(1)
        along = place[edges[0]] - place[edges[1]]
        pull = along * (np.sqrt((along**2).sum(-1, keepdims=True)) / ideal)
        np.add.at(push, edges[0], -pull)
        np.add.at(push, edges[1], pull)
        push += 0.8 * (0.5 - place)  # towards the middle, or parts without links drift away
        length = np.sqrt((push**2).sum(-1, keepdims=True)) + 1e-9
        heat = 0.12 * (1 - step / _STEPS) + 0.002
        place += push / length * np.minimum(length, heat)
    low, high = place.min(0), place.max(0)
    return np.asarray(0.03 + 0.94 * (place - low) / np.maximum(high - low, 1e-9))
