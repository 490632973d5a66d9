from dataclasses import replace
from typing import Any

import pytest
import torch

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.tasks.inductive import hide
from tests.extending.regression import NodeRegression
from tests.helpers import both_ways, sparse_task, toy_task


def test_what_is_hidden_is_gone_with_its_edges() -> None:
    for task in (toy_task(), sparse_task()):
        found = hide(task, 0.1, seed=3)
        left = torch.ones(30, dtype=torch.bool)
        left[found.hidden] = False
        old = left.nonzero().squeeze(1)
        assert found.hidden.numel() == 3
        assert set(found.hidden.tolist()) <= set(task.test.tolist()), "nobody else has no other use"
        assert found.seen.graph.num_nodes == 27
        assert torch.equal(old[found.seen.graph.edges], task.graph.edges[:, found.old])
        assert torch.equal(found.seen.x.dense, task.x.dense[old])
        assert torch.equal(found.seen.y, task.y[old])
        assert torch.equal(old[found.seen.train], task.train)
        assert torch.equal(old[found.seen.val], task.val)
        assert sorted([*old[found.seen.test].tolist(), *found.whole.test.tolist()]) == task.test.tolist()
        assert found.facts == {
            "hidden_nodes": 3,
            "hidden_edges": 60 - found.seen.graph.num_edges,
            "new_test_nodes": 3,
        }


def test_nothing_of_a_hidden_node_is_left() -> None:
    """Other features, labels and edges of hidden nodes: the seen part is the same to the bit."""
    task = toy_task()
    found = hide(task, 0.1, seed=0)
    x, y = task.x.dense.clone(), task.y.clone()
    x[found.hidden], y[found.hidden] = 7.0, 2
    pairs = [tuple(pair) for pair in task.graph.edges.T.tolist() if not set(pair) & set(found.hidden.tolist())]
    alone = Graph.from_edge_index(both_ways(pairs), num_nodes=30)
    other = hide(replace(task, x=Features(x), y=y, graph=alone), 0.1, seed=0)
    assert other.seen.digests == found.seen.digests
    assert other.whole.digest != found.whole.digest


def test_the_seed_draws_and_kinds_are_hidden_in_proportion() -> None:
    task = replace(toy_task(), test=toy_task().test[:6])  # three test nodes are without use
    found = hide(task, 0.1, seed=0)
    assert found.facts["new_test_nodes"] == 2
    assert found.facts["hidden_nodes"] == 3
    assert torch.equal(found.hidden, hide(task, 0.1, seed=0).hidden)
    assert len({tuple(hide(task, 0.1, seed=seed).hidden.tolist()) for seed in range(5)}) > 1


def test_masks_of_seen_edges_on_the_whole_graph() -> None:
    found = hide(toy_task(), 0.1, seed=0)
    seen = found.seen.graph.num_edges
    mask = Mask(torch.arange(seen) % 2 == 0)
    every, none = found.extend(mask), found.extend(mask, torch.zeros(60, dtype=torch.bool))
    assert torch.equal(every.kept[found.old], mask.kept)
    assert bool(every.kept[found.new_edges].all())
    assert none.count == mask.count
    soft = found.extend_soft(torch.arange(seen).float(), mask)
    assert soft is not None
    assert torch.equal(soft[found.old], torch.arange(seen).float())
    mean = torch.arange(seen).float()[mask.kept].mean()
    torch.testing.assert_close(soft[found.new_edges], mean.expand(60 - seen))


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (0.0, r"inductive must lie in \(0, 1\)"),
        (0.01, "must hide some test nodes and leave some"),
        (0.3, "must hide some test nodes and leave some"),
        (0.9, "hides no training or validation nodes"),
    ],
)
def test_shares_that_cannot_be(share: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hide(toy_task(), share, seed=0)


def test_a_class_that_only_hidden_nodes_have_is_refused() -> None:
    task = toy_task()
    hidden = hide(task, 0.1, seed=0).hidden
    y = task.y.clone()
    y[hidden[0]] = 3
    with pytest.raises(InputError, match="must have every one of the 4 classes"):
        hide(replace(task, y=y), 0.1, seed=0)


def test_other_tasks_on_nodes() -> None:
    task = toy_task()
    split: dict[str, Any] = {name: getattr(task, name) for name in ("train", "val", "test")}
    found = hide(NodeRegression(graph=task.graph, x=task.x, y=task.y.float(), metric="r2", **split), 0.1, seed=0)
    assert found.seen.y.numel() == 27
