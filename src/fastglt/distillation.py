"""Learning from a teacher: what a trained network says about every node is what another one imitates."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import kl_div

if TYPE_CHECKING:
    from fastglt.records import Snapshot
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


def class_scores(training: "Training", at: "Snapshot | None" = None, *, whole: bool = False) -> Tensor:
    """The class scores of all nodes by the network as it is, or as it was at some epoch, which is left as it is.

    It is the pruned graph, or the whole. That epoch's soft weight masks count; edge scores do not.
    """
    network, graph = training.network, training.task.graph if whole else training.graph
    now = {name: value.clone() for name, value in network.state_dict().items()}
    if at is not None:
        soft = {name: at.state[name] * score for name, score in at.weight_score.items()}
        network.load_state_dict({**at.state, **soft})
    network.eval()
    with torch.no_grad():
        found: Tensor = network(training.task.x, graph, None, None)
    network.load_state_dict(now)
    return found
