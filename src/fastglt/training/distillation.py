"""Learning from a teacher: what a trained network says about every node is what another one imitates."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Teacher:
    """What a trained network says, and how much it counts beside the labels.

    How far a student is from it, the task says (`Task.divergence`).
    """

    outputs: Tensor  # of all nodes, or of the task's overview
    weight: float  # of the divergence from them in the loss
