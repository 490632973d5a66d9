"""DGLT (Wang et al., ICLR'23): the dual view. Choose a random ticket first, then make it a good one."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.errors import require
from fastglt.masks import unflatten
from fastglt.methods.base import STRUCTURES, Method, draw_lowest, set_masks, train_sparse
from fastglt.training.loop import Training

TRANSITION, TRAIN = "transition", "train"
_LEFT = 1e-3  # of a number that nothing but the penalty moves, after the transition


@dataclass(frozen=True, kw_only=True)
class DGLT(Method):
    """Press on everything outside a random ticket until what it knew has moved into the ticket, then drop it.

    The penalty is (λ/2)·‖·‖² on the weights and the soft edge mask outside, with a λ that grows. Adam divides a
    gradient by its own size, so the penalty's gradient would not shrink anything reliably: its proximal step is
    taken instead, a division by 1 + λ after the optimiser's step. The optimiser goes on outside, so of weights that
    the loss still asks for more than a thousandth is left, on Cora about a tenth. Weight decay is the ticket's from
    the start: outside, the penalty is decay enough.
    """

    name = "dglt"
    summary = "a random ticket, into which a growing penalty moves what the rest has learned"
    paper = "Wang et al., Searching Lottery Tickets in Graph Neural Networks: A Dual Perspective, ICLR 2023"
    structures = STRUCTURES

    transition: float = 0.2  # share of all epochs in which information moves

    def __post_init__(self) -> None:
        require("lie in (0, 1)", transition=self.transition)

    @property
    def transition_epochs(self) -> int:
        """How long the transition takes: at least an epoch, and one is left for the ticket."""
        return min(max(1, round(self.transition * self.epochs)), self.epochs - 1)

    def begin(self, training: Training) -> None:
        """Draw the ticket, and train everything."""
        edges, weights = draw_lowest(training, self.targets.graph_sparsity, self.targets.weight_sparsity)
        device = training.task.device
        training.method_state = {"edges": edges.to(device), "weights": weights.to(device)}
        train_sparse(training, self.targets, stage=TRANSITION)

    def after_step(self, training: Training) -> None:
        """Shrink what is outside the ticket."""
        if training.stage != TRANSITION or not training.ends_epoch:
            return
        shrink = 1 / (1 + penalty(training.epoch + 1, self.transition_epochs))
        if training.soft_edge_mask is not None:
            _shrink(training.soft_edge_mask, training.method_state["edges"], shrink)
        if self.targets.weight_sparsity > 0:
            for name, kept in unflatten(training.method_state["weights"], training.weights).items():
                _shrink(training.weights[name], kept, shrink)

    def after_epoch(self, training: Training) -> None:
        """After the transition, drop what is outside and train the ticket."""
        if training.epoch == self.transition_epochs:
            set_masks(training, training.method_state["edges"].cpu(), training.method_state["weights"].cpu())
            training.method_state = {}
            train_sparse(training, self.targets, stage=TRAIN)


def penalty(epoch: int, epochs: int) -> float:
    """The penalty's weight λ in an epoch (from 1): log(1 + λ) grows linearly, and a thousandth is left of a number.

    >>> [round(penalty(epoch, 2)) for epoch in (1, 2)]  # divides by 10, then by 100
    [9, 99]
    """
    return math.expm1(-math.log(_LEFT) * 2 * epoch / (epochs * (epochs + 1)))


@torch.no_grad()
def _shrink(values: Tensor, kept: Tensor, factor: float) -> None:
    values.mul_(torch.where(kept, 1.0, factor).to(values.dtype))
