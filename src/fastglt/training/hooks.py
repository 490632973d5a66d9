"""Where a method may reach into an epoch of training."""

from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from fastglt.training.loop import Training


class Hooks:
    """What a method may do within an epoch; by default nothing."""

    def wants_all_nodes(self, training: "Training") -> bool:
        """Whether the coming step computes every node's outputs (of other tasks: those of `Task.overview`), for
        `extra_loss`; the task's loss has its own.
        """
        return False

    def extra_loss(self, training: "Training", outputs: Tensor) -> Tensor | None:
        """What is added to the task's loss; the outputs are those of the step's targets, or everybody's."""
        return None

    def soften(self, training: "Training") -> tuple[Tensor | None, dict[str, Tensor]]:
        """The factors of all edges and the weights to compute with, where they differ from the network's own."""
        return training.soft_edge_mask, training.soft_weights

    def before_step(self, training: "Training") -> None:
        """Look at the gradients, or change them; those of pruned weights are still there.

        Where soft weight masks are trained, weights have none of their own: the optimiser takes the product's.
        """

    def findings(self, training: "Training") -> dict[str, Any]:
        """What a method has found out besides masks, as plain values for the ticket."""
        return {}

    def after_step(self, training: "Training") -> None:
        """Correct what the optimiser has done, before it is evaluated."""
