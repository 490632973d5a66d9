"""SNIP (Lee et al., ICLR'19): keep what the loss at Θ0 depends on most."""

from dataclasses import dataclass

from fastglt.masks import flatten
from fastglt.methods.base import STRUCTURES
from fastglt.methods.parts.saliency import Elements, Saliency
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class SNIP(Saliency):
    """A weight is worth |g·w|: how fast the loss would change with a mask on it. An edge, |g| of its mask.

    One gradient on all training nodes, where the paper takes one batch.
    """

    name = "snip"
    summary = "prunes at initialisation what the loss depends on least"
    paper = "Lee et al., SNIP: Single-shot Network Pruning based on Connection Sensitivity, ICLR 2019"
    structures = STRUCTURES

    def strengths(self, training: Training) -> Elements:
        """|∂L/∂m| for masks m = 1 on edges and weights."""
        edges, weights = self.gradient(training)
        by_mask = weights.mul_(flatten(training.weights).detach())
        return Elements(None if edges is None else edges.abs(), by_mask.abs_())
