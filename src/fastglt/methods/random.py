"""Random: the floor every method must beat."""

from dataclasses import dataclass

from fastglt.methods.base import STRUCTURES, Method, cut_random, train_sparse
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class RandomPruning(Method):
    """Remove edges and weights uniformly at random to the exact target, then train from Θ0."""

    name = "random"
    summary = "edges and weights drawn at random: the floor every method must beat"
    structures = STRUCTURES

    def begin(self, training: Training) -> None:
        """Draw the masks; nothing happens between epochs."""
        cut_random(training, self.targets.graph_sparsity, self.targets.weight_sparsity)
        train_sparse(training, self.targets, stage="train")
