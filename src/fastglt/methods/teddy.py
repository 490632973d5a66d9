"""TEDDY (Seo et al., ICLR'24): edges by their degrees at one stroke, weights by projection, a dense teacher."""

from dataclasses import dataclass

from torch import Tensor

from fastglt.errors import require
from fastglt.masks import Masks, flatten, weight_masks
from fastglt.methods.base import Method, cut_lowest, train_sparse
from fastglt.methods.parts.ranking import edge_peripherality, highest, keep_among
from fastglt.system.seeds import derive
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs

TEACHER, STUDENT = "teacher", "student"


@dataclass(frozen=True, kw_only=True)
class TEDDY(Method):
    """Train the dense network; cut the edges in its middle; train a student of it from Θ0, projected at every step.

    No mask is trained. After each step only as many weights stay as the target allows, the largest of all layers
    (a projection onto the l0 ball); the others start again from zero with the moments that they have, and return
    when a step makes them large enough. The student imitates the teacher's outputs for all nodes.
    """

    name = "teddy"
    summary = "edges cut by degrees, weights by projection at every step, taught by the dense network"
    paper = "Seo et al., TEDDY: Trimming Edges with Degree-based Discrimination strategY, ICLR 2024"

    imitation: float = 5.0  # weight of KL(teacher ‖ student) in the loss [lambda]

    def __post_init__(self) -> None:
        require("not be negative", imitation=self.imitation)

    @property
    def epochs(self) -> int:
        """The teacher's and as many of the student."""
        return 2 * self.budget.epochs

    def begin(self, training: Training) -> None:
        """Train the teacher, dense."""
        training.begin_stage(TEACHER)

    def after_epoch(self, training: Training) -> None:
        """Remember what the teacher says, cut the edges, and go back to Θ0."""
        if training.epoch == self.budget.epochs:
            training.method_state = {
                TEACHER: network_outputs(training, training.best, targets=training.task.overview)
            }
            strength = edge_peripherality(training.task.graph)
            cut_lowest(training, self.targets.graph_sparsity, 0.0, edges=strength)
            training.rewind()
            regrow = self.targets.weight_sparsity > 0
            train_sparse(training, self.targets, stage=STUDENT, soft_edges=False, regrow=regrow)

    def wants_all_nodes(self, training: Training) -> bool:
        """The student is taught about all of them."""
        return training.stage == STUDENT and self.imitation > 0

    def extra_loss(self, training: Training, outputs: Tensor) -> Tensor | None:
        """How far the student is from its teacher."""
        if not self.wants_all_nodes(training):
            return None
        return self.imitation * training.task.divergence(outputs, training.method_state[TEACHER])

    def after_step(self, training: Training) -> None:
        """Project the student's weights."""
        if training.stage == STUDENT and training.regrow:
            sizes, (_, count) = flatten(training.weights).detach().abs_().cpu(), self.targets.kept(training)
            kept = highest(sizes, count, derive(training.seed, "project", training.epoch))
            training.apply(Masks(edges=training.masks.edges, weights=weight_masks(kept, training.weights)))

    def keep_new_edges(self, training: Training, new: Tensor, count: int, *, seed: int) -> Tensor:
        """By the same strength, on the graph as it is now."""
        return keep_among(new, edge_peripherality(training.task.graph).cpu(), count, seed)
