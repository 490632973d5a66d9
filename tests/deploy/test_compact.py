"""Users' models with compact linear layers: the same class scores, from what is left of the weights."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.nn import Linear as PyGLinear

from fastglt import InputError, Predictor, Ticket, compile_ticket
from fastglt.deploy import compact
from fastglt.deploy.compact import KINDS, Compact, OnFeatures, Sparse, Trimmed, expand, known
from fastglt.deploy.exports import export
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import PyGNetwork
from tests.helpers import randn, sparse_features
from tests.toy_data import CLASSES, FEATURES, NODES, USER_MODELS, quick_ticket, seeded, toy_data

LAYOUTS = ("fastest", *KINDS)


def pruned_layer(kind: Any = nn.Linear, *, bias: bool = True, dtype: torch.dtype = torch.float32) -> nn.Linear:
    """Nine inputs and five outputs; two inputs and an output have no weight left."""
    layer: nn.Linear = seeded(kind, 9, 5, bias=bias).to(dtype).requires_grad_(False)
    layer.weight.mul_(randn(5, 9, seed=3) > 0.3)
    layer.weight[:, [2, 7]] = 0
    layer.weight[3] = 0
    return layer


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [nn.Linear, PyGLinear])
def test_a_layer_in_every_layout(kind: str, made: Any) -> None:
    for bias in (True, False):
        for dtype in (torch.float32, torch.float64):
            layer = pruned_layer(made, bias=bias, dtype=dtype)
            stored: Any = KINDS[kind](layer)
            for shape in ((7, 9), (1, 9), (2, 3, 9)):
                x = randn(*shape, dtype=dtype)
                torch.testing.assert_close(stored(x), layer(x))
            torch.testing.assert_close(stored.weight, layer.weight)


def test_a_layer_without_any_weight_gives_its_bias() -> None:
    layer = pruned_layer()
    layer.weight.zero_()
    for kind in KINDS.values():
        torch.testing.assert_close(kind(layer)(randn(4, 9)), layer.bias.expand(4, -1))


def test_only_what_is_left_is_stored() -> None:
    layer = pruned_layer()
    trimmed, sparse = Trimmed(layer), Sparse(layer)
    assert trimmed.left.shape == (4, 7)
    assert sparse.values.numel() == int(layer.weight.count_nonzero())
    for stored in (trimmed, sparse):
        assert [name for name, _ in stored.named_parameters()] == ["bias"]
        with pytest.raises(InputError, match=r"must be given 9 columns \(got 10\)"):
            stored(randn(4, 10))


def test_zeros_of_known_features_are_skipped() -> None:
    x = sparse_features(8, 60)
    unused = int((~x.dense.any(0)).nonzero()[0])
    layer: nn.Linear = seeded(nn.Linear, 60, 3).requires_grad_(False)
    expected = layer(x.dense)
    layer.weight[:, unused] = torch.nan
    stored = OnFeatures(layer)
    with known(x):
        torch.testing.assert_close(stored(x.dense), expected)
        assert stored(x.dense.clone()).isnan().all()  # other rows, for all it knows
    assert stored(x.dense).isnan().all()


def reference(ticket: Ticket, data: Data, model: nn.Module) -> Tensor:
    """Class scores of the user's model with dense, masked weights on the pruned graph."""
    network = PyGNetwork(model)
    network.module.load_state_dict(dict(ticket.weights))
    graph = Graph.from_data(data).prune(ticket.masks.edges)
    with torch.no_grad():
        found: Tensor = network.eval()(Features(data.x), graph, ticket.soft_edge_mask)
    return found


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def found() -> Callable[[str], tuple[Ticket, nn.Module]]:
    """A ticket of each of the users' models, and the model."""
    tickets: dict[str, tuple[Ticket, nn.Module]] = {}

    def get(name: str) -> tuple[Ticket, nn.Module]:
        if name not in tickets:
            model = seeded(USER_MODELS[name])
            tickets[name] = quick_ticket(model, isolated=False, weight_sparsity=0.8), model
        return tickets[name]

    return get


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", USER_MODELS)
def test_users_models_give_the_same(found: Any, name: str, layout: str) -> None:
    (ticket, model), data = found(name), toy_data()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    predictor = compile_ticket(ticket, data, model, layout=layout)
    if layout != "fastest":
        assert set(predictor.layouts) <= {layout}
    expected = reference(ticket, data, model)
    assert_close(predictor.logits(), expected)
    assert_close(predictor.logits([7, 3]), expected[[7, 3]])
    dense = compile_ticket(ticket, data, model, layout="whole")
    new, edges = randn(2, FEATURES, seed=8), torch.tensor([[30, 31], [4, 30]])
    other = randn(NODES, FEATURES, seed=9)
    assert_close(predictor.with_nodes(new, edges).logits(), dense.with_nodes(new, edges).logits())
    assert_close(predictor.with_features(other).logits([2]), dense.with_features(other).logits([2]))
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])


def layers_of(predictor: Predictor) -> list[nn.Module]:
    return [layer for layer in predictor.network.modules() if isinstance(layer, Compact)]


