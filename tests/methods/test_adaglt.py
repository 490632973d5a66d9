import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import flatten, unflatten
from fastglt.methods import AdaGLT, Budget
from fastglt.methods.adaglt import UNIT, edge_strengths, step
from fastglt.models import GCN
from fastglt.training.loop import Training, train
from tests.helpers import BUDGET, both_ways, columns, counts, method_of, randn, toy_task, training_of

LAYERS = ("weights/layer1.weight", "weights/layer2.weight")


def adaglt(graph: float, weight: float, *, budget: Budget = BUDGET, **options: Any) -> AdaGLT:
    method = method_of("adaglt", graph, weight, budget=budget, **options)
    assert isinstance(method, AdaGLT)
    return method


def set_values(training: Training, **values: Any) -> None:
    """Give tensors that are trained other values; an underscore stands for the slash in their names."""
    with torch.no_grad():
        for name, value in values.items():
            training.extra[name.replace("_", "/", 1)].copy_(torch.as_tensor(value))


class TestStep:
    def test_by_hand(self) -> None:
        margins = torch.tensor([-2.0, -0.5, -0.1, 0.0, 0.1, 0.4, 1.0, 1.5], requires_grad=True)
        kept = step(margins)
        assert kept.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        (3 * kept).sum().backward()  # type: ignore[no-untyped-call]
        assert margins.grad is not None
        assert margins.grad.tolist() == pytest.approx([0, 1.2, 4.8, 6, 4.8, 1.2, 1.2, 0])


def one_feature(pairs: Tensor) -> Training:
    """Four nodes with features 0, 1, 2 and 4."""
    nodes = torch.arange(4)
    task = dataclasses.replace(
        toy_task(),
        graph=Graph.from_edge_index(pairs, num_nodes=4),
        x=Features(torch.tensor([[0.0], [1.0], [2.0], [4.0]])),
        y=nodes % 2,
        train=nodes[:2],
        val=nodes[2:3],
        test=nodes[3:],
    )
    return training_of(network=GCN(1, 2, 2), task=task)


class TestEdgeScores:
    PAIRS = ((0, 1), (0, 2), (1, 2), (2, 3))  # sums of both ends' features: 1, 2, 3, 6

    def scored(self, pairs: Tensor, ends: list[float], bias: float = 0.0) -> tuple[Training, AdaGLT]:
        """A scorer of one hidden unit, with chosen weights."""
        training, method = one_feature(pairs), adaglt(0.5, 0.0, edge_hidden=1)
        method.begin(training)
        set_values(training, scorer_ends=[ends], scorer_bias=[bias], scorer_out=[1.0])
        return training, method

    def test_both_ends_count_alike(self) -> None:
        training, _ = self.scored(both_ways(self.PAIRS), [1.0])
        deviation = math.sqrt((4 + 1 + 0 + 9) / 4)
        expected = [value / (3 * deviation) for value in (-2, -1, 0, 3)]  # 1, 2, 3, 6 have the mean 3
        assert edge_strengths(training).tolist() == pytest.approx(expected)

    def test_a_hidden_unit_is_silent_below_zero(self) -> None:
        training, _ = self.scored(both_ways(self.PAIRS), [1.0], bias=-2.5)  # -1.5, -0.5, 0.5 and 3.5
        scores = edge_strengths(training).detach()
        assert scores[0] == scores[1]
        assert float((scores[3] - scores[0]) / (scores[2] - scores[0])) == pytest.approx(7)

    def test_tail_and_head_of_an_arrow_count_by_themselves(self) -> None:
        training, _ = self.scored(columns([*self.PAIRS, (1, 0)]), [1.0, 10.0])
        # In order 0→1, 0→2, 1→0, 1→2, 2→3: tail + 10·head.
        raw = torch.tensor([10.0, 20, 1, 21, 42])
        torch.testing.assert_close(edge_strengths(training), (raw - raw.mean()) / (3 * raw.std(correction=0)))

    def test_the_lowest_scores_go(self) -> None:
        training, method = self.scored(both_ways(self.PAIRS), [-1.0], bias=9.0)  # 8, 7, 6, 3
        set_values(training, edges=0.0)
        training.epoch = method.epochs // 2
        method.after_epoch(training)
        assert training.masks.edges.kept.tolist() == [True, True, False, False]

    def test_gradients_add_up_in_the_same_order_every_time(self) -> None:
        """Also where several threads do it: equal runs stay equal."""
        drawn = torch.randint(2000, (2, 20_000), generator=torch.Generator().manual_seed(0))
        graph = Graph.from_edge_index(torch.cat([drawn, drawn.flip(0)], 1), num_nodes=2000)
        task = dataclasses.replace(toy_task(), graph=graph, x=Features(randn(2000, 12)))
        training = training_of(task=task)
        adaglt(0.5, 0.0).begin(training)
        ends, weight, before = training.extra["scorer/ends"], randn(graph.num_edges), torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            first, *others = (torch.autograd.grad(edge_strengths(training) @ weight, ends)[0] for _ in range(10))
        finally:
            torch.set_num_threads(before)
        assert all(torch.equal(first, other) for other in others)

    def test_edges_without_any_difference_have_scores(self) -> None:
        training, _ = self.scored(both_ways(self.PAIRS), [0.0])
        assert edge_strengths(training).tolist() == [0, 0, 0, 0]


