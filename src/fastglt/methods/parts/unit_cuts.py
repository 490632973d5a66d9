"""Whole hidden units, cut and regrown as one; the exact count of weights is reached with single ones at the end.

Units go from the weakest on, as long as no fewer weights are left than asked for. What is still too much, less than
one unit, goes as single weights: the weakest of the units that stay. Each layer keeps one unit at least.
"""

import torch
from torch import Tensor

from fastglt.methods.parts.ranking import keep_largest
from fastglt.models.units import Units
from fastglt.system.seeds import permutation, uniform

UNIT_SCORES = ("mask", "norm", "effect", "random")


def unit_strengths(units: Units, rule: str, weights: Tensor, masks: Tensor | None = None, *, seed: int) -> Tensor:
    """How strong each unit is, relative to the mean of its layer.

    By the mean size of its soft masks, by the norm of its weights, soft masks counted, by its effect (the norm of
    those into it times the norm of those out of it), or by lot. Without soft masks the norm counts for them.
    """
    soft = weights if masks is None else weights * masks
    if rule == "random":
        found = uniform((units.count,), 1.0, seed).double() + 1
    elif rule == "mask" and masks is not None:
        found = units.means(masks.abs())
    elif rule == "effect":
        into, out = units.both_sums(soft.square())
        found = (into * out).sqrt()
    else:
        found = units.sums(soft.square()).sqrt()
    return relative(units, found)


def relative(units: Units, strengths: Tensor) -> Tensor:
    """Strengths of units by the mean of their layer, so that layers can be compared."""
    sums = torch.zeros(int(units.layer.max()) + 1, dtype=torch.float64).index_add_(0, units.layer, strengths)
    means = sums / units.layer.bincount(minlength=sums.numel())
    return strengths / means.clamp(min=torch.finfo(torch.float64).tiny)[units.layer]


def keep_units(
    units: Units, alive: Tensor, count: int, *, strength: Tensor | None, single: Tensor | None, seed: int
) -> Tensor:
    """Which weights stay, of those alive: `count` of them, in as few units as hold so many.

    `strength` ranks units and `single` the weights of those that stay; without, both fall at random.
    """
    order = _weakest_first(units, alive, strength, seed)

    def without(gone: int) -> Tensor:
        kept = torch.ones(units.count, dtype=torch.bool)
        kept[order[:gone]] = False
        return alive & units.keep(kept)

    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if int(without(middle).sum()) >= count else (low, middle - 1)
    left = without(low)
    single = torch.zeros(left.numel()) if single is None else single.cpu().float()
    return keep_largest(single.masked_fill(~left, -torch.inf), count, seed)


def _weakest_first(units: Units, alive: Tensor, strength: Tensor | None, seed: int) -> Tensor:
    """The units that may go, in that order: those that are there, without the strongest of each layer."""
    there = units.alive(alive)
    ranks = torch.zeros(units.count, dtype=torch.float64) if strength is None else strength.double()
    shuffled = permutation(units.count, seed)  # equals fall in a seeded order
    order = shuffled[ranks[shuffled].argsort(stable=True)]
    order = order[there[order]]
    last = {int(units.layer[unit]): place for place, unit in enumerate(order.tolist())}
    may_go = torch.ones(order.numel(), dtype=torch.bool)
    may_go[list(last.values())] = False
    return order[may_go]
