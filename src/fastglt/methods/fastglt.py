"""FastGLT (AAAI'25): prune once with learned masks, then denoise the masks in short intervals.

Stage 1 trains soft masks beside the weights and cuts almost to the target. Stage 2
trains the sparse network and swaps, at the end of each interval, the noisiest kept elements for the
most promising pruned ones, until the target is reached and the swaps have died out.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fastglt.errors import InputError, require, unknown_name
from fastglt.masks import as_vector
from fastglt.methods.base import (
    STRUCTURES,
    Method,
    cut_random,
    draw_smallest,
    get_masks,
    set_masks,
    swap_edges,
    train_soft_masks,
    train_sparse,
)
from fastglt.methods.parts.agreement import ForestRule
from fastglt.methods.parts.ranking import EDGE_POTENTIALS, feature_norms, keep_among, swapped
from fastglt.methods.parts.schedules import SwapSchedule, intermediate_sparsity
from fastglt.methods.parts.selection import degree_potential_of_all
from fastglt.methods.parts.unit_cuts import UNIT_SCORES
from fastglt.methods.parts.unit_swaps import return_units, swap_units
from fastglt.models.base import Network
from fastglt.system.seeds import derive
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot

STARTS = ("oneshot", "random")
WEIGHT_STRENGTHS = ("size", "effect")


@dataclass(frozen=True, kw_only=True)
class FastGLT(Method):
    """One-shot pruning, then gradual denoising."""

    name = "fastglt"
    summary = "prune once with learned masks, then denoise them in short intervals"
    paper = "Yue et al., Fast Track to Winning Tickets: Repowering One-Shot Pruning for GNNs, AAAI 2025"
    structures = STRUCTURES

    start: str = "oneshot"  # where denoising starts: learned masks, or random ones (ablation)
    swap_fraction: float = 0.3  # share of kept elements offered for a swap at first [tau]
    decay: float = 1.0  # how fast that share falls [kappa]
    edge_score: str = "degree"  # which pruned edges return first: low degree, or the paper's similarity; or forest
    weight_score: str = "size"  # which kept weights are noise: the smallest, or those of least effect on a layer
    unit_score: str = "mask"  # which hidden units stay, where units are pruned: mask, norm, effect or random
    unit_swap_fraction: float = 0.0  # share of kept units offered for a swap at first, where units are pruned
    ramp: float = 0.8  # share of the intervals after which the target is reached; the paper's is 1

    @property
    def options(self) -> dict[str, Any]:
        """As of every method; what came later only if it is other than usual, so that keys stay."""
        usual = (("weight_score", "size"), ("unit_score", "mask"), ("unit_swap_fraction", 0.0))
        return {name: value for name, value in super().options.items() if (name, value) not in usual}

    @property
    def needs(self) -> tuple[str, ...]:
        """The forest rule asks what is predicted."""
        return () if self.forest is None else self.forest.needs

    def check(self, network: Network) -> None:
        """An effect needs a network that knows which of its weights read the features."""
        asked = self.weight_score == "effect" and self.targets.weight_sparsity > 0
        if asked and network.feature_weights is None:
            remedy = "fastglt's own models know what theirs read"
            raise InputError(f"weight_score must be size for a model of your own (got effect); {remedy}")

    def begin(self, training: Training) -> None:
        """Stage 1 trains soft masks; a random start cuts at once, and only warms the weights up."""
        if self.start == "random":
            cut_random(training, *self._one_shot_sparsities())
            train_sparse(training, self.targets, stage="warm-up", soft_edges=self.forest is None)
        else:
            train_soft_masks(training, self.targets, soft_edges=self.forest is None)

    def after_epoch(self, training: Training) -> None:
        """Cut after E epochs; from then on, denoise after every interval."""
        denoised = training.epoch - self.budget.oneshot_epochs
        if denoised == 0:
            self.cut(training)
            train_sparse(
                training,
                self.targets,
                stage="denoise",
                soft_edges=self.forest is None,
                sum_gradients=self.targets.weight_sparsity > 0 and training.units is None,
            )
        elif denoised > 0 and (denoised % self.budget.interval == 0 or training.epoch == self.epochs):
            self.denoise(training, interval=math.ceil(denoised / self.budget.interval))

    def cut(self, training: Training) -> None:
        """End stage 1: cut almost to the target; a forest has its own time, and is chosen for the target itself."""
        chosen = self.choose_forest(training, interval=0, at=training.best)
        edges, weights = get_masks(training)
        if self.start == "oneshot":
            edges, weights = draw_smallest(training, *self._one_shot_sparsities(), unit_score=self.unit_score)
        set_masks(training, edges if chosen is None else chosen, weights)

    def denoise(self, training: Training, interval: int) -> None:
        """Swap by the schedule: small soft masks and weights are noise, low degrees and large gradients promise."""
        edges, weights = get_masks(training)
        edge_swap, weight_swap = (
            self.schedule(target).swap(interval=interval, kept=kept, total=total)
            for target, kept, total in (
                (self.targets.graph_sparsity, training.masks.edges.count, edges.numel()),
                (self.targets.weight_sparsity, training.masks.weights_kept, weights.numel()),
            )
        )
        seed = derive(training.seed, "swap", interval)
        if (chosen := self.choose_forest(training, interval=interval)) is not None:
            edges = chosen
        elif any(edge_swap) and training.soft_edge_mask is not None:
            given = {"strength": training.soft_edge_mask.detach(), "potential": self.edge_potential(training)}
            before, edges = edges, swap_edges(training, edges, edge_swap, **given, seed=seed)
            _start_at_mean(training.soft_edge_mask, regrown=edges & ~before, kept=before)
        grown = None
        if training.units is not None:
            schedule = replace(self.schedule(self.targets.weight_sparsity), swap_fraction=self.unit_swap_fraction)
            weights, grown = swap_units(training, weights, schedule, interval, self.unit_score, seed=seed)
        elif any(weight_swap):
            strength, potential = self.weight_strength(training), as_vector(training.gradient_sum)
            weights = swapped(weights, weight_swap, strength=strength, potential=potential, seed=seed)
        set_masks(training, edges, weights)
        return_units(training, grown)
        for total in training.gradient_sum.values():
            total.zero_()
        if training.epoch == self.epochs and any(edge_swap + weight_swap):
            training.measure("final")

    def edge_potential(self, training: Training) -> Tensor:
        """The potential of each edge; degrees are counted by all processes, without cutting the pruned graph."""
        graph, ranges = training.task.graph, training.ranges
        if self.edge_score == "degree" and not ranges.alone:
            return degree_potential_of_all(ranges, graph.edges, training.masks.edges.kept, graph.num_nodes)
        return EDGE_POTENTIALS[self.edge_score](graph, training.graph)

    def weight_strength(self, training: Training) -> Tensor:
        """The size of each weight; as its effect, times the norm of the feature that it reads, if it reads one."""
        if self.weight_score == "size":
            return as_vector(training.weights)
        reads = training.network.feature_weights or ()
        norms = feature_norms(training.task.x).unsqueeze(1)
        return as_vector({name: w * norms if name in reads else w for name, w in training.weights.items()})

    @property
    def forest(self) -> ForestRule | None:
        """How edges are chosen by agreement, if they are."""
        return ForestRule() if self.edge_score == "forest" and self.targets.graph_sparsity > 0 else None

    def choose_forest(self, training: Training, *, interval: int, at: Snapshot | None = None) -> Tensor | None:
        """The edges that the forest rule keeps after an interval; None if it does not choose then.

        They are chosen by the network as it is, or was at some epoch; never where no epoch is left to train them.
        """
        rule, seed = self.rule_now(training), derive(training.seed, "forest", interval)
        if rule is None or training.epoch >= self.epochs or not rule.chooses_after(interval, self._intervals):
            return None
        count, _ = self.targets.kept(training)
        return rule.choose(training, count, seed=seed, at=at, trusted=self.trusted(training))

    def trusted(self, training: Training) -> Tensor | None:
        """The edges that a rule may choose from; None: all."""
        return None

    def rule_now(self, training: Training) -> ForestRule | None:
        """How edges are chosen by agreement at this moment of a search, if they are."""
        return self.forest

    def keep_new_edges(self, training: Training, new: Tensor, count: int, *, seed: int) -> Tensor:
        """By the forest rule where it chooses edges; else as pruned edges return, low degrees first."""
        if self.forest is not None:
            return self.forest.choose(training, count, seed=seed, among=new)
        if self.edge_score == "forest":  # no edge was to be pruned
            return super().keep_new_edges(training, new, count, seed=seed)
        potential = EDGE_POTENTIALS[self.edge_score](training.task.graph, training.graph).cpu()
        return keep_among(new, potential, count, seed)

    def schedule(self, target: float) -> SwapSchedule:
        """How one mask moves from its one-shot cut to a target."""
        return SwapSchedule(
            start=intermediate_sparsity(target),
            target=target,
            intervals=self._intervals,
            swap_fraction=self.swap_fraction,
            decay=self.decay,
            ramp=self.ramp,
        )

    @property
    def _intervals(self) -> int:
        return math.ceil(self.budget.denoise_epochs / self.budget.interval)

    def _one_shot_sparsities(self) -> tuple[float, float]:
        """Of edges and of weights; a forest is cut from the whole graph, at its own time."""
        edges = self.targets.graph_sparsity if self.forest is None else 0.0
        return intermediate_sparsity(edges), intermediate_sparsity(self.targets.weight_sparsity)

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise unknown_name("start", self.start, STARTS)
        if self.edge_score not in (*EDGE_POTENTIALS, "forest"):
            raise unknown_name("edge score", self.edge_score, (*EDGE_POTENTIALS, "forest"))
        if self.weight_score not in WEIGHT_STRENGTHS:
            raise unknown_name("weight score", self.weight_score, WEIGHT_STRENGTHS)
        if self.unit_score not in UNIT_SCORES:
            raise unknown_name("unit score", self.unit_score, UNIT_SCORES)
        require("lie in [0, 1]", unit_swap_fraction=self.unit_swap_fraction)
        self.schedule(0.0)  # checks the rest


def _start_at_mean(soft_edge_mask: Tensor, *, regrown: Tensor, kept: Tensor) -> None:
    """A regrown edge starts with the mean of the kept ones."""
    with torch.no_grad():
        soft_edge_mask[regrown.to(soft_edge_mask.device)] = soft_edge_mask[kept.to(soft_edge_mask.device)].mean()
