"""The peer is what it claims to be: our networks, by PyG, trained in the same way."""

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from fastglt import InputError
from fastglt.bench.stock import FORMS, StockTraining, adjacency
from fastglt.methods import FixedMasks
from fastglt.models import Backbone, build
from fastglt.models.twins import StockNetwork, build_twin, shaped_like
from fastglt.tasks import NodeClassification
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.models.references import randomise
from tests.toy_data import CLASSES, FEATURES, toy_data

DATA = {
    "undirected": toy_data(),
    "loops": toy_data(loops=True),
    "directed": toy_data(directed=True),
    "directed, loops": toy_data(directed=True, loops=True),
}
OPTIONS: dict[str, dict[str, float | str]] = {
    "gcn": {},
    "gin": {},
    "gin, sum": {"aggregation": "sum"},
    "gin, deep": {"depth": 3},
    "gat": {},
    "gat, 2 heads": {"heads": 2, "slope": 0.1},
}
OURS = ("gcn", "gin", "gat")
forms = pytest.mark.parametrize("form", FORMS)
models = pytest.mark.parametrize("model", OURS)


def backbone(model: str, **options: object) -> Backbone:
    shape = {"in_channels": FEATURES, "hidden": 8, "out_channels": CLASSES}
    network = build({"name": model, **shape, **options})
    randomise(network)
    return network


def twin(ours: Backbone) -> StockNetwork:
    theirs = build_twin(ours.twin, ours.spec)
    theirs.load_weights(ours)
    return theirs


@forms
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("variant", OPTIONS)
def test_same_logits_and_same_gradients_of_the_loss(variant: str, kind: str, form: str) -> None:
    data, ours = DATA[kind], backbone(variant.partition(",")[0], **OPTIONS[variant])
    theirs, task = twin(ours), NodeClassification.from_data(data)
    ours.eval()
    theirs.eval()
    graph = adjacency(theirs, data, form)
    logits, expected = ours(task.x, task.graph), theirs(data.x, graph)
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)
    assert logits.std() > 0.1, "nothing to compare"
    task.label_loss(ours(task.x, task.graph, None, task.train), task.y[task.train]).backward()  # type: ignore[no-untyped-call]
    cross_entropy(expected[data.train_mask], data.y[data.train_mask]).backward()  # type: ignore[no-untyped-call]
    others = dict(theirs.named_parameters())
    assert set(theirs.names.values()) == set(others)
    for name, parameter in ours.named_parameters():
        want = others[theirs.names[name]].grad
        assert parameter.grad is not None
        assert want is not None
        torch.testing.assert_close(shaped_like(parameter.grad, want), want, rtol=1e-4, atol=1e-6, msg=name)


@forms
@models
def test_epochs_are_ours_where_nothing_is_random(model: str, form: str) -> None:
    data, ours = toy_data(loops=True), backbone(model, dropout=0.0)
    recipe = Recipe(lr=0.01, weight_decay=0.05)
    training = Training(ours, NodeClassification.from_data(data), recipe, seed=0)
    stock = StockTraining(twin(ours), data, form, lr=recipe.lr, weight_decay=recipe.weight_decay)
    for _ in range(3):
        training.run_epoch(FixedMasks())
        scores, (val, test) = training.history[-1], stock.run_epoch()
        assert (val, test) == pytest.approx((scores.val, scores.test))
    others = dict(stock.network.named_parameters())
    for name, parameter in training.network.named_parameters():
        want = others[stock.network.names[name]]
        torch.testing.assert_close(shaped_like(parameter, want), want, rtol=1e-3, atol=1e-4, msg=name)
    assert not torch.equal(training.network.get_parameter("layer1.bias"), ours.get_parameter("layer1.bias"))


@models
def test_it_has_our_dropout_while_training_only(model: str) -> None:
    data, theirs = toy_data(), twin(backbone(model))
    assert theirs.dropout == backbone(model).dropout > 0
    calm = theirs.eval()(data.x, data.edge_index)
    assert torch.equal(theirs(data.x, data.edge_index), calm)
    noisy = theirs.train()(data.x, data.edge_index)
    assert not torch.allclose(noisy, calm)


@models
def test_it_is_judged_without_dropout(model: str) -> None:
    data = toy_data()
    stock = StockTraining(twin(backbone(model)), data, "edge_index", lr=0.01, weight_decay=0.0)
    val, test = stock.run_epoch()
    assert not stock.network.training
    right = stock.network(data.x, data.edge_index).argmax(-1) == data.y
    wanted = [float(right[mask].double().mean()) for mask in (data.val_mask, data.test_mask)]
    assert [val, test] == pytest.approx(wanted)


def test_attention_is_dropped_out_too() -> None:
    theirs = twin(backbone("gat", dropout=0.4))
    assert [theirs.get_submodule(f"conv{i}").dropout for i in (1, 2)] == [0.4, 0.4]


def test_gcn_normalises_its_graph_once() -> None:
    theirs = twin(backbone("gcn"))
    data = toy_data()
    theirs(data.x, data.edge_index)
    cached = theirs.get_submodule("conv1")._cached_edge_index
    theirs(data.x, data.edge_index)
    assert theirs.get_submodule("conv1")._cached_edge_index is cached is not None


def test_no_test_nodes_are_no_accuracy() -> None:
    data: Data = toy_data()
    data.test_mask = torch.zeros_like(data.test_mask)
    stock = StockTraining(twin(backbone("gcn")), data, "edge_index", lr=0.01, weight_decay=0.0)
    assert stock.run_epoch()[1] == 0.0


def test_every_backbone_of_ours_has_a_twin() -> None:
    for name in OURS:
        ours = backbone(name)
        assert type(twin(ours)).__name__ == f"Stock{type(ours).__name__}"


def test_a_backbone_without_a_twin_is_refused() -> None:
    with pytest.raises(InputError, match=r"can be measured against stock PyG \(got mine, which has none\)"):
        build_twin("", {"name": "mine"})


def test_an_unknown_form_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown form of a graph \(got 'csc'\); did you mean 'csr'"):
        adjacency(twin(backbone("gcn")), toy_data(), "csc")