def test_the_fastest_is_taken_and_can_be_had_again(found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (ticket, model), data = found("GraphSAGE"), toy_data()
    names = iter(["sparse", "whole", "trimmed", "features"])
    monkeypatch.setattr(compact, "_milliseconds", lambda *_: {"whole": 2.0, next(names): 1.0})
    predictor = compile_ticket(ticket, data, model)
    assert sorted(predictor.layouts) == ["features", "sparse", "trimmed", "whole"]
    assert {type(layer) for layer in layers_of(predictor)} == {Sparse, Trimmed, OnFeatures}
    assert predictor.trials is not None
    assert predictor.trials["convs.0.lin_l, whole"] == 2.0
    again = compile_ticket(ticket, data, model, layout=predictor.layouts)
    assert (again.layouts, again.trials) == (predictor.layouts, None)
    assert torch.equal(again.logits(), predictor.logits())


def test_layouts_worth_a_trial(found: Any) -> None:
    ticket, model = found("GCN")
    trials = compile_ticket(ticket, toy_data(), model).trials
    assert trials is not None
    assert {"convs.0.lin, whole", "convs.1.lin, whole"} <= trials.keys()
    assert any(name.endswith("sparse") for name in trials)
    assert not any(name.endswith("features") for name in trials)  # the toy data's are dense


def test_sparse_features_are_worth_a_trial() -> None:
    data, model = toy_data(), seeded(WithParts, width=60)
    data.x = sparse_features(NODES, 60).dense
    trials = compile_ticket(quick_ticket(model, data, isolated=False), data, model).trials
    assert trials is not None
    assert [name for name in trials if name.endswith("features")] == ["conv.lin, features", "skip, features"]


class Doubled(nn.Linear):
    """Another kind of linear layer."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class WithParts(nn.Module):
    """A convolution and linear layers that are used in unusual ways."""

    def __init__(self, width: int = FEATURES) -> None:
        super().__init__()
        self.conv = GCNConv(width, 8)
        self.skip, self.deep, self.own = nn.Linear(width, 8), nn.Linear(8, 8), Doubled(8, 8)
        self.again = nn.Sequential(self.deep, nn.ReLU(), self.deep)
        self.read, self.named, self.hooked = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.hooked.register_forward_hook(lambda layer, given, out: out + 1)
        self.last = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = (self.conv(x, edge_index) + self.skip(x)).relu()
        h = self.own(self.again(h)).relu() @ self.read.weight.t()
        h = self.hooked(self.named(input=h))
        return self.last(torch.stack([h, -h])).sum(0)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", KINDS)
def test_unusual_layers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, model = toy_data(), seeded(WithParts)
    ticket = quick_ticket(model, data, isolated=False, weight_sparsity=0.8)
    monkeypatch.setattr(compact, "_milliseconds", lambda *_: {kind: 1.0})
    predictor = compile_ticket(ticket, data, model)
    assert_close(predictor.logits(), reference(ticket, data, model))
    module: Any = predictor.network.module
    assert type(module.own) is Doubled
    assert type(module.hooked) is type(module.read) is type(module.named) is nn.Linear
    assert module.again[0] is module.again[2] is module.deep
    assert len(layers_of(predictor)) == (0 if kind == "whole" else 4)  # of conv, skip, deep and last


def test_a_layer_that_is_called_by_keyword_is_left_alone() -> None:
    data, model = toy_data(), seeded(WithParts)
    ticket = quick_ticket(model, data, isolated=False)
    predictor = compile_ticket(ticket, data, model, layout="sparse")
    assert set(predictor.layouts) == {"whole"}
    assert_close(predictor.logits(), reference(ticket, data, model))


class Picky(nn.Module):
    """Takes no other linear layer than PyG's."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        assert isinstance(self.conv.lin, PyGLinear)
        return self.conv(x, edge_index)  # type: ignore[no-any-return]


def test_a_model_that_does_not_run_with_them_keeps_its_layers() -> None:
    data, model = toy_data(), seeded(Picky)
    ticket = quick_ticket(model, data, isolated=False)
    predictor = compile_ticket(ticket, data, model, layout="sparse")
    assert predictor.layouts == ("whole",)
    assert_close(predictor.logits(), reference(ticket, data, model))


def test_ordinary_layers_again() -> None:
    layer = pruned_layer()
    for kind in (Trimmed, Sparse, OnFeatures):
        module = nn.Sequential(kind(layer), nn.ReLU())
        state, x = torch.random.get_rng_state(), randn(4, 9)
        expected = module(x)
        expand(module)
        assert type(module[0]) is nn.Linear
        torch.testing.assert_close(module(x), expected)
        assert torch.equal(torch.random.get_rng_state(), state)


def test_a_compact_model_is_exported(found: Any, tmp_path: Path) -> None:
    ticket, model = found("GCN")
    predictor = compile_ticket(ticket, toy_data(), model, layout="sparse")
    assert export(predictor, tmp_path / "a.pt2", to="torch").max_difference < 1e-5
    assert {type(layer) for layer in layers_of(predictor)} == {Sparse}


def test_wrong_layouts_and_data_are_refused(found: Any) -> None:
    (ticket, model), data = found("GCN"), toy_data()
    with pytest.raises(
        InputError, match=r"unknown layout of a user's model \(got 'sparce'\); did you mean 'sparse'"
    ):
        compile_ticket(ticket, data, model, layout="sparce")
    with pytest.raises(InputError, match=r"a name, or one for each of 2 matrices \(got 3\)"):
        compile_ticket(ticket, data, model, layout=("whole",) * 3)
    data.x = randn(NODES, FEATURES + 1)
    with (
        pytest.warns(UserWarning, match="features differ"),
        pytest.raises(InputError, match=r"the model must run on this data \(got RuntimeError: mat1"),
    ):
        compile_ticket(ticket, data, model)
