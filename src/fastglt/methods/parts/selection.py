"""Cuts and swaps of elements that several processes own: each looks at its own, and they choose what one would.

The border, the `count`-th smallest of all values, is found digit by digit in the order of the values' bits: in each
round the processes add up how many of theirs have which digit. Ties fall in the order that one process draws.
Nothing but counts and, in the end, the mask's bits travels.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.methods.parts.ranking import NOT_TO_SWAP_BY
from fastglt.methods.parts.schedules import Swap
from fastglt.system.ranges import Ranges
from fastglt.system.ranks import World
from fastglt.system.seeds import permutation

WHAT = "masks"  # that this is handed over for
_DIGIT = 11  # bits
_AT_A_TIME = 2**20  # elements


def keep_largest_of_all(ranges: Ranges, own: Tensor, count: int, seed: int) -> Tensor:
    """`keep_largest` over the strengths of all processes, of which this one gives its own."""
    values, few = own.cpu().numpy(), 2 * count < ranges.size
    if few:
        chosen = lowest_of_all(ranges.world, -values, count, seed)
    else:
        chosen = ~lowest_of_all(ranges.world, values, ranges.size - count, seed)
    return ranges.whole_mask(torch.from_numpy(chosen), WHAT)


def swapped_of_all(
    ranges: Ranges, kept: Tensor, swap: Swap, *, strength: Tensor, potential: Tensor, seed: int
) -> Tensor:
    """`swapped` over the elements of all processes; strengths and potentials are this one's own, or all."""
    alive = ranges.own(kept.cpu()).numpy()
    weak, promising = (ranges.own(part).detach().cpu().numpy() for part in (strength, potential))
    after, world = alive.copy(), ranges.world
    for some, values, drops in ((alive, weak, True), (~alive, promising, False)):
        count, there = swap.drop if drops else swap.grow, some & ~np.isnan(values)
        if sum(world.of_all(float(np.count_nonzero(there)))) < count:
            raise InputError(NOT_TO_SWAP_BY)
        picked = np.abs(values[there]) if drops else -values[there]
        after[there] ^= lowest_of_all(world, picked, count, seed if drops else seed + 1)
    return ranges.whole_mask(torch.from_numpy(after), WHAT)


def degree_potential_of_all(ranges: Ranges, edges: Tensor, kept: Tensor, nodes: int) -> Tensor:
    """`EDGE_POTENTIALS["degree"]` of this process's own edges; each counts those of its own that are kept."""
    mine, degree = ranges.mine, torch.zeros(nodes, dtype=torch.int32, device=edges.device)
    for start in range(mine.start, mine.stop, _AT_A_TIME):
        here = slice(start, min(start + _AT_A_TIME, mine.stop))
        ends = edges[:, here][:, kept[here].to(edges.device)].flatten()
        degree.index_add_(0, ends, torch.ones_like(ends, dtype=torch.int32))
    return -(ranges.world.add_up(degree, WHAT)[edges[:, mine]].sum(0) / 2)


def lowest_of_all(world: World, values: Any, count: int, seed: int) -> Any:
    """Which of this process's values are among the `count` smallest of all; they are numbers, at least so many."""
    if count == 0:
        return np.zeros(values.shape, dtype=bool)
    keys = _in_order(values)
    border, left = _border(world, keys, count)
    chosen, ties = keys < border, np.flatnonzero(keys == border)
    counts = [int(number) for number in world.of_all(len(ties))]
    if left == sum(counts):
        chosen[ties] = True
    else:
        drawn = permutation(sum(counts), seed).numpy()[:left] - sum(counts[: world.rank])
        chosen[ties[drawn[(drawn >= 0) & (drawn < len(ties))]]] = True
    return chosen


def _in_order(values: Any) -> Any:
    """Unsigned whole numbers in the order of some floats; both zeros are one.

    >>> _in_order(np.array([-1.5, -0.0, 0.0, 2.0], dtype=np.float32)).argsort(kind="stable").tolist()
    [0, 1, 2, 3]
    """
    values = (values if values.dtype == np.float32 else values.astype(np.float64)) + 0.0
    keys, bits = values.view(f"u{values.itemsize}"), 8 * values.itemsize
    flips = -(keys >> keys.dtype.type(bits - 1))  # all bits of a negative number
    flips |= keys.dtype.type(1 << (bits - 1))
    keys ^= flips
    return keys


def _border(world: World, keys: Any, count: int) -> tuple[int, int]:
    """The `count`-th smallest key of all processes, and how many of those equal to it are among the smallest."""
    border, shift, left = 0, 8 * keys.itemsize, count
    while shift:
        digits = min(_DIGIT, shift)
        shift -= digits
        ends = world.add_up(torch.from_numpy(_counts(keys, shift, digits)), WHAT).numpy().cumsum()
        digit = int(np.searchsorted(ends, left))
        left -= int(ends[digit - 1]) if digit else 0
        border = (border << digits) | digit
        keys = keys[keys >> keys.dtype.type(shift) == border]
    return border, left


def _counts(keys: Any, shift: int, digits: int) -> Any:
    """How many keys have which digit, some at a time."""
    found = np.zeros(1 << digits, dtype=np.int64)
    for start in range(0, len(keys), _AT_A_TIME):
        some = (keys[start : start + _AT_A_TIME] >> keys.dtype.type(shift)) & keys.dtype.type(len(found) - 1)
        found += np.bincount(some.astype(np.int64), minlength=len(found))
    return found
