"""Learning from a teacher: what a trained network says about every node is what another one imitates."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import kl_div

if TYPE_CHECKING:
    from fastglt.training import Training


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


def outputs_at_best(training: "Training") -> Tensor:
    """The class scores of all nodes at a stage's best epoch, whose hard masks are still in force; no soft ones."""
    best, network = training.best, training.network
    assert best is not None, "the teacher has been trained"
    assert (best.edge_score, best.weight_score) == (None, {}), "soft masks would be those of the last epoch"
    now = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(best.state)
    network.eval()
    with torch.no_grad():
        outputs = training.logits(None)
    network.load_state_dict(now)
    return outputs