def by_hand(weight_sparsity: float = 0.5, **options: Any) -> tuple[Training, AdaGLT]:
    """Eight weights of a known size and thresholds of 0.5 and 0.1; what is trained is the threshold itself."""
    training = training_of(
        network=GCN(2, 2, 2), task=dataclasses.replace(toy_task(), x=Features(toy_task().x.dense[:, :2]))
    )
    method = adaglt(0.0, weight_sparsity, threshold_lr=BUDGET.lr, **options)
    method.begin(training)
    training.method_state[UNIT] = torch.tensor(1.0)
    sizes = torch.tensor([0.55, -0.2, 0.9, -0.45, 0.3, 0.05, -0.15, 0.0])
    with torch.no_grad():
        for name, part in unflatten(sizes, training.weights).items():
            training.weights[name].copy_(part)
        for name, threshold in zip(LAYERS, (0.5, 0.1), strict=True):
            training.extra[name].fill_(threshold)
    return training, method


class TestWeights:
    def test_each_layer_has_a_threshold_of_its_own(self) -> None:
        training, method = by_hand()
        _, weights = method.soften(training)
        kept = flatten(weights).tolist()
        assert kept == pytest.approx([0.55, 0, 0.9, 0, 0.3, 0, -0.15, 0])

    def test_gradients_reach_weights_and_thresholds_past_the_step(self) -> None:
        training, method = by_hand()
        _, weights = method.soften(training)
        flatten(weights).sum().backward()  # type: ignore[no-untyped-call]
        # d(w·step)/dw = step + |w|·(2 − 4·| |w| − t |), d/dt = −w·(2 − 4·| |w| − t |), here for w = 0.55 and −0.2
        gradient = training.weights["layer1.weight"].grad
        assert gradient is not None
        assert gradient.flatten()[:2].tolist() == pytest.approx([1 + 0.55 * 1.8, 0.2 * 0.8])
        threshold = training.extra[LAYERS[1]].grad
        assert threshold is not None
        assert float(threshold) == pytest.approx(-(0.3 * 1.2 + 0.05 * 1.8 - 0.15 * 1.8))

    def test_what_lies_farthest_below_its_threshold_is_cut(self) -> None:
        # |w| − t: 0.05 −0.3 0.4 −0.05 | 0.2 −0.05 0.05 −0.1, so of 0.55 and 0.3 the smaller stays.
        training, method = by_hand(weight_sparsity=0.75)
        training.epoch = method.epochs // 2
        method.after_epoch(training)
        kept = flatten({name: mask.kept for name, mask in training.masks.weights.items()})
        assert kept.tolist() == [False, False, True, False, True, False, False, False]

    def test_close_enough_is_cut_to_the_exact_count(self) -> None:
        training, method = by_hand(weight_sparsity=0.6, tolerance=0.11)  # 4 of 8 are below, 5 are to go
        method.after_epoch(training)
        assert training.stage == "train"
        assert counts(training.masks) == (60, 3)
        assert (training.extra, training.method_state, training.soft_edge_mask) == ({}, {}, None)

    def test_too_far_from_the_target_is_not_cut(self) -> None:
        training, method = by_hand(weight_sparsity=0.6, tolerance=0.09)
        method.after_epoch(training)
        assert training.stage == "search"
        assert counts(training.masks) == (60, 8)


