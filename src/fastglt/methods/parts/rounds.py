"""Rounds: train soft masks, cut a share of what is left, rewind to Θ0, train the ticket, and again.

What UGS, WD-GLT and ACE-GLT have in common. Each mask stops at its own target; every round's ticket is kept.
"""

from dataclasses import dataclass, replace

import torch

from fastglt.errors import require
from fastglt.methods.base import Method, cut_smallest, train_soft_masks
from fastglt.methods.parts.schedules import RoundSchedule
from fastglt.system.seeds import derive, uniform
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe

MASK, TRAIN = "mask", "train"
_NOISE = 1e-5  # tells masks apart that nothing has moved


@dataclass(frozen=True, kw_only=True)
class Rounds(Method):
    """The base of iterative methods: a round is a few stages of so many epochs each."""

    edge_share: float = 0.05  # of the remaining edges, removed in a round
    weight_share: float = 0.2  # of the remaining weights, removed in a round
    round_epochs: int = 200  # of mask training, and as many of the ticket alone
    search_lr: float = 0.01  # Adam's, of the search
    search_weight_decay: float = 5e-4  # of the search
    edge_l1: float = 1e-2  # pressure on soft edge masks
    weight_l1: float = 1e-2  # pressure on soft weight masks
    train_rounds: bool = True  # train every round's ticket, not the last one's alone

    def __post_init__(self) -> None:
        require("be a whole number", round_epochs=self.round_epochs)
        require("be at least 1", round_epochs=self.round_epochs)
        require("lie in (0, 1)", edge_share=self.edge_share, weight_share=self.weight_share)
        require("be positive", search_lr=self.search_lr)
        require("not be negative", search_weight_decay=self.search_weight_decay)
        require("not be negative", edge_l1=self.edge_l1, weight_l1=self.weight_l1)

    @property
    def recipe(self) -> Recipe:
        """The search's own learning rate and decay."""
        return replace(self.budget.recipe, lr=self.search_lr, weight_decay=self.search_weight_decay)

    @property
    def rounds(self) -> int:
        """How many rounds reach both targets, at least one."""
        return max(1, *(schedule.rounds for schedule in self._schedules()))

    @property
    def stages(self) -> tuple[tuple[int, str, int], ...]:
        """Every stage of the search: its round (from 1), its name, and the epoch it ends with."""
        found: list[tuple[int, str, int]] = []
        for number in range(1, self.rounds + 1):
            names = self.stages_of_a_round
            for name in names if self.train_rounds or number == self.rounds else names[:-1]:
                found.append((number, name, (found[-1][2] if found else 0) + self.epochs_of(name)))
        return tuple(found)

    @property
    def stages_of_a_round(self) -> tuple[str, ...]:
        """Their names; the last one trains the round's ticket."""
        return MASK, TRAIN

    def epochs_of(self, stage: str) -> int:
        """How long a stage takes."""
        return self.round_epochs

    @property
    def epochs(self) -> int:
        """All stages together."""
        return self.stages[-1][2]

    def begin(self, training: Training) -> None:
        """Enter the first stage."""
        self.enter(training, self.stages[0][1], 1)

    def after_epoch(self, training: Training) -> None:
        """Where a stage ends, leave it and enter the next."""
        stages = self.stages
        at = next((place for place, (_, _, end) in enumerate(stages) if end == training.epoch), None)
        if at is not None:
            number, name, _ = stages[at]
            self.leave(training, name, number)
            if at + 1 < len(stages):
                number, name, _ = stages[at + 1]
                self.enter(training, name, number)

    def enter(self, training: Training, stage: str, number: int) -> None:
        """Begin a stage of a round, from Θ0."""
        training.rewind()
        if stage == TRAIN:
            training.begin_stage(TRAIN, target=(training.masks.edges.count, training.masks.weights_kept))
        else:
            train_soft_masks(training, self.targets, stage=stage, l1=(self.edge_l1, self.weight_l1))
            _stir(training, number)

    def leave(self, training: Training, stage: str, number: int) -> None:
        """End a stage of a round: cut what is left to the round's sparsity, or keep the round's ticket."""
        if stage == MASK:
            cut_smallest(training, *(schedule.sparsity(number) for schedule in self._schedules()))
        elif stage == TRAIN:
            training.end_round(number)

    def _schedules(self) -> tuple[RoundSchedule, RoundSchedule]:
        """How the edges' and the weights' sparsity grow."""
        return (
            RoundSchedule(target=self.targets.graph_sparsity, share=self.edge_share),
            RoundSchedule(target=self.targets.weight_sparsity, share=self.weight_share),
        )


def _stir(training: Training, number: int) -> None:
    """Move fresh soft masks off 1 by a little noise."""
    edges = {} if training.soft_edge_mask is None else {"edges": training.soft_edge_mask}
    with torch.no_grad():
        for name, mask in {**edges, **training.soft_weight_masks}.items():
            seed = derive(training.seed, "mask", number, name)
            mask.add_(uniform(tuple(mask.shape), _NOISE, seed).to(mask.device))
