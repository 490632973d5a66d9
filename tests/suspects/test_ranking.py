from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.suspects import rank_task_edges, ranking
from fastglt.suspects.learning import learn
from fastglt.suspects.opinions import likelihood, with_labels
from fastglt.suspects.reasons import reasons
from fastglt.tasks import NodeClassification
from tests.helpers import both_ways, toy_task
from tests.suspects.poisoned_task import poisoned

Case = tuple[NodeClassification, npt.NDArray[np.bool_], ranking.EdgeRanking]


@pytest.fixture(scope="module")
def case() -> Case:
    task, added = poisoned(120)
    return task, added, rank_task_edges(task, epochs=25)


def test_added_edges_come_first_and_are_counted(case: Case) -> None:
    _, added, found = case
    assert roc_auc_score(added, found.suspicion) > 0.9
    assert added[found.worst(int(added.sum())).numpy()].mean() > 0.6
    assert found.count == pytest.approx(added.sum(), rel=0.5)
    assert found.share == found.count / len(added)
    assert bool((found.suspicion[found.order].diff() <= 0).all())
    assert int(found.worst().sum()) == found.count


def test_test_labels_are_not_looked_at(case: Case) -> None:
    task, _, found = case
    y = task.y.clone()
    y[task.test] = (y[task.test] + 1) % 3
    again = rank_task_edges(replace(task, y=y), epochs=25)
    assert torch.equal(again.suspicion, found.suspicion)


def test_reasons_are_what_speaks_against_an_edge(case: Case) -> None:
    _, _, found = case
    worst = int(found.order[0])
    assert any("labelled end" in reason for reason in reasons(found, worst))
    best = int(found.order[-1])
    assert len(reasons(found, best)) < len(reasons(found, worst))


def test_a_ranking_by_another_metric_is_another() -> None:
    task, _ = poisoned(120)
    other = replace(task, metric="macro_f1")
    alone = rank_task_edges(other, epochs=5, rounds=1)
    by_accuracy = rank_task_edges(task, epochs=5, rounds=1)
    assert not torch.equal(alone.suspicion, by_accuracy.suspicion)
    assert torch.equal(rank_task_edges(other, epochs=5, rounds=1).suspicion, alone.suspicion)


def test_the_last_ranking_is_remembered_and_another_seed_is_another(case: Case) -> None:
    task, _, _ = case
    once = rank_task_edges(task, epochs=5, rounds=1)
    assert rank_task_edges(task, epochs=5, rounds=1) is once
    assert not torch.equal(rank_task_edges(task, epochs=5, rounds=1, seed=1).suspicion, once.suspicion)


def test_somebodys_predictions_stand_for_networks_along_edges(case: Case) -> None:
    task, added, _ = case
    true = torch.nn.functional.one_hot(task.y, 3).float()
    told = rank_task_edges(task, epochs=5, excess=False, shares=true)
    other = rank_task_edges(task, epochs=5, excess=False, shares=torch.full_like(true, 1 / 3))
    assert roc_auc_score(added, told.suspicion) > roc_auc_score(added, other.suspicion)


def test_learning_tells_edges_from_pairs_though_some_are_mixed_in() -> None:
    rng = np.random.default_rng(0)
    real, fake = rng.normal(2, 1, 300), rng.normal(0, 1, 60)
    given = {"likeness": np.concatenate([real, fake]), "noise": rng.normal(size=360)}
    drawn = {"likeness": rng.normal(0, 1, 600), "noise": rng.normal(size=600)}
    found = learn(given, drawn, np.full(360, np.log(60 / 300)))
    assert found.weights["likeness"] < -1 < abs(found.weights["noise"]) + 1 > 0
    assert abs(found.weights["noise"]) < 0.3
    assert found.suspicion.sum() == pytest.approx(60, rel=0.35)


def test_likelihood_by_hand() -> None:
    # Of 4 classes a pair agrees with 1/4; an edge with 0.7, and each other class has 0.1.
    np.testing.assert_allclose(np.exp(likelihood(np.array([1.0, 0.0]), 0.7, 4)), [2.8, 0.4])


def test_training_nodes_have_their_labels() -> None:
    task = toy_task()
    known = with_labels(torch.full((task.graph.num_nodes, task.num_outputs), 0.5), task)
    train = task.train.numpy()
    np.testing.assert_array_equal(known[train].argmax(1), task.y[task.train].numpy())
    assert set(known[train].ravel()) == {0.0, 1.0}


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"rounds": 0}, {"seed": -1}, {"epochs": 1.5}])
def test_bad_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        rank_task_edges(toy_task(), **wrong)


def test_rounds_are_refused_where_somebody_elses_predictions_stand_for_them(case: Case) -> None:
    task, _, _ = case
    shares = torch.full((task.graph.num_nodes, 3), 1 / 3)
    with pytest.raises(InputError, match=r"rounds must come without a ticket.*got 2 beside one"):
        rank_task_edges(task, epochs=5, rounds=2, shares=shares)
    with pytest.raises(InputError, match="rounds must be at least 1"):
        rank_task_edges(task, epochs=5, rounds=0)


def test_edges_that_are_all_alike_are_ranked_without_a_warning() -> None:
    """Evidence that is the same of all edges has no deviation to be told in."""
    nodes = torch.arange(6)
    task = replace(
        toy_task(),
        graph=Graph.from_edge_index(both_ways([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]), num_nodes=6),
        x=Features(torch.eye(6)),
        y=nodes // 3,
        train=nodes[::3],
        val=nodes[1::3],
        test=nodes[2::3],
    )
    for seed in range(3):
        found = rank_task_edges(task, seed=seed, epochs=3)
        assert bool(((found.suspicion >= 0) & (found.suspicion <= 1)).all())
        assert max(map(abs, found.weights.values())) < 100
