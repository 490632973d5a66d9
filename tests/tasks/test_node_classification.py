from typing import Any

import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch_geometric.data import Data, HeteroData

from fastglt import InputError
from fastglt.tasks import NodeClassification
from fastglt.tasks.metrics import accuracy, macro_f1, roc_auc
from tests.helpers import both_ways, csr_tensor, randn


def bools(*where: int, size: int = 6) -> torch.Tensor:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[list(where)] = True
    return mask


def data_with(**changes: Any) -> Data:
    """Six nodes, two classes, two nodes in each split; a change of None leaves a part out."""
    parts: dict[str, Any] = {
        "x": torch.ones(6, 2),
        "y": torch.tensor([0, 1, 0, 1, 0, 1]),
        "edge_index": both_ways([(0, 1), (1, 2)]),
        "train_mask": bools(0, 1),
        "val_mask": bools(2, 3),
        "test_mask": bools(4, 5),
    } | changes
    return Data(**{name: value for name, value in parts.items() if value is not None})


def with_value(value: float) -> torch.Tensor:
    x = torch.ones(6, 2)
    x[4, 1] = value
    return x


def test_a_good_task_is_read() -> None:
    task = NodeClassification.from_data(data_with())
    assert (task.num_outputs, task.metric, task.graph.num_edges, task.x.num_features) == (2, "accuracy", 2, 2)
    assert (task.train.tolist(), task.val.tolist(), task.test.tolist()) == ([0, 1], [2, 3], [4, 5])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"x": with_value(float("nan"))}, r"finite in float32 \(got nan at node 4, feature 1\)"),
    (
        {"x": with_value(float("nan")).double().nan_to_num(1e39)},
        r"finite in float32 \(got 1e\+39 at node 4, feature 1\)",
    ),
    ({"x": with_value(float("inf"))}, r"finite in float32 \(got inf at node 4, feature 1\)"),
    ({"x": None, "num_nodes": 6}, r"data.x must be a float tensor \[nodes, features\] \(got none\)"),
    ({"x": torch.ones(6)}, r"\[nodes, features\] \(got torch.float32, shape \(6,\)\)"),
    ({"x": torch.ones(6, 2).long()}, r"\[nodes, features\] \(got torch.int64, shape \(6, 2\)\)"),
    ({"x": torch.ones(6, 0)}, r"\[nodes, features\] \(got torch.float32, shape \(6, 0\)\)"),
    ({"num_nodes": 7}, r"data.x must have one row for each of 7 nodes \(got 6\)"),
    ({"y": None}, r"data.y must hold one integer label per node \(got none\)"),
    ({"y": torch.ones(6)}, r"data.y must hold one integer label per node \(got torch.float32\)"),
    ({"y": torch.tensor([0, 1, 0, 1, -1, 1])}, r"labels must be 0, 1, 2, … \(got -1\)"),
    ({"y": torch.tensor([0, 1, 0, 1, 9, 1])}, r"below the number of nodes, 6 \(got 9\)"),
    ({"y": torch.ones(5).long()}, r"one label for each of 6 feature rows \(got shape \(5,\)\)"),
    ({"y": torch.ones(6, 3).long()}, r"one label for each of 6 feature rows \(got shape \(6, 3\)\)"),
    ({"train_mask": None}, r"data.train_mask must be a boolean tensor of 6 nodes \(got none\)"),
    ({"val_mask": None}, r"data.val_mask must be a boolean tensor of 6 nodes \(got none\)"),
    ({"train_mask": bools()}, r"data.train_mask must select at least one node \(got an empty mask\)"),
    ({"val_mask": bools()}, r"data.val_mask must select at least one node \(got an empty mask\)"),
    ({"train_mask": torch.ones(6)}, r"boolean tensor of 6 nodes \(got torch.float32, shape \(6,\)\)"),
    ({"test_mask": bools(0, size=5)}, r"data.test_mask .* 6 nodes \(got torch.bool, shape \(5,\)\)"),
    ({"train_mask": torch.ones(6, 10).bool()}, r"\(got torch.bool, shape \(6, 10\); choose one split first\)"),
    (
        {"val_mask": bools(1, 3)},
        r"train_mask and val_mask must not share nodes \(got 1 shared, among .* node 1\)",
    ),
    ({"test_mask": bools(0, 1)}, r"train_mask and test_mask must not share nodes \(got 2 shared, .* node 0\)"),
    ({"test_mask": bools(3, 4)}, r"val_mask and test_mask must not share nodes \(got 1 shared, .* node 3\)"),
    ({"edge_index": None}, r"data.edge_index must be a \[2, edges\] tensor \(got none\)"),
    ({"edge_index": torch.tensor([[0], [6]]), "num_nodes": 6}, r"must lie in 0 … 5 \(got 0 to 6\)"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_data_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NodeClassification.from_data(data_with(**changes))


def test_a_graph_without_nodes_is_refused() -> None:
    none = torch.empty(0, dtype=torch.bool)
    data = Data(x=torch.empty(0, 2), y=torch.empty(0, dtype=torch.int64), train_mask=none, val_mask=none)
    with pytest.raises(InputError, match=r"at least one node \(got none\)"):
        NodeClassification.from_data(data)


@pytest.mark.parametrize("wrong", [HeteroData(), [1, 2], None])
def test_only_a_homogeneous_data_is_taken(wrong: Any) -> None:
    message = rf"must be one graph .* torch_geometric.data.Data \(got {type(wrong).__name__}\)"
    with pytest.raises(InputError, match=message):
        NodeClassification.from_data(wrong)


def test_roc_auc_needs_two_classes() -> None:
    with pytest.raises(InputError, match=r"roc_auc needs two classes at least \(got 1\)"):
        NodeClassification.from_data(data_with(y=torch.zeros(6).long()), metric="roc_auc")
    three = data_with(y=torch.tensor([0, 1, 2, 2, 0, 1]))
    with pytest.raises(InputError, match=r"needs two classes at least among the val nodes \(got 2 alone\)"):
        NodeClassification.from_data(three, metric="roc_auc")


@pytest.mark.parametrize("written", ["macro-f1", "macro_f1", "roc-auc", "roc_auc"])
def test_a_dash_in_a_metrics_name_is_an_underscore(written: str) -> None:
    assert NodeClassification.from_data(data_with(), metric=written).metric == written.replace("-", "_")


def test_an_unknown_metric_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown metric \(got 'acuracy'\); did you mean 'accuracy'\?"):
        NodeClassification.from_data(data_with(), metric="acuracy")


def test_labels_outside_the_splits_may_be_missing() -> None:
    data = data_with(y=torch.tensor([0, 1, 0, 1, -1, -1]), test_mask=None)
    task = NodeClassification.from_data(data)
    assert task.num_outputs == 2
    assert torch.isnan(torch.tensor(task.score(randn(0, 2), task.test)))


def test_labels_in_one_column_are_a_vector() -> None:
    assert NodeClassification.from_data(data_with(y=torch.tensor([[0], [1], [0], [1], [0], [1]]))).y.shape == (6,)


def test_the_data_is_not_changed() -> None:
    data = data_with(x=torch.ones(6, 2, dtype=torch.float64), y=torch.tensor([0, 1, 0, 1, -1, -1]), test_mask=None)
    NodeClassification.from_data(data)
    assert data.x.dtype == torch.float64
    assert data.y.tolist() == [0, 1, 0, 1, -1, -1]


def test_accuracy_by_hand() -> None:
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert accuracy(logits, torch.tensor([0, 1, 1])) == pytest.approx(2 / 3, abs=1e-15)


def test_roc_auc_is_sklearns() -> None:
    logits, labels = randn(200, 2), (randn(200, seed=1) > 0).long()
    probability = logits.softmax(-1)[:, 1]
    assert roc_auc(logits, labels) == pytest.approx(roc_auc_score(labels.numpy(), probability.numpy()))


THREE = torch.tensor([[3.0, 1.0, 0.0], [2.0, 2.5, 0.0], [0.0, 2.0, 1.0], [0.0, 3.0, 1.0], [1.0, 0.0, 4.0]])


def test_macro_f1_by_hand() -> None:
    """Predictions 0, 1, 1, 1, 2. F1 of class 0: 2·1/(1 + 2); of class 1: 2·2/(3 + 2); of class 2: 2·1/(1 + 1)."""
    assert macro_f1(THREE, torch.tensor([0, 0, 1, 1, 2])) == pytest.approx((2 / 3 + 4 / 5 + 1) / 3, abs=1e-15)
    # class 2 is neither there nor predicted and left out; a class that is predicted, but not there, counts with 0
    assert macro_f1(THREE[:4], torch.tensor([0, 0, 1, 1])) == pytest.approx((2 / 3 + 4 / 5) / 2, abs=1e-15)
    assert macro_f1(THREE[:4], torch.tensor([0, 0, 0, 0])) == pytest.approx((2 / 5 + 0) / 2, abs=1e-15)


def test_roc_auc_of_three_classes_by_hand() -> None:
    """Class 0 at places 1 and 3 of its ranking, class 1 at 1 and 2, class 2 at 1, each of five."""
    outputs = torch.tensor(
        [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.6, 0.3], [0.05, 0.9, 0.05], [0.4, 0.1, 0.5]]
    ).log()
    areas = (5 / 6, 1, 1)  # of 2·3 pairs of class 0 and another class one is the wrong way round
    assert roc_auc(outputs, torch.tensor([0, 0, 1, 1, 2])) == pytest.approx(sum(areas) / 3, abs=1e-12)
    # without class 2 there are two areas left: 0 before 1 in all four pairs, and 1 before 0 too
    assert roc_auc(outputs[:4], torch.tensor([0, 0, 1, 1])) == 1