class TestPressure:
    def test_thresholds_are_raised_while_too_little_is_pruned(self) -> None:
        training, method = by_hand(weight_sparsity=0.75, pressure=2.0)  # half is pruned
        training.extra[LAYERS[1]].grad = torch.tensor(0.3)
        method.before_step(training)
        first, second = (training.extra[name].grad for name in LAYERS)
        assert first is not None
        assert second is not None
        assert float(first) == pytest.approx(-2 * math.exp(-0.5))
        assert float(second) == pytest.approx(0.3 - 2 * math.exp(-0.1))

    def test_enough_pruned_thresholds_are_left_to_the_loss_without_momentum(self) -> None:
        training, method = by_hand(weight_sparsity=0.5)
        for name in LAYERS:
            training.optimizer.state[training.extra[name]] = {"step": torch.ones(())}
        kept = training.weights["layer1.weight"]
        training.optimizer.state[kept] = {"step": torch.ones(())}
        method.before_step(training)
        assert list(training.optimizer.state) == [kept]
        assert all(training.extra[name].grad is None for name in LAYERS)

    def test_edges_have_a_target_of_their_own(self) -> None:
        training, method = training_of(), adaglt(0.5, 0.9)
        method.begin(training)
        set_values(training, edges=1e3)  # every edge is below
        method.before_step(training)
        assert training.extra["edges"].grad is None
        assert all(training.extra[name].grad is not None for name in LAYERS)


class TestStages:
    def test_little_is_pruned_at_first(self) -> None:
        training, method = training_of(), adaglt(0.5, 0.9)
        method.begin(training)
        assert method.progress(training) == {"edges": (0, 0.5), "weights/": (0, 0.9)}

    def test_thresholds_that_move_reach_the_targets(self) -> None:
        training = training_of()
        train(training, adaglt(0.5, 0.5, threshold_lr=0.1, tolerance=0.1))
        stages = [record.stage for record in training.history]
        searched = stages.count("search")
        assert 3 < searched < 12
        assert stages == ["search"] * searched + ["train"] * (24 - searched)
        assert [record.epoch for record in training.history if record.edges_dropped] == [searched]

    def test_half_of_the_epochs_is_the_latest(self) -> None:
        training = training_of()
        best = train(training, adaglt(0.5, 0.9, threshold_lr=1e-6))
        assert [record.stage for record in training.history] == ["search"] * 12 + ["train"] * 12
        assert best.epoch > 12
        assert counts(best.masks) == (30, 12)

    def test_a_mask_with_target_zero_is_not_trained(self) -> None:
        training = training_of()
        adaglt(0.0, 0.5).begin(training)
        assert set(training.extra) == set(LAYERS)
        training = training_of()
        adaglt(0.5, 0.0).begin(training)
        assert set(training.extra) == {"edges", "scorer/ends", "scorer/bias", "scorer/out"}

    def test_the_seed_decides_the_scorer(self) -> None:
        ends = []
        for seed in (1, 1, 2):
            training = training_of(seed=seed)
            adaglt(0.5, 0.0).begin(training)
            ends.append(training.extra["scorer/ends"].detach())
        assert torch.equal(ends[0], ends[1])
        assert not torch.equal(ends[0], ends[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pressure": 0.0}, r"pressure must be positive \(got 0.0\)"),
        ({"threshold_lr": -1.0}, r"threshold_lr must be positive \(got -1.0\)"),
        ({"tolerance": float("nan")}, r"tolerance must be positive \(got nan\)"),
        ({"edge_hidden": 0}, r"edge_hidden must be at least 1 \(got 0\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        adaglt(0.1, 0.1, **options)
