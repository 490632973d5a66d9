"""ACE-GLT (Wang et al., ECAI'23): UGS's rounds, each of which asks what it has pruned before it goes on."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fastglt.errors import require
from fastglt.masks import Mask, Masks
from fastglt.methods.base import best_soft_masks, get_masks, set_masks, swap_edges
from fastglt.methods.parts.ranking import swapped
from fastglt.methods.parts.rounds import MASK, Rounds
from fastglt.methods.parts.schedules import Swap
from fastglt.system.seeds import derive
from fastglt.training.loop import Training

ERASE = "erase"  # trains with what is kept erased
PARTS = ("edges", "weights")


@dataclass(frozen=True, kw_only=True)
class ACE(Rounds):
    """After each cut, soft masks are trained on the pruned complement, from Θ0 and with the same l1 pressure.

    Its best elements (largest |m| at its best epoch) then take the places of the weakest kept ones (smallest |m|
    at the round's own best epoch). How many is a share of the kept or of the pruned, whichever are fewer: at
    first little is pruned, in the end little is kept, and a swap is to stay small. The two masks come from
    different trainings, so their values are ranked, never compared. Edges, or a weight matrix, of which nothing
    has been pruned stay whole: their complement would cut the network in two.
    """

    name = "ace"
    summary = "UGS's rounds, with the best pruned elements swapped back after each cut"
    paper = "Wang et al., Adversarial Erasing with Pruned Elements: Towards Better Graph Lottery Ticket, ECAI 2023"

    erase_epochs: int = 100  # of mask training on the complement, in each round
    swap_share: float = 0.05  # of the kept or the pruned elements, whichever are fewer

    def __post_init__(self) -> None:
        super().__post_init__()
        require("be at least 1", erase_epochs=self.erase_epochs)
        require("lie in [0, 1]", swap_share=self.swap_share)

    @property
    def stages_of_a_round(self) -> tuple[str, ...]:
        """One more, right after the cut."""
        mask, *rest = super().stages_of_a_round
        return mask, ERASE, *rest

    def epochs_of(self, stage: str) -> int:
        """Erasing has a length of its own."""
        return self.erase_epochs if stage == ERASE else super().epochs_of(stage)

    def enter(self, training: Training, stage: str, number: int) -> None:
        """Erasing leaves the complement in force; the masks themselves are remembered."""
        if stage == ERASE:
            training.method_state |= dict(zip(PARTS, get_masks(training), strict=True))
            training.apply(_complement(training.masks))
        super().enter(training, stage, number)

    def leave(self, training: Training, stage: str, number: int) -> None:
        """What was cut by is remembered for the swap, which ends the erasing."""
        if stage == MASK:
            sizes = zip(PARTS, best_soft_masks(training), strict=True)
            training.method_state = {f"size of {part}": size for part, size in sizes if size is not None}
        super().leave(training, stage, number)
        if stage == ERASE:
            self._swap(training, number)
            training.method_state = {}

    def _swap(self, training: Training, number: int) -> None:
        """Exchange the weakest kept elements for the complement's best; the counts stay."""
        sizes = dict(zip(PARTS, best_soft_masks(training), strict=True))
        kept = {part: training.method_state[part].cpu() for part in PARTS}
        set_masks(training, **kept)
        for part, size in sizes.items():
            if size is not None:
                strength, seed = (
                    training.method_state[f"size of {part}"],
                    derive(training.seed, "swap", number, part),
                )
                count = self._count(kept[part])
                swap = Swap(drop=count, grow=count)
                given: dict[str, Any] = {"strength": strength, "potential": size, "seed": seed}
                if part == "edges":
                    kept[part] = swap_edges(training, kept[part], swap, **given)
                else:
                    kept[part] = swapped(kept[part], swap, **given)
        set_masks(training, **kept)

    def _count(self, kept: Tensor) -> int:
        """How many elements change places."""
        count = int(kept.count_nonzero())
        return int(self.swap_share * min(count, kept.numel() - count))


def _complement(masks: Masks) -> Masks:
    """What has been pruned; where that is nothing, everything."""
    weights = {name: _rest(mask) for name, mask in masks.weights.items()}
    return Masks(edges=_rest(masks.edges), weights=weights)


def _rest(mask: Mask) -> Mask:
    return mask if mask.count == mask.size else Mask(~mask.kept)
