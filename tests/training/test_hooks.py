import math

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from fastglt.models import GCN
from fastglt.system.seeds import derive
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from tests.helpers import node_task, train_loss, training_of
from tests.training.trainings import WithLoss, some_masks


class TestHooks:
    def test_an_extra_loss_sees_the_training_nodes_or_all_nodes(self) -> None:
        seen: list[tuple[int, ...]] = []

        class Looking(Hooks):
            def extra_loss(self, training: Training, logits: Tensor) -> None:
                seen.append(tuple(logits.shape))

        class LookingAtAll(Looking):
            def wants_all_nodes(self, training: Training) -> bool:
                return True

        one, other = (training_of(network=GCN(12, 8, 3, dropout=0.0)) for _ in range(2))
        one.run_epoch(Looking())
        other.run_epoch(LookingAtAll())
        assert seen == [(12, 3), (30, 3)]
        assert one.history[0].loss == pytest.approx(other.history[0].loss)  # the task's loss stays with its own
        for name, value in one.network.state_dict().items():
            torch.testing.assert_close(value, other.network.state_dict()[name])

    def test_all_nodes_may_be_wanted_in_one_epoch_and_not_in_another(self) -> None:
        seen: list[int] = []

        class Now(Hooks):
            def wants_all_nodes(self, training: Training) -> bool:
                return training.epoch == 1

            def extra_loss(self, training: Training, logits: Tensor) -> None:
                seen.append(len(logits))

        training = training_of()
        for _ in range(3):
            training.run_epoch(Now())
        assert seen == [12, 30, 12]

    def test_before_a_step_the_gradients_of_pruned_weights_are_there(self) -> None:
        found: dict[str, Tensor] = {}

        class Noting(Hooks):
            def before_step(self, training: Training) -> None:
                found.update({name: gradient_of(weight).clone() for name, weight in training.weights.items()})

        training = training_of(masks=some_masks())
        torch.manual_seed(derive(training.seed, "epoch", 0))
        training.network.train()
        loss = train_loss(training)
        expected = torch.autograd.grad(loss, list(training.weights.values()))
        training.run_epoch(Noting())
        for (name, gradient), dense in zip(found.items(), expected, strict=True):
            torch.testing.assert_close(gradient, dense)
            assert bool(gradient[~some_masks().weights[name].kept].any())

    def test_before_a_step_gradients_can_be_changed_but_pruned_weights_stay(self) -> None:
        class Pushing(Hooks):
            def before_step(self, training: Training) -> None:
                for parameter in training.network.parameters():
                    parameter.grad = torch.full_like(parameter, -1.0)

        training = training_of(masks=some_masks())
        training.begin_stage("push", weight_decay=0.0)
        before = {name: weight.detach().clone() for name, weight in training.weights.items()}
        training.run_epoch(Pushing())
        for name, weight in training.weights.items():  # Adam's first step is the learning rate
            kept = training.masks.weights[name].kept
            torch.testing.assert_close(weight.detach(), torch.where(kept, before[name] + 0.01, 0.0))

    def test_a_tensor_whose_gradient_is_taken_away_stays(self) -> None:
        class Holding(Hooks):
            def before_step(self, training: Training) -> None:
                training.weights["layer1.weight"].grad = None

        training, start = training_of(), GCN(12, 8, 3)
        training.run_epoch(Holding())
        assert torch.equal(training.weights["layer1.weight"], start.layer1.weight)
        assert not torch.equal(training.weights["layer2.weight"], start.layer2.weight)

    def test_after_a_step_weights_are_corrected_before_they_are_evaluated(self) -> None:
        class Zeroing(Hooks):
            def after_step(self, training: Training) -> None:
                with torch.no_grad():
                    for parameter in training.network.parameters():
                        parameter.zero_()

        training = training_of()
        training.run_epoch(Zeroing())
        assert training.history[0].val_loss == pytest.approx(math.log(3))  # it knows nothing
        assert training.best is not None
        assert not any(value.any() for value in training.best.state.values())

    def test_within_an_epoch_it_is_not_yet_counted(self) -> None:
        seen: list[int] = []

        class Counting(Hooks):
            def before_step(self, training: Training) -> None:
                seen.append(training.epoch)

            def after_step(self, training: Training) -> None:
                seen.append(training.epoch)

        training = training_of()
        training.run_epoch(Counting())
        training.run_epoch(Counting())
        assert seen == [0, 0, 1, 1]

    def test_what_is_computed_with_can_be_replaced(self) -> None:
        """In a step and in its evaluation alike; factors are those of all edges, pruned or not."""
        factors = torch.linspace(0.2, 1, 60)

        class Halving(Hooks):
            def soften(self, training: Training) -> tuple[Tensor | None, dict[str, Tensor]]:
                return factors, {"layer1.weight": training.weights["layer1.weight"] / 2}

        training, halved = training_of(masks=some_masks()), GCN(12, 8, 3)
        training.hooks = Halving()
        training.network.eval()
        with torch.no_grad():
            halved.layer1.weight.mul_(0.5)
        twin = training_of(network=halved, masks=some_masks())
        twin.network.eval()
        expected = twin.network(twin.task.x, twin.graph, factors[some_masks().edges.kept])
        torch.testing.assert_close(training.outputs(None), expected)
        training.run_epoch(Halving())
        training.network.eval()
        task, learnt = node_task(training), training.weights["layer1.weight"].detach()
        inputs = task.x, training.graph, factors[some_masks().edges.kept], task.val
        val = functional_call(training.network, {"layer1.weight": learnt / 2}, inputs).detach()
        assert training.history[0].val_loss == pytest.approx(float(task.label_loss(val, task.y[task.val])))
        assert not torch.equal(learnt, twin.weights["layer1.weight"] * 2)


def gradient_of(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


def test_an_extra_loss_is_added() -> None:
    plain, raised = training_of(), training_of()
    plain.run_epoch(Hooks())
    raised.run_epoch(WithLoss(lambda training, logits: logits.sum() * 0 + 5))
    assert raised.history[0].loss == pytest.approx(plain.history[0].loss + 5)
