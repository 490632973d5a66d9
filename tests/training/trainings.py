"""Masks and losses that several tests of training share."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from fastglt.masks import Mask, Masks
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from tests.helpers import drop, randn

Loss = Callable[[Any, Tensor], Tensor | None]


class WithLoss(Hooks):
    """Adds a loss to the task's."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def extra_loss(self, training: Training, logits: Tensor) -> Tensor | None:
        return self.loss(training, logits)


def some_masks() -> Masks:
    """Drops 5 of 60 edges and about half of the weights."""
    halves = {"layer1.weight": randn(12, 8, seed=1) > 0, "layer2.weight": randn(8, 3, seed=2) > 0}
    return Masks(edges=drop(60, 0, 7, 20, 21, 59), weights={name: Mask(kept) for name, kept in halves.items()})


WIDTHS = {"layer1.weight": (12, 8), "layer2.weight": (8, 3)}
