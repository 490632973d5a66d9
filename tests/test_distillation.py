import math

import pytest
import torch

from fastglt.distillation import distillation_loss, outputs_at_best
from fastglt.hooks import Hooks
from tests.helpers import randn, training_of


def test_the_loss_by_hand() -> None:
    # Node 0: the teacher says (3/4, 1/4), the student (1/2, 1/2); node 1: they agree.
    teacher = torch.tensor([[math.log(3), 0.0], [1.0, 2.0]])
    student = torch.tensor([[5.0, 5.0], [1.0, 2.0]])
    divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert float(distillation_loss(student, teacher)) == pytest.approx(divergence / 2)


def test_the_teacher_leads() -> None:
    """What the teacher is sure of counts: KL is not symmetric, and its gradient is student − teacher."""
    teacher, student = randn(4, 3, seed=1), randn(4, 3, seed=2).requires_grad_()
    distillation_loss(student, teacher).backward()  # type: ignore[no-untyped-call]
    assert student.grad is not None
    torch.testing.assert_close(student.grad, (student.softmax(-1) - teacher.softmax(-1)).detach() / 4)


def test_outputs_are_those_of_the_best_epoch_for_all_nodes() -> None:
    training = training_of()
    for _ in range(3):
        training.run_epoch(Hooks())
    assert training.best is not None
    training.best.state["layer2.bias"].copy_(torch.tensor([1.0, 2.0, 3.0]))  # tells it from the last epoch
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    outputs = outputs_at_best(training)
    twin = training_of()
    twin.network.load_state_dict(training.best.state)
    twin.network.eval()
    assert torch.equal(outputs, twin.logits(None).detach())
    assert outputs.shape == (30, 3)
    assert not outputs.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in training.network.state_dict().items())
