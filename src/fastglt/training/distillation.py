"""Learning from a teacher: what a trained network says about every node is what another one imitates."""

from dataclasses import dataclass, replace

from torch import Tensor

from fastglt.graphs.parts import Part
from fastglt.tasks.base import Task


@dataclass(frozen=True, eq=False, kw_only=True)
class Teacher:
    """What a trained network says, and how much it counts beside the labels.

    How far a student is from it, the task says (`Task.divergence`). Adam takes no notice of a loss that is
    multiplied by a number, but the weight decay does: ten times both weights is a tenth of the decay.
    """

    outputs: Tensor  # of all nodes, or of the task's overview
    weight: float  # of the divergence from them in the loss
    temperature: float = 1.0  # both sides' outputs are divided by it: above 1 they are less sure
    labels: float = 1.0  # weight of the task's own loss beside it; 0: the teacher alone
    nodes: Tensor | None = None  # whom it teaches about; None: everybody

    def within(self, task: Task, part: Part) -> "Teacher | None":
        """The teacher of a part of the graph: what it says of the part's nodes, or pairs; None: nothing."""
        if task.overview is None:
            rows, inside = part.nodes, None
            if self.nodes is not None:
                inside = part.numbers_of(self.nodes[part.holds(self.nodes)])
        else:
            rows, inside = part.holds(task.overview).all(-1).nonzero().squeeze(1), None
        if not len(rows if inside is None else inside):
            return None
        return replace(self, outputs=self.outputs[rows], nodes=inside)

    def divergence(self, task: Task, outputs: Tensor) -> Tensor:
        """How far a student's outputs for all nodes are from what the teacher says, times its weight.

        The square of the temperature keeps the gradient's size.
        """
        student, said = (part if self.nodes is None else part[self.nodes] for part in (outputs, self.outputs))
        if self.temperature != 1:
            student, said = student / self.temperature, said / self.temperature
        return self.weight * self.temperature**2 * task.divergence(student, said)
