"""Denoising by units: the weakest hidden units make room for those that promise most.

A unit without weights has no gradient that could promise anything, and one that starts at zero would never learn.
So a unit that is out is judged as if its initial weights led into it and none out of it yet, which leaves the
outputs as they are: it promises the gradients of the weights that would lead out. It returns in the same way.
"""

import torch
from torch import Tensor

from fastglt.masks import as_vector, flatten, unflatten
from fastglt.methods.parts.ranking import highest
from fastglt.methods.parts.saliency import loss_gradient
from fastglt.methods.parts.schedules import SwapSchedule, kept_count
from fastglt.methods.parts.unit_cuts import keep_units, unit_strengths
from fastglt.training.loop import Training


def swap_units(
    training: Training, kept: Tensor, schedule: SwapSchedule, interval: int, score: str, *, seed: int
) -> tuple[Tensor, Tensor | None]:
    """The weights that stay after an interval, to the schedule's exact count, and the units that return, if any."""
    units = training.units
    assert units is not None
    alive = units.alive(kept)
    swap = schedule.swap(interval=interval, kept=int(alive.sum()), total=units.count)
    count = kept_count(schedule.sparsity(interval), kept.numel())
    if not swap.grow and count == int(kept.sum()):
        return kept, None
    trained, grown = as_vector(training.weights).cpu(), torch.zeros_like(alive)
    strength = unit_strengths(units, score, trained, seed=seed)
    single = trained.abs()
    if swap.grow:
        grown = highest(_potential(training, ~alive).masked_fill(alive, -torch.inf), swap.grow, seed + 1)
        strength = strength.masked_fill(grown, torch.inf)
        single = single.masked_fill(units.touch(grown), torch.inf)
    there = units.keep(alive | grown)
    return keep_units(units, there, count, strength=strength, single=single, seed=seed), grown


def return_units(training: Training, grown: Tensor | None) -> None:
    """Give units that have returned the initial weights that lead into them."""
    if grown is None or training.units is None:
        return
    places = unflatten(training.units.lead_into(grown), training.weights)
    with torch.no_grad():
        for name, weight in training.weights.items():
            place = (places[name] & training.masks.weights[name].kept).to(weight.device)
            weight[place] = training.initial_weights[name].to(weight.device)[place]


def _potential(training: Training, out: Tensor) -> Tensor:
    """What units that are out promise, each of them."""
    units = training.units
    assert units is not None
    into = units.lead_into(out).to(training.task.device)
    start = flatten(training.initial_weights).to(training.task.device)
    given = torch.where(into, start, as_vector(training.weights))
    gradient = loss_gradient(training, unflatten(given, training.weights), edges=False).weights
    return units.both_sums(gradient.abs())[1]
