"""Which numbers a dropout zeroes, as three words."""

from typing import NamedTuple

import torch


class Drop(NamedTuple):
    """Zero where the 32-bit hash of (key, row, column) is below the threshold; multiply the rest by the scale."""

    key: int
    threshold: int
    scale: float

    @staticmethod
    def draw(p: float, *, training: bool) -> "Drop | None":
        """With a key from PyTorch's default generator, so that `torch.manual_seed` decides; None: drop nothing."""
        if not training or p == 0:
            return None
        threshold = round(p * 2**32)
        return Drop(int(torch.randint(2**62, ()).item()), threshold, 1 / (1 - threshold / 2**32))
