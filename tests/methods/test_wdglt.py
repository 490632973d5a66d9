import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.masks import flatten
from fastglt.methods import WDGLT
from fastglt.methods.parts.transport import sinkhorn
from fastglt.methods.wdglt import draw
from fastglt.models import GCN
from fastglt.training.loop import Training
from tests.helpers import method_of, node_task, randn, training_of
from tests.methods.references import by_hand, flat, kept_weights

CERTAIN = 50.0  # a logit that leaves the other classes nothing
APART = math.sqrt(2)  # between two certain nodes of different classes


def wdglt(graph: float = 0.5, weight: float = 0.5, **options: Any) -> WDGLT:
    method = method_of("wdglt", graph, weight, **{"edge_share": 0.9, "weight_share": 0.9, **options})
    assert isinstance(method, WDGLT)
    return method


def certain(*classes: int, of: int = 3) -> Tensor:
    """Class scores of nodes that are sure of their classes."""
    return CERTAIN * torch.nn.functional.one_hot(torch.tensor(classes), of).float()


def masks_begun(method: WDGLT) -> Training:
    training = training_of()
    method.begin(training)
    return training


class TestLoss:
    def loss(self, logits: Tensor, **options: Any) -> float:
        method = wdglt(**options)
        value = method.extra_loss(masks_begun(method), logits)
        assert value is not None
        return float(value)

    def test_classes_that_are_certain_are_as_far_apart_as_can_be(self) -> None:
        assert self.loss(certain(0, 0, 1, 1)) == pytest.approx(-0.1 * 2 * APART)
        assert self.loss(certain(0, 1, 2, 2, 2)) == pytest.approx(-0.1 * 3 * APART)

    def test_it_counts_by_its_weight(self) -> None:
        assert self.loss(certain(0, 1, 2), transport=0.5) == pytest.approx(-0.5 * 3 * APART)
        off = wdglt(transport=0.0)
        assert off.extra_loss(masks_begun(off), certain(0, 1, 2)) is None
        assert not off.wants_all_nodes(masks_begun(off))

    def test_outputs_are_probabilities(self) -> None:
        # Nodes of (3/4, 1/4) and (1/4, 3/4): √(1/4 + 1/4) apart, in both classes' eyes.
        logits = torch.tensor([[math.log(3), 0.0], [0.0, math.log(3)]])
        assert self.loss(logits) == pytest.approx(-0.1 * 2 * math.sqrt(0.5))

    def test_every_class_stands_against_all_the_rest(self) -> None:
        logits = randn(40, 3, seed=3)
        outputs, predicted = logits.softmax(-1), logits.argmax(-1)
        sides = [(outputs[predicted == c], outputs[predicted != c]) for c in range(3)]
        assert all(len(side) > 3 for pair in sides for side in pair)
        expected = sum(float(sinkhorn(*pair, eps=1e-3, iterations=10)) for pair in sides)
        assert self.loss(logits) == pytest.approx(-0.1 * expected, rel=1e-4)
        slack = sum(float(sinkhorn(*pair, eps=0.1, iterations=3)) for pair in sides)
        assert self.loss(logits, transport_eps=0.1, transport_iterations=3) == pytest.approx(-0.1 * slack, rel=1e-4)
        assert slack != pytest.approx(expected, rel=1e-2)

    def test_a_class_that_nobody_is_predicted_as_is_left_out(self) -> None:
        assert self.loss(certain(0, 0, 1, 1, of=7)) == pytest.approx(-0.1 * 2 * APART)

    def test_one_class_for_everybody_has_no_distance(self) -> None:
        method = wdglt()
        assert method.extra_loss(masks_begun(method), certain(1, 1, 1)) is None

    def test_the_gradient_drives_classes_apart(self) -> None:
        method, logits = wdglt(), torch.tensor([[0.1, 0.0], [0.0, 0.1]], requires_grad=True)
        value = method.extra_loss(masks_begun(method), logits)
        assert value is not None
        value.backward()  # type: ignore[no-untyped-call]
        assert logits.grad is not None
        assert torch.equal(-logits.grad.sign(), torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))  # a step makes both surer