@pytest.mark.parametrize("classes", [3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_metrics_of_several_classes_are_sklearns(classes: int, seed: int) -> None:
    """With tied outputs among them, and a class that is not there."""
    outputs = (2 * randn(150, classes, seed=seed)).round() / 2
    labels = torch.arange(150) % (classes - 1)
    outputs[torch.arange(150), labels] += 1
    found = roc_auc(outputs, labels)
    probabilities = outputs.double().softmax(-1).numpy()
    areas = [roc_auc_score((labels == one).numpy(), probabilities[:, one]) for one in range(classes - 1)]
    assert found == pytest.approx(sum(areas) / len(areas), abs=1e-12)
    labels[:3] = classes - 1
    expected = roc_auc_score(labels.numpy(), probabilities, multi_class="ovr", average="macro")
    assert roc_auc(outputs, labels) == pytest.approx(expected, abs=1e-12)
    expected = f1_score(labels.numpy(), outputs.argmax(-1).numpy(), average="macro")
    assert macro_f1(outputs, labels) == pytest.approx(expected, abs=1e-12)


def test_roc_auc_ranks_by_the_classes_of_the_split() -> None:
    """A model may have more outputs: with two classes the margin between them is all that counts."""
    task = NodeClassification.from_data(data_with(), metric="roc_auc")
    outputs = torch.tensor([[0.0, 1.0, 50.0], [0.0, 2.0, -50.0]])
    assert task.score(outputs, task.test) == task.score(outputs[:, :2], task.test) == 1


def test_loss_and_score_are_those_of_the_given_nodes() -> None:
    task = NodeClassification.from_data(data_with(), metric="roc_auc")
    logits = torch.tensor([[0.0, 0.0]] * 4 + [[5.0, 0.0], [0.0, 5.0]])
    assert float(task.label_loss(logits[task.train], task.y[task.train])) == pytest.approx(0.6931472)
    assert task.score(logits[task.test], task.test) == 1
    assert task.score(logits[task.val], task.val) == 0.5
    assert task.judged.tolist() == [*task.val.tolist(), *task.test.tolist()]


def test_to_the_same_device_keeps_the_parts() -> None:
    task = NodeClassification.from_data(data_with())
    moved = task.to("cpu")
    assert moved.graph is task.graph
    assert moved.x is task.x


def test_labels_of_nodes_in_no_split_make_no_classes() -> None:
    data = data_with(y=torch.tensor([0, 1, 0, 1, 0, 10**7]), test_mask=None)
    assert NodeClassification.from_data(data).num_outputs == 2


def test_roc_auc_needs_both_classes_where_it_is_measured() -> None:
    data = data_with()
    data.y = torch.where(data.val_mask, 1, data.y)
    with pytest.raises(InputError, match=r"both classes among the val nodes \(got 1 alone\)"):
        NodeClassification.from_data(data, metric="roc_auc")


def tensors_with(**changes: Any) -> dict[str, torch.Tensor]:
    """The same six nodes by name, without PyG."""
    return dict(data_with(**changes).to_dict())


@pytest.mark.parametrize("layout", ["strided", "csr"])
def test_a_task_from_tensors_is_that_of_the_data(layout: str) -> None:
    x = torch.where(randn(6, 4) > 0.3, randn(6, 4), 0.0)
    expected = NodeClassification.from_data(data_with(x=x), metric="roc_auc")
    task = NodeClassification.from_tensors(
        tensors_with(x=csr_tensor(x) if layout == "csr" else x), metric="roc_auc"
    )
    assert task.x.fingerprint == expected.x.fingerprint
    assert task.graph.fingerprint == expected.graph.fingerprint
    assert (task.num_outputs, task.metric) == (2, "roc_auc")
    for name in ("y", "train", "val", "test", "judged"):
        assert torch.equal(getattr(task, name), getattr(expected, name)), name
    assert torch.equal(task.x.dense, x)


def test_tensors_may_be_a_directed_graph() -> None:
    arrows = torch.tensor([[0, 1], [1, 2]])
    assert NodeClassification.from_tensors(tensors_with(edge_index=arrows)).graph.directed
    assert not NodeClassification.from_tensors(tensors_with()).graph.directed
    told = NodeClassification.from_tensors(tensors_with(), directed=True).graph
    assert told.directed, "though each of its edges goes both ways"
    assert told.num_edges == 2 * NodeClassification.from_tensors(tensors_with()).graph.num_edges


def test_features_are_single_precision_in_either_layout() -> None:
    x = torch.eye(6, dtype=torch.float64)
    for given in (x, csr_tensor(x)):
        task = NodeClassification.from_tensors(tensors_with(x=given))
        assert task.x.values.dtype == task.x.dense.dtype == torch.float32


FROM_TENSORS: list[tuple[dict[str, Any], str]] = [
    (
        {"x": csr_tensor(with_value(float("nan")))},
        r"finite in float32 \(got nan at node 4, feature 1\)",
    ),
    (
        {"x": csr_tensor(with_value(float("-inf")))},
        r"finite in float32 \(got -inf at node 4, feature 1\)",
    ),
    ({"x": csr_tensor(torch.ones(6, 2).long())}, r"\[nodes, features\] \(got torch.int64, shape \(6, 2\)\)"),
    ({"y": torch.tensor([0, 1, 0, 1, 9, 1])}, r"below the number of nodes, 6 \(got 9\)"),
    ({"val_mask": bools()}, r"data.val_mask must select at least one node \(got an empty mask\)"),
    ({"edge_index": torch.tensor([[0], [6]])}, r"must lie in 0 … 5 \(got 0 to 6\)"),
]


@pytest.mark.parametrize(("changes", "message"), FROM_TENSORS, ids=[message for _, message in FROM_TENSORS])
def test_wrong_tensors_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NodeClassification.from_tensors(tensors_with(**changes))


def test_a_pyg_object_with_sparse_features_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"data.x must be a dense tensor \(got torch.sparse_csr\); it has to_dense"
    ):
        NodeClassification.from_data(data_with(x=csr_tensor(torch.eye(6))))


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown device .* did you mean 'cuda'"):
        NodeClassification.from_data(data_with()).to("cdua")


def test_splits_of_the_same_order_are_told_apart() -> None:
    def digest(*sizes: int) -> str:
        parts = torch.split(torch.arange(6), list(sizes))
        masks = {
            f"{name}_mask": bools(*part.tolist())
            for name, part in zip(("train", "val", "test"), parts, strict=True)
        }
        return NodeClassification.from_tensors(tensors_with(**masks)).digests["labels_and_split"]

    assert len({digest(2, 2, 2), digest(3, 2, 1), digest(2, 3, 1)}) == 3
    assert digest(2, 2, 2) == digest(2, 2, 2)
