"""Distinct node pairs drawn by propensity, within or between the blocks of a block model.

A pair is written as one number, `smaller * nodes + larger`, so that sets of pairs are plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fastglt.data.base import Bools, Ints, sorted_distinct

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Nodes in consecutive blocks, each node with a propensity to be drawn."""

    labels: Ints  # the block of each node, ascending
    bounds: Ints  # block b is the nodes bounds[b] to bounds[b + 1]
    propensity: Weights

    @classmethod
    def of(cls, sizes: Ints, propensity: Weights) -> Blocks:
        """Blocks of these sizes, in that order."""
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        return cls(labels=np.repeat(np.arange(len(sizes)), sizes), bounds=bounds, propensity=propensity)

    def draw(self, rng: np.random.Generator, count: int, *, inside: bool) -> Ints:
        """Pairs with both ends in one block, or in two; repeats may occur, equal ends are left out."""
        nodes = len(self.labels)
        edge = np.concatenate([[0], np.cumsum(self.propensity)])  # node i owns edge[i] to edge[i + 1]
        first = np.searchsorted(edge[1:-1], rng.random(count) * edge[-1], side="right")
        block = self.labels[first]
        start, stop = edge[self.bounds[block]], edge[self.bounds[block + 1]]
        if inside:
            at = start + rng.random(count) * (stop - start)
        else:
            at = rng.random(count) * (edge[-1] - (stop - start))
            at += np.where(at >= start, stop - start, 0)  # steps over the first end's own block
        second = np.searchsorted(edge[1:-1], at, side="right")
        # Rounding may put an end one node beyond its block: drop that draw with the equal ends.
        kept: Bools = (first != second) & ((self.labels[second] == block) == inside)
        keys: Ints = np.minimum(first, second) * nodes + np.maximum(first, second)
        return keys[kept]

    def every_pair(self, *, inside: bool) -> Ints:
        """All the pairs with both ends in one block, or in two."""
        nodes = len(self.labels)
        if not inside:
            low, high = np.triu_indices(nodes, 1)
            apart: Bools = self.labels[low] != self.labels[high]
            every: Ints = low * nodes + high
            return every[apart]
        keys = []
        for start, stop in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            low, high = np.triu_indices(stop - start, 1)
            keys.append((low + start) * nodes + high + start)
        return np.concatenate(keys)


def distinct_pairs(rng: np.random.Generator, blocks: Blocks, count: int, *, inside: bool, room: int) -> Ints:
    """So many different pairs, out of the `room` that there are."""
    if 2 * count > room:
        return _choose(rng, blocks, count, inside=inside)
    found = np.empty(0, dtype=np.int64)
    while found.size < count:
        lacking = count - found.size
        fresh = sorted_distinct(blocks.draw(rng, lacking + lacking // 8 + 16, inside=inside))
        if found.size:
            fresh = np.setdiff1d(fresh, found, assume_unique=True)
        found = np.concatenate([found, rng.permutation(fresh)[:lacking]])
        # Hubs soon have all their pairs: evener propensities each round let the rest come in.
        blocks = replace(blocks, propensity=np.sqrt(blocks.propensity))
    return found


def _choose(rng: np.random.Generator, blocks: Blocks, count: int, *, inside: bool) -> Ints:
    """By propensity out of the list of all pairs: for when most of them are wanted."""
    keys, nodes = blocks.every_pair(inside=inside), len(blocks.labels)
    appeal = np.log(blocks.propensity[keys // nodes] * blocks.propensity[keys % nodes])
    order = np.argsort(-(appeal + rng.gumbel(size=len(keys))), kind="stable")
    return keys[order[:count]]
