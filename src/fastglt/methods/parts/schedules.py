"""How many elements are kept and swapped, when: after a cut, an interval, a round, in each layer.

Plain arithmetic on counts: no tensors, no randomness, so a run's whole trajectory can be printed and
tested before anything is trained.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastglt.errors import InputError, require


def kept_count(sparsity: float, total: int) -> int:
    """How many of `total` elements stay at a sparsity; everywhere the same rounding.

    >>> kept_count(0.25, 10)  # 2.5 rounds half to even: 2 go
    8
    """
    return total - round(sparsity * total)


def check_sparsity(name: str, sparsity: float, total: int) -> None:
    """Refuse a target outside [0, 1), or one that leaves nothing."""
    require("lie in [0, 1)", **{name: sparsity})
    if sparsity > 0 and kept_count(sparsity, total) < 1:
        raise InputError(f"{name} must leave at least one of {total} elements (got {sparsity}, which leaves none)")


def intermediate_sparsity(target: float, alpha: float = 0.01, beta: float = 1.2) -> float:
    """Where the one-shot cut stops short of the target [Ψ(s) = s − α·s^β].

    >>> round(intermediate_sparsity(0.99), 4)
    0.9801
    """
    return target - alpha * float(target**beta)


class Swap(NamedTuple):
    """How many kept elements go and how many pruned ones return."""

    drop: int
    grow: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SwapSchedule:
    """Moves a mask from its one-shot sparsity to its target in equal steps, swapping elements on the way.

    >>> schedule = SwapSchedule(start=0.5, target=0.7, intervals=2, swap_fraction=0.4, ramp=1.0)
    >>> schedule.swap(interval=1, kept=50, total=100)
    Swap(drop=20, grow=10)
    >>> schedule.swap(interval=2, kept=40, total=100)  # the last one only prunes
    Swap(drop=10, grow=0)
    """

    start: float  # sparsity of the one-shot mask [s_inm]
    target: float  # sparsity of the finished ticket [s_tgt]
    intervals: int  # [mu_end]
    swap_fraction: float = 0.3  # share of the kept elements offered for a swap at first [tau]
    decay: float = 1.0  # how fast that share falls to zero [kappa]
    ramp: float = 0.8  # share of the intervals after which the target is reached

    def __post_init__(self) -> None:
        require("be at least 1", intervals=self.intervals)
        require("lie in [0, 1]", swap_fraction=self.swap_fraction)
        require("be positive", decay=self.decay)
        require("lie in (0, 1]", ramp=self.ramp)

    def sparsity(self, interval: int) -> float:
        """The sparsity once interval number `interval` (from 1) is over [s_mu]."""
        progress = interval / (self.ramp * self.intervals)
        if progress > 1 - 1e-9:
            return self.target
        return self.start + (self.target - self.start) * progress

    def swap(self, *, interval: int, kept: int, total: int) -> Swap:
        """What to drop and regrow at the end of an interval."""
        keep_next = kept_count(self.sparsity(interval), total)
        share = self.swap_fraction * (1 - interval / self.intervals) ** self.decay  # [Upsilon]
        grow = min(int(kept * share), total - kept, keep_next)
        return Swap(drop=kept + grow - keep_next, grow=grow)


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundSchedule:
    """Removes the same share of what is left in every round, until a target is reached.

    >>> schedule = RoundSchedule(target=0.6, share=0.3)
    >>> [round(schedule.sparsity(done), 2) for done in range(schedule.rounds + 1)]
    [0.0, 0.3, 0.51, 0.6]
    """

    target: float  # sparsity of the finished ticket
    share: float  # of the remaining elements, removed in a round

    def __post_init__(self) -> None:
        require("lie in (0, 1)", share=self.share)

    @property
    def rounds(self) -> int:
        """How many rounds reach the target; the last one removes no more than is needed."""
        return math.ceil(math.log1p(-self.target) / math.log1p(-self.share) - 1e-9)

    def sparsity(self, done: int) -> float:
        """The sparsity once so many rounds are over."""
        return self.target if done >= self.rounds else 1 - (1 - self.share) ** done


@dataclass(frozen=True, kw_only=True, slots=True)
class CosineSwaps:
    """Swaps a share of the kept elements that falls to nothing by half a cosine; the count stays.

    >>> schedule = CosineSwaps(swap_fraction=0.4, end=10)
    >>> [schedule.swap(epoch=epoch, kept=50, total=100).grow for epoch in (0, 5, 10)]
    [20, 10, 0]
    """

    swap_fraction: float  # share of the kept elements swapped at first [alpha]
    end: float  # epoch from which on nothing is swapped [T_end]

    def __post_init__(self) -> None:
        require("lie in [0, 1]", swap_fraction=self.swap_fraction)
        require("be positive", end=self.end)

    def swap(self, *, epoch: int, kept: int, total: int) -> Swap:
        """What to drop and regrow after an epoch; never more than there is to regrow."""
        share = self.swap_fraction / 2 * (1 + math.cos(math.pi * min(1.0, epoch / self.end)))
        count = min(int(kept * share), total - kept)
        return Swap(drop=count, grow=count)


def erdos_renyi_counts(shapes: Sequence[Sequence[int]], kept: int) -> list[int]:
    """How many weights each layer keeps, of `kept` together: its density goes with (in + out) / (in · out).

    A layer that would have to keep more than it has is kept whole, and the others share the rest. What rounding
    down leaves over goes to the largest remainders, of equal ones to the first.

    >>> erdos_renyi_counts([(100, 10), (10, 3)], 123)  # in the ratio of 110 to 13
    [110, 13]
    >>> erdos_renyi_counts([(100, 10), (10, 3)], 500)  # 53 of 30 is too many
    [470, 30]
    """
    counts, ends = [math.prod(shape) for shape in shapes], [sum(shape) for shape in shapes]
    sparse, left = list(range(len(shapes))), kept

    def share(layer: int) -> tuple[int, int]:
        """What of the rest is a layer's, rounded down, and the remainder."""
        return divmod(left * ends[layer], sum(ends[other] for other in sparse))

    while full := [layer for layer in sparse if share(layer)[0] >= counts[layer]]:
        left -= sum(counts[layer] for layer in full)
        sparse = [layer for layer in sparse if layer not in full]
    for layer in sparse:
        counts[layer] = share(layer)[0]
    for layer in sorted(sparse, key=lambda layer: -share(layer)[1])[: kept - sum(counts)]:
        counts[layer] += 1
    return counts
