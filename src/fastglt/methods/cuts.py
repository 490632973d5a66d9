"""Cuts to an exact count, of edges and of weights or whole units: the smallest soft masks, the lowest strengths."""

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.masks import Mask, Masks, flatten, weight_masks
from fastglt.methods.parts.ranking import keep_largest, keep_random, swapped
from fastglt.methods.parts.schedules import Swap, kept_count
from fastglt.methods.parts.selection import keep_largest_of_all, swapped_of_all
from fastglt.methods.parts.unit_cuts import keep_units, relative, unit_strengths
from fastglt.system.ranges import Ranges
from fastglt.system.seeds import derive
from fastglt.training.loop import Training


def cut_smallest(
    training: Training, graph_sparsity: float, weight_sparsity: float, *, unit_score: str = "mask"
) -> None:
    """End a stage: cut the smallest soft masks of its best epoch, by count; weights are ranked globally.

    If whole units are pruned, `unit_score` says by what: see `unit_strengths`.
    """
    set_masks(training, *draw_smallest(training, graph_sparsity, weight_sparsity, unit_score=unit_score))


def draw_smallest(
    training: Training, graph_sparsity: float, weight_sparsity: float, *, unit_score: str = "mask"
) -> tuple[Tensor, Tensor]:
    """End a stage; returns what `cut_smallest` would keep, as `draw_lowest` does."""
    (edges, weights), units, best = _own_soft_masks(training), None, training.best
    if training.units is not None and best is not None and weights is not None:
        trained = flatten({name: best.state[name] for name in training.weights})
        seed = derive(training.seed, "cut", "units")
        units = unit_strengths(training.units, unit_score, trained.cpu(), weights.cpu(), seed=seed)
    training.end_stage()
    return draw_lowest(training, graph_sparsity, weight_sparsity, edges=edges, weights=weights, units=units)


def best_soft_masks(training: Training) -> tuple[Tensor | None, Tensor | None]:
    """The size |m| of every soft mask at the stage's best epoch, of edges and of weights; None where untrained."""
    edges, weights = _own_soft_masks(training)
    return None if edges is None else training.ranges.whole(edges, "masks"), weights


def _own_soft_masks(training: Training) -> tuple[Tensor | None, Tensor | None]:
    """The same, of edges those that this process owns."""
    best = training.best
    assert best is not None, "the soft masks have been trained"
    edges = None if best.soft_edge_mask is None else best.soft_edge_mask.abs()
    return edges, flatten(best.soft_weight_masks).abs_() if best.soft_weight_masks else None


def cut_random(training: Training, graph_sparsity: float, weight_sparsity: float) -> None:
    """Cut edges and weights drawn at random, by count."""
    cut_lowest(training, graph_sparsity, weight_sparsity)


def cut_lowest(
    training: Training,
    graph_sparsity: float,
    weight_sparsity: float,
    *,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
) -> None:
    """Cut to a sparsity, by count: the lowest strengths first, at random where there are none."""
    set_masks(training, *draw_lowest(training, graph_sparsity, weight_sparsity, edges=edges, weights=weights))


def draw_lowest(
    training: Training,
    graph_sparsity: float,
    weight_sparsity: float,
    *,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
    units: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """What `cut_lowest` would keep, as two boolean vectors: one over edges and one over all weights in order.

    What is pruned already stays so. Strengths are vectors of the same kind, of edges those that this process owns
    are enough; whole units go by the means of their weights' strengths, unless they have strengths of their own.
    """
    seed, (edges_kept, weights_kept) = training.seed, get_masks(training)
    of_edges, of_weights = (derive(seed, "cut", part) for part in ("edges", "weights"))
    kept = _kept(edges_kept, graph_sparsity, edges, of_edges, training.ranges)
    if training.units is None or weight_sparsity == 0:
        return kept, _kept(weights_kept, weight_sparsity, weights, of_weights)
    weights_kept = training.units.keep(training.units.alive(weights_kept))  # single ones may return
    count = _count(weights_kept, weight_sparsity)
    if weights is not None:
        _require_numbers(weights)
        units = relative(training.units, training.units.means(weights)) if units is None else units
    return kept, keep_units(training.units, weights_kept, count, strength=units, single=weights, seed=of_weights)


def _count(alive: Tensor, sparsity: float) -> int:
    """How many of the elements alive stay."""
    return min(kept_count(sparsity, alive.numel()), int(torch.count_nonzero(alive)))


def _require_numbers(strength: Tensor, ranges: Ranges | None = None) -> None:
    unknown, total = int(torch.count_nonzero(strength.isnan())), strength.numel()
    if ranges is not None:
        unknown, total = int(sum(ranges.world.of_all(unknown))), ranges.size
    if unknown:  # neither low nor high, so no count could be kept
        raise InputError(f"strengths to cut by must be numbers (got NaN for {unknown} of {total})")


def swap_edges(
    training: Training, kept: Tensor, swap: Swap, *, strength: Tensor, potential: Tensor, seed: int
) -> Tensor:
    """`swapped` for edges: of strengths and potentials, those of the edges that this process owns are enough."""
    given = {"strength": strength, "potential": potential}
    if training.ranges.alone:
        return swapped(kept, swap, **given, seed=seed)
    return swapped_of_all(training.ranges, kept, swap, **given, seed=seed)


def _kept(
    alive: Tensor, sparsity: float, strength: Tensor | None, seed: int, ranges: Ranges | None = None
) -> Tensor:
    """Which elements stay; `ranges` says which of them this process ranks."""
    count = _count(alive, sparsity)
    if strength is None or sparsity == 0:
        kept = torch.zeros_like(alive)
        kept[alive] = keep_random(int(alive.sum()), count, seed)
        return kept
    if ranges is not None and not ranges.alone:
        strength = ranges.own(strength).cpu()
        _require_numbers(strength, ranges)
        return keep_largest_of_all(ranges, strength.masked_fill(~ranges.own(alive), -torch.inf), count, seed)
    _require_numbers(strength)
    strength = strength.cpu() if bool(alive.all()) else strength.cpu().masked_fill(~alive, -torch.inf)
    return keep_largest(strength, count, seed)


def get_masks(training: Training) -> tuple[Tensor, Tensor]:
    """The masks in force as two boolean vectors, one over edges and one over all weights in order."""
    masks = training.masks
    return masks.edges.kept, flatten({name: mask.kept for name, mask in masks.weights.items()}).bool()  # if none


def set_masks(training: Training, edges: Tensor, weights: Tensor) -> None:
    """Put masks in force, given as two vectors as `get_masks` returns them."""
    training.revise(Masks(edges=Mask(edges), weights=weight_masks(weights, training.weights)))