class TestDraw:
    def test_at_most_so_many_nodes_a_side(self) -> None:
        # Node 0 of class 0 is sure, the others are not: with one node a side the distance depends on the draw.
        logits = torch.cat([certain(0, of=2), certain(1, of=2), randn(200, 2)])
        method = wdglt(transport_nodes=1)
        training, values = masks_begun(method), []
        for epoch in range(20):
            training.epoch = epoch
            values.append(method.extra_loss(training, logits))
            again = method.extra_loss(training, logits)
            assert again is not None
            assert torch.equal(again, values[-1])  # type: ignore[arg-type]
        found = {round(float(value), 6) for value in values if value is not None}
        assert len(found) == 20  # drawn anew in every epoch
        assert all(-0.1 * 2 * APART <= value < 0 for value in found)

    def test_the_seed_decides(self) -> None:
        logits, method = randn(200, 3), wdglt(transport_nodes=5)
        one, again, other = (method.extra_loss(begun_with(method, seed), logits) for seed in (0, 0, 1))
        assert one == again != other

    def test_only_wanted_nodes_are_real_and_none_twice(self) -> None:
        wanted, order = randn(4, 50) > torch.tensor([[2.5], [1.0], [0.0], [-9.0]]), torch.randperm(50) + 100
        nodes, real = draw(wanted, order, 8)
        for row in range(4):
            chosen = nodes[row][real[row]].tolist()
            assert chosen == order[wanted[row]].tolist()[:8]
        assert nodes.shape == (4, 8)


def begun_with(method: WDGLT, seed: int) -> Training:
    training = training_of(seed=seed)
    method.begin(training)
    return training


class TestStages:
    def test_the_distances_count_while_masks_are_trained_and_need_all_nodes(self) -> None:
        method = wdglt(round_epochs=1)
        training = masks_begun(method)
        assert (training.stage, method.wants_all_nodes(training)) == ("mask", True)
        training.run_epoch(method)
        method.after_epoch(training)
        assert (training.stage, method.wants_all_nodes(training)) == ("train", False)
        assert method.extra_loss(training, certain(0, 1, 2)) is None

    def test_the_loss_is_the_tasks_plus_the_distances_of_all_nodes(self) -> None:
        training, method = training_of(network=GCN(12, 8, 3, dropout=0.0)), wdglt()
        method.begin(training)
        logits, task = training.outputs(None).detach(), node_task(training)
        distances = method.extra_loss(training, logits)
        assert distances is not None
        training.run_epoch(method)
        expected = float(task.label_loss(logits[task.train], task.y[task.train]) + distances)
        assert training.history[0].loss == pytest.approx(expected, rel=1e-5)


class TestRobustness:
    """The gradients of `references.by_hand`: −2, 2, 0 in the edges' masks, −2 0 / −1 3 in those of the weights."""

    def after_an_epoch(self, **options: Any) -> tuple[Training, WDGLT]:
        training, method = by_hand(), wdglt(1 / 3, 0.25, round_epochs=1, transport=0.0, **options)
        method.begin(training)
        training.run_epoch(method)
        return training, method

    def test_edges_ascend_within_zero_and_one_while_weights_descend(self) -> None:
        training, method = self.after_an_epoch()
        assert training.soft_edge_mask is not None
        assert training.soft_edge_mask.tolist() == pytest.approx([0.99, 1.0, 1.0], abs=2e-5)
        assert bool((training.soft_edge_mask <= 1).all())
        assert flatten(training.soft_weight_masks).tolist() == pytest.approx([1.01, 1.0, 1.01, 0.99], abs=2e-5)
        method.after_epoch(training)
        assert flat(training.masks.edges) == [False, True, True]  # the one whose loss hurts most
        assert kept_weights(training) == [True, True, True, False]

    def test_an_l1_term_still_pulls_towards_zero(self) -> None:
        training, _ = self.after_an_epoch(edge_l1=0.1)
        assert training.soft_edge_mask is not None
        assert training.soft_edge_mask.tolist() == pytest.approx([0.99, 1.0, 0.99], abs=2e-5)  # 2.1, −1.9, 0.1

    def test_masks_do_not_fall_below_zero(self) -> None:
        training, method = self.after_an_epoch()
        assert training.soft_edge_mask is not None
        with torch.no_grad():
            training.soft_edge_mask.copy_(torch.tensor([-0.5, 0.25, 1.5]))
        method.after_step(training)
        assert training.soft_edge_mask.tolist() == [0.0, 0.25, 1.0]


def test_it_has_no_l1_term_of_its_own() -> None:
    assert (WDGLT().edge_l1, WDGLT().weight_l1) == (0, 0)


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("transport", -0.1, "transport must not be negative"),
        ("transport_eps", 0.0, "transport_eps must be positive"),
        ("transport_iterations", 0, "transport_iterations must be positive"),
        ("transport_nodes", 0, "transport_nodes must be positive"),
        ("round_epochs", 0, "round_epochs must be at least 1"),
    ],
)
def test_impossible_options_are_refused(option: str, value: float, rule: str) -> None:
    with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
        wdglt(**{option: value})
