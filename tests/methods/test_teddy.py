import dataclasses
from typing import Any

import pytest
import torch

from fastglt import InputError
from fastglt.graphs.graph import Graph
from fastglt.masks import flatten, unflatten
from fastglt.methods import TEDDY, Budget, FixedMasks
from fastglt.models import GCN
from fastglt.training.loop import Training, train
from fastglt.training.outputs import network_outputs
from tests.helpers import BUDGET, both_ways, counts, method_of, randn, toy_task, training_of


def teddy(graph: float, weight: float, *, budget: Budget = BUDGET, **options: Any) -> TEDDY:
    method = method_of("teddy", graph, weight, budget=budget, **options)
    assert isinstance(method, TEDDY)
    return method


def taught(graph: float, weight: float, *, epochs: int = 0, **options: Any) -> tuple[Training, TEDDY]:
    """After the teacher and some epochs of the student."""
    training, method = training_of(), teddy(graph, weight, **options)
    method.begin(training)
    for _ in range(BUDGET.epochs + epochs):
        training.run_epoch(method)
        method.after_epoch(training)
    return training, method


class TestTeacher:
    def test_it_is_the_dense_network(self) -> None:
        training, method = training_of(), teddy(0.5, 0.9)
        method.begin(training)
        dense = training_of()
        best = train(dense, FixedMasks(budget=BUDGET))
        while training.epoch < BUDGET.epochs:
            training.run_epoch(method)
        assert training.best is not None
        assert training.best.scores == best.scores
        method.after_epoch(training)
        assert torch.equal(training.method_state["teacher"], network_outputs(dense, dense.best))

    def test_the_student_starts_from_the_initial_weights(self) -> None:
        training, _ = taught(0.5, 0.9)
        for name, value in GCN(12, 8, 3).state_dict().items():
            assert torch.equal(training.network.state_dict()[name], value)
        assert not training.optimizer.state
        assert training.best is None
        assert training.soft_edge_mask is None


class TestEdges:
    def test_the_lowest_scores_are_cut_at_one_stroke(self) -> None:
        # A hub, 0, with spokes to a path of 29 others: a spoke's score has the hub's degree of 29 in it.
        spokes, path = [(0, i) for i in range(1, 30)], [(i, i + 1) for i in range(1, 29)]
        graph = Graph.from_edge_index(both_ways([*spokes, *path]), num_nodes=30)
        training, method = training_of(task=dataclasses.replace(toy_task(), graph=graph)), teddy(29 / 57, 0.9)
        method.begin(training)
        for _ in range(BUDGET.epochs):
            training.run_epoch(method)
        method.after_epoch(training)
        assert torch.equal(training.masks.edges.kept, graph.edges[0] > 0)


class TestProjection:
    def test_the_largest_weights_of_all_layers_stay(self) -> None:
        training, method = taught(0.0, 0.9)
        sizes = torch.arange(120.0) * (-1.0) ** torch.arange(120)  # of layer 2 are the last 24
        with torch.no_grad():
            for name, part in unflatten(sizes, training.weights).items():
                training.weights[name].copy_(part)
        method.after_step(training)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert torch.equal(kept, torch.arange(120) >= 108)
        assert torch.equal(flatten(training.weights).detach(), sizes * kept)

    def test_a_weight_returns_as_soon_as_a_step_makes_it_large_enough(self) -> None:
        training, method = taught(0.0, 0.9)
        first, second = randn(120, seed=1), torch.zeros(120)
        with torch.no_grad():
            for name, part in unflatten(first, training.weights).items():
                training.weights[name].copy_(part)
        method.after_step(training)
        before = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        gone, weakest = int((~before).nonzero()[0]), int(first.abs().masked_fill(~before, 9).argmin())
        second[gone] = 1.01 * float(first[weakest].abs())
        with torch.no_grad():
            for name, part in unflatten(second, training.weights).items():
                training.weights[name].add_(part)
        method.after_step(training)
        after = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert (before ^ after).nonzero().flatten().tolist() == sorted([gone, weakest])

    def test_what_is_pruned_keeps_its_moments(self) -> None:
        training, _ = taught(0.5, 0.9, epochs=3)
        for name, mask in training.masks.weights.items():
            weight = training.weights[name]
            assert not weight[~mask.kept].any()
            assert bool((training.optimizer.state[weight]["exp_avg"][~mask.kept] != 0).any())

    def test_every_epoch_of_the_student_has_the_target_counts(self) -> None:
        training, _ = taught(0.5, 0.9, epochs=4)
        for record in training.history[BUDGET.epochs :]:
            assert (record.graph_sparsity, record.weight_sparsity) == (0.5, 0.9)
        assert counts(training.masks) == (30, 12)

    def test_weights_that_are_not_pruned_are_not_projected(self) -> None:
        training, _ = taught(0.5, 0.0, epochs=1)
        assert not training.regrow
        assert counts(training.masks) == (30, 120)

    def test_the_pruned_graph_is_prepared_once(self) -> None:
        training, method = taught(0.5, 0.9)
        graph = training.graph
        training.run_epoch(method)
        assert training.graph is graph


class TestDistillation:
    def test_the_student_is_taught_about_all_nodes(self) -> None:
        training, method = taught(0.5, 0.9, imitation=3.0)
        assert method.wants_all_nodes(training)
        logits = randn(30, 3, seed=5)
        extra = method.extra_loss(training, logits)
        assert extra is not None
        torch.testing.assert_close(extra, 3 * training.task.divergence(logits, training.method_state["teacher"]))

    def test_the_teacher_has_none_itself(self) -> None:
        training, method = training_of(), teddy(0.5, 0.9)
        method.begin(training)
        assert not method.wants_all_nodes(training)
        assert method.extra_loss(training, randn(12, 3)) is None

    def test_without_weight_there_is_none(self) -> None:
        training, method = taught(0.5, 0.9, imitation=0.0)
        assert not method.wants_all_nodes(training)
        assert method.extra_loss(training, randn(12, 3)) is None

    def test_it_brings_the_student_closer_to_the_teacher(self) -> None:
        distances = []
        for weight in (0.0, 10.0):
            training, _ = taught(0.3, 0.5, epochs=20, imitation=weight)
            training.network.eval()
            distances.append(
                float(training.task.divergence(training.outputs(None).detach(), training.method_state["teacher"]))
            )
        assert distances[1] < 0.7 * distances[0]


def test_stages_and_epochs() -> None:
    training, method = training_of(), teddy(0.5, 0.9)
    best = train(training, method)
    assert [record.stage for record in training.history] == ["teacher"] * 24 + ["student"] * 24
    assert method.epochs == 48
    student = training.history[24:]
    winner = max(student, key=lambda record: (record.val, -record.val_loss, -record.epoch))
    assert best.epoch == winner.epoch
    assert {r.epoch: r.edges_dropped for r in training.history if r.edges_dropped} == {24: 30}


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_a_negative_weight_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=rf"imitation must not be negative \(got {value}\)"):
        teddy(0.1, 0.1, imitation=value)
