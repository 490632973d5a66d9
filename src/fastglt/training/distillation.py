"""Learning from a teacher: what a trained network says about every node is what another one imitates."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import kl_div


@dataclass(frozen=True, eq=False, kw_only=True)
class Teacher:
    """What a trained network says, and how much it counts beside the labels."""

    outputs: Tensor  # class scores of all nodes
    weight: float  # of KL(teacher ‖ student) in the loss

    def loss(self, student: Tensor) -> Tensor:
        """What is added to the loss of a student with these class scores of all nodes."""
        return self.weight * distillation_loss(student, self.outputs)


def distillation_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """KL(teacher ‖ student) of two networks' class scores, the mean over nodes."""
    return kl_div(student.log_softmax(-1), teacher.log_softmax(-1), reduction="batchmean", log_target=True)
