"""GEBT (You et al., AAAI'22): early-bird tickets, drawn again and again until they no longer change."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.errors import require
from fastglt.masks import flatten
from fastglt.methods.base import STRUCTURES, Method, draw_lowest, set_masks, train_soft_masks, train_sparse
from fastglt.training.loop import Training

DRAW, TRAIN = "draw", "train"


@dataclass(frozen=True, kw_only=True)
class GEBT(Method):
    """Train soft masks, draw a ticket every few epochs, and train the first one that resembles the last few.

    Each of the two masks must have settled: taken together, a few thousand edges would have no say beside the
    weights. The distance of two masks is the share of all elements in which they differ, as published; beyond a
    sparsity of 0.95 any two are closer than 0.1, and the first full window ends the search unless `distance` is
    lowered. The ticket is trained from the weights it has.
    """

    name = "gebt"
    summary = "masks drawn while training until they settle, then their ticket trained on"
    paper = "You et al., Early-Bird GCNs, AAAI 2022"
    structures = STRUCTURES

    draw_every: int = 5  # epochs between two draws
    window: int = 5  # earlier draws that a new one is compared with
    distance: float = 0.1  # mean share of elements that differ from them, below which a mask has settled

    def __post_init__(self) -> None:
        require("be at least 1", draw_every=self.draw_every, window=self.window)
        require("lie in (0, 1]", distance=self.distance)

    @property
    def latest(self) -> int:
        """The epoch after which the ticket is drawn, settled or not: half of all."""
        return self.epochs // 2

    def begin(self, training: Training) -> None:
        """Train soft masks."""
        train_soft_masks(training, self.targets, stage=DRAW)

    def after_epoch(self, training: Training) -> None:
        """Draw; a ticket that has settled, or the last that there is time for, is trained on."""
        last = training.epoch == self.latest
        if training.stage != DRAW or (training.epoch % self.draw_every and not last):
            return
        drawn = self.draw(training)
        if last or self.settled(training, drawn):
            training.method_state = {}
            set_masks(training, *drawn.values())
            train_sparse(training, self.targets, stage=TRAIN)
        else:
            for name, mask in drawn.items():
                earlier = training.method_state.get(name, mask.new_empty(0, mask.numel())).to(mask.device)
                training.method_state[name] = torch.cat([earlier, mask.unsqueeze(0)])[-self.window :]

    def draw(self, training: Training) -> dict[str, Tensor]:
        """The masks that a cut of the smallest soft masks to the target would leave."""
        soft = training.soft_edge_mask
        edges, weights = draw_lowest(
            training,
            self.targets.graph_sparsity,
            self.targets.weight_sparsity,
            edges=None if soft is None else training.ranges.own(soft.detach()).abs(),
            weights=flatten(training.soft_weight_masks).detach().abs_() if training.soft_weight_masks else None,
        )
        return {"edges": edges, "weights": weights}

    def settled(self, training: Training, drawn: dict[str, Tensor]) -> bool:
        """Whether both masks are close to their last few, of which there must be enough."""
        return all(
            (earlier := training.method_state.get(name)) is not None
            and len(earlier) == self.window
            and mean_distance(earlier.to(mask.device), mask) < self.distance
            for name, mask in drawn.items()
        )


def mean_distance(earlier: Tensor, mask: Tensor) -> float:
    """The mean share of elements in which some masks, a row each, differ from another one.

    >>> mean_distance(torch.tensor([[True, False], [True, True]]), torch.tensor([True, True]))
    0.25
    """
    return int(torch.count_nonzero(earlier != mask)) / max(1, earlier.numel())
