import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Masks
from fastglt.methods import Budget
from fastglt.models import GCN
from fastglt.tasks import NodeClassification
from fastglt.tickets.phases import teacher_of, train_fixed
from fastglt.training.distillation import Teacher
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs
from tests.helpers import BUDGET, columns, drop, method_of, node_task, randn, toy_task, training_of


def test_the_loss_by_hand() -> None:
    # Node 0: the teacher says (3/4, 1/4), the student (1/2, 1/2); node 1: they agree.
    teacher = torch.tensor([[math.log(3), 0.0], [1.0, 2.0]])
    student = torch.tensor([[5.0, 5.0], [1.0, 2.0]])
    divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert float(toy_task().divergence(student, teacher)) == pytest.approx(divergence / 2)


def test_the_teacher_leads() -> None:
    """What the teacher is sure of counts: KL is not symmetric, and its gradient is student − teacher."""
    teacher, student = randn(4, 3, seed=1), randn(4, 3, seed=2).requires_grad_()
    toy_task().divergence(student, teacher).backward()  # type: ignore[no-untyped-call]
    assert student.grad is not None
    torch.testing.assert_close(student.grad, (student.softmax(-1) - teacher.softmax(-1)).detach() / 4)


def test_outputs_are_those_of_the_best_epoch_for_all_nodes() -> None:
    training = training_of()
    for _ in range(3):
        training.run_epoch(Hooks())
    assert training.best is not None
    training.best.state["layer2.bias"].copy_(torch.tensor([1.0, 2.0, 3.0]))  # tells it from the last epoch
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    outputs = network_outputs(training, training.best)
    twin = training_of()
    twin.network.load_state_dict(training.best.state)
    twin.network.eval()
    assert torch.equal(outputs, twin.outputs(None).detach())
    assert outputs.shape == (30, 3)
    assert not outputs.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in training.network.state_dict().items())


def taught(teacher: Teacher | None, *, masks: Masks | None = None) -> Training:
    network = GCN(12, 8, 3, dropout=0.0)
    return Training(network, toy_task(), BUDGET.recipe, seed=0, masks=masks, teacher=teacher)


class Watches(Hooks):
    """Keeps the gradients, and what an extra loss is shown."""

    def __init__(self, *, everybody: bool = False) -> None:
        self.gradients: dict[str, Tensor] = {}
        self.shown: list[int] = []
        self.everybody = everybody

    def wants_all_nodes(self, training: Training) -> bool:
        return self.everybody

    def extra_loss(self, training: Training, logits: Tensor) -> None:
        self.shown.append(len(logits))

    def before_step(self, training: Training) -> None:
        named = training.network.named_parameters()
        self.gradients = {name: part.grad.clone() for name, part in named if part.grad is not None}


class TestTraining:
    teacher = Teacher(outputs=randn(30, 3, seed=4), weight=2.5)

    def test_gradients_are_those_of_the_labels_and_of_all_nodes_by_autograd(self) -> None:
        training, watch = taught(self.teacher), Watches()
        twin, task = GCN(12, 8, 3, dropout=0.0), node_task(training)
        outputs = twin(task.x, task.graph)
        said = self.teacher.outputs.softmax(-1)
        apart = (said * (said.log() - outputs.log_softmax(-1))).sum(-1).mean()
        loss = task.label_loss(outputs[task.train], task.y[task.train]) + 2.5 * apart
        loss.backward()
        training.run_epoch(watch)
        assert training.history[0].loss == pytest.approx(float(loss.detach()))
        for name, part in twin.named_parameters():
            torch.testing.assert_close(watch.gradients[name], part.grad, rtol=1e-4, atol=1e-6)

    def test_the_loss_of_a_bias_by_hand(self) -> None:
        """Two nodes, two classes, zero weights: outputs are the bias, gradients softmax minus what is said."""
        task = NodeClassification(
            graph=Graph.from_edge_index(columns([]), num_nodes=2),
            x=Features(torch.ones(2, 1)),
            y=torch.tensor([0, 1]),
            train=torch.tensor([0]),
            val=torch.tensor([1]),
            test=torch.tensor([1]),
        )
        network = GCN(1, 1, 2, dropout=0.0)
        for weight in network.parameters():
            weight.data.zero_()
        outputs = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]])  # (3/4, 1/4) and (1/2, 1/2)
        teacher, watch = Teacher(outputs=outputs, weight=2.0), Watches()
        training = Training(network, task, BUDGET.recipe, seed=0, teacher=teacher)
        training.run_epoch(watch)
        divergence = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / 2
        assert training.history[0].loss == pytest.approx(math.log(2) + 2 * divergence)
        # labels: (1/2 − 1, 1/2); teacher: 2 · ((1/2, 1/2) − (3/4, 1/4)) / 2 nodes
        torch.testing.assert_close(watch.gradients["layer2.bias"], torch.tensor([-0.75, 0.75]))

    def test_a_method_is_shown_what_it_asked_for(self) -> None:
        for teacher in (None, self.teacher):
            few, all_of_them = Watches(), Watches(everybody=True)
            for watch in (few, all_of_them):
                taught(teacher).run_epoch(watch)
            assert (few.shown, all_of_them.shown) == ([12], [30])

    def test_every_stage_is_taught(self) -> None:
        """A teacher with all the weight is imitated in stages with soft masks and in those without."""
        method = method_of("fastglt", 0.3, 0.5)
        plain, other = (taught(teacher) for teacher in (None, replace(self.teacher, weight=100.0)))
        for training in (plain, other):
            method.begin(training)
            while not method.finished(training):
                training.run_epoch(method)
                method.after_epoch(training)
        assert {record.stage for record in other.history} >= {"oneshot", "denoise"}
        assert all(one.loss < two.loss for one, two in zip(plain.history, other.history, strict=True))

    def test_nothing_is_asked_of_all_nodes_without_a_teacher(self) -> None:
        asked: list[Tensor | None] = []

        class Asked(Training):
            def outputs(self, nodes: Tensor | None) -> Tensor:
                asked.append(nodes)
                return super().outputs(nodes)

        Asked(GCN(12, 8, 3), toy_task(), BUDGET.recipe, seed=0).run_epoch(Hooks())
        assert asked
        assert all(nodes is not None for nodes in asked)


