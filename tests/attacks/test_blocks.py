from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fastglt import InputError
from fastglt.attacks.blocks import AttackSettings, _keys, _Search, attack_task_edges, project
from fastglt.attacks.surrogate import Pattern, Surrogate
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import GCN
from fastglt.tasks import NodeClassification
from tests.helpers import both_ways, randn, toy_task
from tests.suspects.poisoned_task import poisoned

QUICK: dict[str, Any] = {"steps": 8, "fresh": 5, "block": 4000, "width": 8, "epochs": 20}


def tiny() -> NodeClassification:
    """Eight nodes on a ring, two classes."""
    nodes = torch.arange(8)
    return NodeClassification.from_tensors(
        {
            "x": randn(8, 5),
            "y": nodes % 2,
            "edge_index": both_ways([(i, (i + 1) % 8) for i in range(8)]),
            "train_mask": nodes < 3,
            "val_mask": (nodes >= 3) & (nodes < 5),
            "test_mask": nodes >= 5,
        }
    )


def dense_outputs(network: GCN, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
    """Two layers by dense matrices, norms by the sums of the weights."""
    with_loops = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)
    scale = with_loops.sum(1).rsqrt()
    norm = scale[:, None] * with_loops * scale
    one, two = network.layer1, network.layer2
    hidden = (norm @ (x @ one.weight) + one.bias).relu()
    return norm @ (hidden @ two.weight) + two.bias


def test_the_surrogate_is_the_network_where_edges_are_whole() -> None:
    task = toy_task()
    network = GCN(task.x.num_features, 6, task.num_outputs, seed=1).eval()
    edges = task.graph.edges
    found = Surrogate.of(network, task).outputs(Pattern.of(edges, task.graph.num_nodes), torch.ones(edges.shape[1]))
    with torch.no_grad():
        torch.testing.assert_close(found, network(task.x, task.graph, None, None))


def test_gradients_by_all_pairs_are_those_of_dense_matrices_and_of_differences() -> None:
    task = tiny()
    network = GCN(5, 4, 2, seed=3)
    search = _Search(task, Surrogate.of(network, task), 2, AttackSettings(block=1000))
    assert len(search._block) == 8 * 7 // 2  # every pair there is
    search._change = torch.linspace(0.05, 0.6, 28)
    loss, slope = search._slope()
    source, target = search._pairs(search._block)
    there = torch.isin(search._block, _keys(task.graph.edges, 8))
    x = task.x.dense.double()
    double = GCN(5, 4, 2, seed=3).double()

    def dense_loss(change: torch.Tensor) -> torch.Tensor:
        adjacency = torch.zeros(8, 8, dtype=torch.float64)
        value = torch.where(there, 1 - change, change)
        adjacency = adjacency.index_put((source, target), value).index_put((target, source), value)
        return search._loss(dense_outputs(double, x, adjacency))

    change = search._change.double().requires_grad_()
    expected = dense_loss(change)
    (wanted,) = torch.autograd.grad(expected, change)
    assert loss == pytest.approx(float(expected.detach()), abs=1e-5)
    torch.testing.assert_close(slope.double(), wanted, atol=1e-5, rtol=1e-3)
    for pair in (0, 9, 27):  # brute force
        step = torch.zeros(28, dtype=torch.float64)
        step[pair] = 1e-5
        with torch.no_grad():
            difference = (dense_loss(change + step) - dense_loss(change - step)) / 2e-5
        assert float(slope[pair]) == pytest.approx(float(difference), abs=1e-4)


def test_the_budget_is_kept_exactly_and_the_loss_rises() -> None:
    task, _ = poisoned(0)
    found = attack_task_edges(task, rate=0.1, settings=AttackSettings(**QUICK))
    budget = round(0.1 * task.graph.num_edges)
    assert found.added.shape[1] + found.removed.shape[1] == budget
    assert found.edges.shape[1] == task.graph.num_edges + found.added.shape[1] - found.removed.shape[1]
    before, after = (set(map(tuple, edges.T.tolist())) for edges in (task.graph.edges, found.edges))
    assert after - before == set(map(tuple, found.added.T.tolist()))
    assert before - after == set(map(tuple, found.removed.T.tolist()))
    assert all(a < b for a, b in after)
    assert found.loss_after > found.loss_before
    assert found.wrong_after > 0.02


@pytest.mark.parametrize(("rate", "block"), [(0.5, 10), (0.5, 500), (1.0, 1)])
def test_the_budget_is_kept_where_the_block_that_was_asked_for_is_smaller(rate: float, block: int) -> None:
    task, _ = poisoned(0)
    found = attack_task_edges(task, rate=rate, settings=AttackSettings(**{**QUICK, "block": block}))
    assert found.added.shape[1] + found.removed.shape[1] == round(rate * task.graph.num_edges)


def test_every_edge_of_a_graph_that_has_all_of_them_can_be_changed() -> None:
    nodes = torch.arange(100)
    graph = Graph.from_edge_index(torch.triu_indices(100, 100, 1), 100, directed=False)
    task = replace(tiny(), graph=graph, x=Features(randn(100, 5)), y=nodes % 2)
    for seed in range(2):  # what is drawn from all pairs misses some in the end
        settings = AttackSettings(**{**QUICK, "block": 10_000, "seed": seed})
        found = attack_task_edges(task, rate=1.0, settings=settings)
        assert (found.added.shape[1], found.removed.shape[1]) == (0, 100 * 99 // 2)


def test_a_seed_decides_everything_and_test_labels_nothing() -> None:
    task, _ = poisoned(0)
    settings = AttackSettings(**QUICK, seed=4)
    one = attack_task_edges(task, rate=0.05, settings=settings)
    y = task.y.clone()
    y[task.test] = 0
    same = NodeClassification(graph=task.graph, x=task.x, y=y, train=task.train, val=task.val, test=task.test)
    assert torch.equal(attack_task_edges(same, rate=0.05, settings=settings).edges, one.edges)
    other = attack_task_edges(task, rate=0.05, settings=AttackSettings(**QUICK, seed=5))
    assert not torch.equal(other.edges, one.edges)


def test_projection_is_the_nearest_point_of_the_simplex_with_bounds() -> None:
    change = torch.from_numpy(np.random.default_rng(0).normal(0.4, 0.6, 50))
    found = project(change, 5)
    assert float(found.sum()) == pytest.approx(5)
    inner = (found > 0) & (found < 1)
    shift = (change - found)[inner]
    torch.testing.assert_close(shift, shift[:1].expand_as(shift))  # all moved by the same
    assert project(torch.tensor([0.2, -1.0, 2.0]), 5).tolist() == pytest.approx([0.2, 0.0, 1.0])


@pytest.mark.parametrize("rate", [0, 1.5, 1e-6])
def test_a_rate_that_changes_nothing_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="rate must"):
        attack_task_edges(tiny(), rate=rate)
