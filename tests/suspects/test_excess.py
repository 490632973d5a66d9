import numpy as np
import numpy.typing as npt
import pytest

from fastglt.suspects.excess import FLOOR, Excess, tells
from fastglt.tasks import NodeClassification
from tests.suspects.poisoned_task import poisoned


def labelled_nodes(task: NodeClassification) -> npt.NDArray[np.bool_]:
    labelled = np.zeros(task.graph.num_nodes, dtype=np.bool_)
    labelled[task.train.numpy()] = True
    return labelled


def test_edges_added_at_labelled_nodes_are_too_many_there() -> None:
    task, added = poisoned(300)
    found = Excess.of(task.graph.edges.numpy(), labelled_nodes(task))
    assert found.excess.sum() == pytest.approx(300, rel=0.5)
    assert found.odds[added].min() > found.odds[found.ends == 0].max()


def test_a_clean_graph_has_none_and_all_edges_the_same_odds() -> None:
    task, _ = poisoned(0)
    found = Excess.of(task.graph.edges.numpy(), labelled_nodes(task))
    assert found.excess.tolist() == [0, 0, 0]
    np.testing.assert_allclose(found.odds, np.log(FLOOR / (1 - FLOOR)))


def test_nobody_looks_if_told_so_or_if_most_nodes_are_labelled() -> None:
    task, _ = poisoned(300)
    labelled = labelled_nodes(task)
    assert Excess.of(task.graph.edges.numpy(), labelled, look=False).excess.tolist() == [0, 0, 0]
    assert not tells(~labelled)
    assert not tells(np.zeros(5, dtype=np.bool_))