def test_a_teacher_is_the_network_at_its_best_epoch() -> None:
    """Under its masks, whatever the last epoch left, and without touching the caller's random numbers."""
    network, task, budget = GCN(12, 8, 3), toy_task(), replace(BUDGET, distill=3.0)
    masks = Masks(edges=drop(60, 1, 5), weights=Masks.full(60, network.weight_shapes).weights)
    result = train_fixed("dense", network, task, budget, seed=0, masks=masks)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    teacher = teacher_of(result.best, network, task, budget, seed=0)
    assert torch.equal(torch.rand(1), expected)
    twin = GCN(12, 8, 3).eval()
    twin.load_state_dict(result.best.state)
    assert torch.equal(teacher.outputs, twin(task.x, task.graph.prune(masks.edges)).detach())
    assert (teacher.weight, teacher.outputs.requires_grad) == (3.0, False)


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_a_weight_must_not_be_negative(weight: float) -> None:
    with pytest.raises(InputError, match=rf"distill must not be negative \(got {weight}\)"):
        Budget(distill=weight)


def test_a_budget_speaks_of_a_teacher_only_where_there_is_one() -> None:
    assert "distill" not in Budget().settings
    assert Budget(**Budget(distill=2.0).settings) == Budget(distill=2.0)


class TestHowATeacherTeaches:
    """The parts of the loss by hand, of two nodes; the student is undecided."""

    said = torch.tensor([[2 * math.log(3), 0.0], [0.0, 0.0]])
    student = torch.zeros(2, 2)

    def test_temperature(self) -> None:
        """At temperature 2 the teacher's first answer is (3/4, 1/4); the square of 2 keeps the gradient's size."""
        teacher = Teacher(outputs=self.said, weight=3.0, temperature=2.0)
        divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
        assert float(teacher.divergence(toy_task(), self.student)) == pytest.approx(3 * 4 * divergence / 2)

    def test_nodes(self) -> None:
        """Taught about the second node alone, on which they agree; about the first, twice the mean of both."""
        both, first, second = (
            float(Teacher(outputs=self.said, weight=1.0, nodes=nodes).divergence(toy_task(), self.student))
            for nodes in (None, torch.tensor([0]), torch.tensor([1]))
        )
        assert second == pytest.approx(0, abs=1e-7)
        assert first == pytest.approx(2 * both)

    def test_labels(self) -> None:
        """Without labels only the teacher's part is left; with half of them, half of theirs."""
        outputs = randn(30, 3, seed=4)
        losses = {}
        for labels in (0.0, 0.5, 1.0):
            training = taught(Teacher(outputs=outputs, weight=2.0, labels=labels))
            training.run_epoch(Hooks())
            losses[labels] = training.history[0].loss
        assert losses[0.5] == pytest.approx((losses[0.0] + losses[1.0]) / 2)
        assert losses[0.0] < losses[1.0]

    def test_unlabelled_nodes_are_all_but_those_trained_on(self) -> None:
        task = toy_task()
        assert sorted([*task.unlabelled.tolist(), *task.train.tolist()]) == list(range(30))

    def test_scaling_both_weights_and_the_decay_changes_nothing(self) -> None:
        """Adam does not see a loss's size: 100 times the teacher with 100 times the decay is labels / 100."""
        outputs, weights = randn(30, 3, seed=4), []
        for factor, labels in ((100.0, 1.0), (1.0, 0.01)):
            recipe = replace(BUDGET.recipe, weight_decay=5e-4 * factor)
            teacher = Teacher(outputs=outputs, weight=factor, labels=labels)
            training = Training(GCN(12, 8, 3, dropout=0.0), toy_task(), recipe, seed=0, teacher=teacher)
            for _ in range(3):
                training.run_epoch(Hooks())
            weights.append(training.network.get_parameter("layer1.weight").detach())
        torch.testing.assert_close(*weights, rtol=1e-3, atol=1e-5)
