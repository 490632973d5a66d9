"""Many labels a node: the loss, OGB's score, what outputs mean, and what is refused."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch_geometric.data import Data

from fastglt import InputError
from fastglt.tasks import MultiLabel, NodeClassification, check_metric, kind_of, name_for
from fastglt.tasks.metrics import mean_roc_auc
from tests.helpers import both_ways

NAN = float("nan")
LABELS = torch.tensor([[0.0, 1], [1, 0], [1, 1], [0, 0], [1, 0], [0, NAN], [7, 7]])


def bools(*where: int) -> Tensor:
    return torch.zeros(7, dtype=torch.bool).index_fill_(0, torch.tensor(where), True)


def data_with(**changes: Any) -> Data:
    """Seven nodes, two labels; the last node is in no part of the split and has labels without meaning."""
    parts: dict[str, Any] = {
        "x": torch.eye(7),
        "y": LABELS,
        "edge_index": both_ways([(0, 1), (1, 2), (5, 6)]),
        "train_mask": bools(0, 1),
        "val_mask": bools(2, 3),
        "test_mask": bools(4, 5),
    }
    return Data(**parts | changes)


@pytest.fixture
def task() -> MultiLabel:
    return MultiLabel.from_data(data_with())


def by_hand(outputs: Tensor, labels: Tensor) -> float:
    """OGB's rule with scikit-learn's area."""
    areas = []
    for scores, column in zip(outputs.T, labels.T, strict=True):
        known = ~column.isnan()
        if (column == 1).any() and (column == 0).any():
            areas.append(roc_auc_score(column[known], scores[known]))
    return sum(areas) / len(areas) if areas else NAN


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6), st.sampled_from([0.0, 0.3]), st.booleans())
def test_the_score_is_ogbs(seed: int, rows: int, columns: int, unknown: float, ties: bool) -> None:
    draws = torch.Generator().manual_seed(seed)
    outputs = torch.randn(rows, columns, generator=draws)
    outputs = outputs.round() if ties else outputs
    labels = (torch.rand(rows, columns, generator=draws) < 0.3).float()
    labels[torch.rand(rows, columns, generator=draws) < unknown] = NAN
    assert mean_roc_auc(outputs, labels) == pytest.approx(by_hand(outputs, labels), nan_ok=True)


def test_the_score_worked_out_by_hand() -> None:
    labels = torch.tensor([[1.0, 0, 1], [0, 0, NAN], [1, 0, 0], [0, 0, 1]])
    outputs = torch.tensor([[0.9, 5, 1.0], [0.5, 5, 9.0], [0.5, 5, 1.0], [0.1, 5, 3.0]])
    # label 0: 0.9 beats both, 0.5 ties with one and beats the other; label 1 nobody has; label 2: one tie, one win
    assert mean_roc_auc(outputs, labels) == pytest.approx((3.5 / 4 + 1.5 / 2) / 2)
    assert mean_roc_auc(outputs.fill_(NAN), labels) == 0.5  # says nothing
    assert math.isnan(mean_roc_auc(outputs, torch.ones(4, 3)))


def test_labels_outside_the_split_are_never_looked_at(task: MultiLabel) -> None:
    assert task.num_outputs == 2
    assert bool(task.y[6].isnan().all())
    other = LABELS.clone()
    other[6] = 0
    assert MultiLabel.from_data(data_with(y=other)).digests == task.digests
    other[4, 1] = 1
    assert MultiLabel.from_data(data_with(y=other)).digests["labels_and_split"] != task.digests["labels_and_split"]


def test_whole_numbers_and_booleans_are_labels_as_well() -> None:
    y = LABELS.nan_to_num()
    y[6] = 0
    real = MultiLabel.from_data(data_with(y=y)).digests
    assert MultiLabel.from_data(data_with(y=y.long())).digests == real
    assert MultiLabel.from_data(data_with(y=y.bool())).digests == real


def test_the_loss_is_the_mean_over_what_is_known(task: MultiLabel) -> None:
    outputs = torch.tensor([[0.3, -1.2], [2.0, 0.7]])
    p = outputs.double().sigmoid()
    terms = [-math.log(1 - p[0, 0]), -math.log(p[0, 1]), -math.log(p[1, 0])]
    labels = torch.tensor([[0.0, 1.0], [1.0, NAN]])
    assert float(task.label_loss(outputs, labels)) == pytest.approx(sum(terms) / 3)
    terms.append(-math.log(1 - p[1, 1]))
    assert float(task.label_loss(outputs, labels.nan_to_num(0.0))) == pytest.approx(sum(terms) / 4)
    wider = torch.cat([outputs, torch.full((2, 1), 9.0)], 1)  # a model may give more than there are labels
    assert float(task.label_loss(wider, labels)) == float(task.label_loss(outputs, labels))


def test_the_divergence_is_of_coins(task: MultiLabel) -> None:
    teacher, student = torch.tensor([[0.4, -2.0]]), torch.tensor([[1.0, 0.5]])
    p, q = teacher.double().sigmoid(), student.double().sigmoid()
    expected = (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean()
    assert float(task.divergence(student, teacher)) == pytest.approx(float(expected), rel=1e-5)
    assert float(task.divergence(teacher, teacher)) == pytest.approx(0, abs=1e-7)


def test_what_outputs_mean(task: MultiLabel) -> None:
    outputs = torch.tensor([[1.0, -1.0], [2.0, 3.0], [-1.0, -2.0]])
    decided = task.decide(outputs)
    assert decided.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert task.listed(decided) == [[0], [0, 1], []]
    torch.testing.assert_close(task.probabilities(outputs), outputs.sigmoid())
    expected = sum(math.log(1 / (1 + math.exp(-abs(z)))) for z in outputs.flatten().tolist())
    assert float(task.certainty(outputs)) == pytest.approx(expected)


def test_a_frequent_label_is_not_everybodys_group() -> None:
    y = torch.tensor([[1.0, 0], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [0, 0]])
    task = MultiLabel.from_data(
        data_with(y=y, train_mask=bools(0, 1, 5), val_mask=bools(2, 3), test_mask=bools(4, 6))
    )
    usual = torch.tensor([4.0, 0.25]).log()  # three have the first and none the second; one more of each
    outputs = torch.tensor([[1.3, -1.3], [1.0, -1.0], [0.0, -3.0]])
    torch.testing.assert_close(task.distribution(outputs), (outputs - usual).softmax(-1))
    assert task.groups(outputs).tolist() == [1, 1, 0]
    assert outputs.argmax(-1).tolist() == [0, 0, 0]
    assert task.groups(torch.tensor([[3.0, -1.0]])).tolist() == [0]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"y": torch.ones(7)}, r"data.y must have a column for each label \(got shape \(7,\)\)"),
    ({"y": torch.ones(6, 2)}, r"one row for each of 7 feature rows \(got shape \(6, 2\)\)"),
    ({"y": LABELS * 2}, r"labels must be 0, 1 or NaN, which is unknown \(got 2\)"),
    ({"y": torch.full((7, 2), NAN)}, r"the training nodes must have a known label"),
    ({"y": torch.eye(7)[:, :2].nan_to_num()}, r"a label that some val nodes have and some have not \(got none\)"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_cannot_be_used_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MultiLabel.from_data(data_with(**changes))


def test_labels_tell_their_task() -> None:
    assert name_for(LABELS) == "multi-label"
    assert name_for(torch.ones(7, 1)) == name_for(torch.ones(7)) == name_for(None) == "node-classification"
    assert kind_of(None, LABELS) is MultiLabel
    assert kind_of("node-classification", LABELS) is NodeClassification


def test_a_metric_belongs_to_its_task() -> None:
    check_metric(None, "macro-f1")
    with pytest.raises(InputError, match=r"unknown metric \(got 'accuracy'\)"):
        check_metric("multi-label", "accuracy")
    with pytest.raises(InputError, match=r"unknown metric \(got 'hits'\)"):
        check_metric(None, "hits")
