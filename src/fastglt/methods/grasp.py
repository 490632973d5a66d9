"""GraSP (Wang et al., ICLR'20): keep what the gradient flow at Θ0 depends on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.masks import flatten, unflatten
from fastglt.methods.base import STRUCTURES
from fastglt.methods.parts.saliency import Elements, Saliency
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class GraSP(Saliency):
    """Removes the largest −w·(Hg), whose removal hurts the squared norm of the weights' gradient g least.

    That norm is how fast the loss falls when training begins. Only weights are trained then, so for edges too it is
    the weights' gradient that counts: an edge's strength is −m·(Hg) with m = 1 and the rows of H that belong to
    edge masks. Logits are taken as they are, without the paper's temperature.
    """

    name = "grasp"
    summary = "prunes at initialisation what the gradient flow needs least"
    paper = "Wang et al., Picking Winning Tickets Before Training by Preserving Gradient Flow, ICLR 2020"
    structures = STRUCTURES

    def strengths(self, training: Training) -> Elements:
        """m·(Hg) of edges and w·(Hg) of weights: the lowest go."""
        edges, weights = self.hessian_times_gradient(training)
        return Elements(edges, weights.mul_(flatten(training.weights).detach()))

    def hessian_times_gradient(self, training: Training) -> Elements:
        """Hg by central differences of the gradient along g: a model need not be differentiable twice.

        The step is the cube root of the numbers' precision (0.005 in float32), in units of the weights' norm:
        there rounding and curvature of the gradient do about equal harm.
        """
        weights, gradient = flatten(training.weights).detach(), self.gradient(training).weights
        length = float(gradient.norm())
        step = torch.finfo(weights.dtype).eps ** (1 / 3) * float(weights.norm()) / length if length > 0 else 0.0
        ahead, behind = (
            self.gradient(training, unflatten(weights + way * gradient, training.weights)) for way in (step, -step)
        )

        def slope(ahead: Tensor, behind: Tensor) -> Tensor:
            return ahead.sub_(behind).div_(2 * step or 1.0)

        edges = None if ahead.edges is None or behind.edges is None else slope(ahead.edges, behind.edges)
        return Elements(edges, slope(ahead.weights, behind.weights))
