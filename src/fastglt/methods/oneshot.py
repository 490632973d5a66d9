"""One-shot: stage 1 of FastGLT straight to the target, then training under the fixed masks."""

from dataclasses import dataclass

from fastglt.methods.base import STRUCTURES, Method, cut_smallest, train_soft_masks, train_sparse
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class OneShot(Method):
    """The baseline that shows what denoising adds."""

    name = "oneshot"
    summary = "learned masks cut straight to the target, no denoising"
    structures = STRUCTURES

    def begin(self, training: Training) -> None:
        """Train soft masks."""
        train_soft_masks(training, self.targets)

    def after_epoch(self, training: Training) -> None:
        """Cut once."""
        if training.epoch == self.budget.oneshot_epochs:
            cut_smallest(training, self.targets.graph_sparsity, self.targets.weight_sparsity)
            train_sparse(training, self.targets, stage="train")
