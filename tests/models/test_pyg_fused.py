"""Sparse products in place of gather and scatter: the same numbers, and PyG's own way where a layer is unusual."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import PyGNetwork
from tests.helpers import randn, sparse_features
from tests.models.user_models import OUT
from tests.toy_data import NODES, per_edge, quick_ticket, seeded, toy_data

WIDE = 60
LAYERS: dict[str, Callable[[], Any]] = {
    "GCN": lambda: pyg.GCNConv(WIDE, OUT),
    "GCN without loops": lambda: pyg.GCNConv(WIDE, OUT, add_self_loops=False),
    "GCN as mean": lambda: pyg.GCNConv(WIDE, OUT, aggr="mean"),
    "SAGE": lambda: pyg.SAGEConv(WIDE, OUT),
    "SAGE sum": lambda: pyg.SAGEConv(WIDE, OUT, aggr="sum", bias=False),
    "SAGE normalised": lambda: pyg.SAGEConv(WIDE, OUT, normalize=True, root_weight=False),
    "SAGE projected": lambda: pyg.SAGEConv(WIDE, OUT, project=True),
    "SAGE both ways": lambda: pyg.DirGNNConv(pyg.SAGEConv(WIDE, OUT)),
    "GraphConv": lambda: pyg.GraphConv(WIDE, OUT),
    "GIN": lambda: pyg.GINConv(nn.Linear(WIDE, OUT), train_eps=True),
    "GAT": lambda: pyg.GATConv(WIDE, OUT, heads=2, concat=False),
    "GATv2": lambda: pyg.GATv2Conv(WIDE, OUT, heads=2, concat=False),
    "SGC": lambda: pyg.SGConv(WIDE, OUT, K=2),
    "SSGC": lambda: pyg.SSGConv(WIDE, OUT, alpha=0.1, K=2),
    "TAG": lambda: pyg.TAGConv(WIDE, OUT),
    "MixHop": lambda: pyg.MixHopConv(WIDE, OUT),
    "ClusterGCN": lambda: pyg.ClusterGCNConv(WIDE, OUT),
    "Chebyshev": lambda: pyg.ChebConv(WIDE, OUT, K=3),
    "gated": lambda: pyg.GatedGraphConv(WIDE, num_layers=2),
    "LG": lambda: pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x"), nn.Linear(WIDE, OUT)]),
    "APPNP": lambda: pyg.Sequential(
        "x, edge_index", [(nn.Linear(WIDE, OUT), "x -> x"), (pyg.APPNP(2, 0.1), "x, edge_index -> x")]
    ),
}


class On(nn.Module):
    """A layer, or a model, with edge weights if it takes any."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)  # type: ignore[no-any-return]


def both(network: PyGNetwork, x: Features, graph: Graph, soft: Tensor | None) -> list[list[Tensor]]:
    """Output and gradients, by sparse products and PyG's own way."""
    found = []
    for wanted in (True, False):
        network.fused.wanted = wanted
        out = network(x, graph, soft)
        trained = [*network.parameters(), *([] if soft is None else [soft])]
        projected = (out * randn(*out.shape, seed=3)).sum()
        found.append([out, *torch.autograd.grad(projected, trained, materialize_grads=True)])
    return found


def features(kind: str) -> Features:
    x = sparse_features(NODES, WIDE) if kind == "sparse" else Features(randn(NODES, WIDE))
    assert x.is_sparse == (kind == "sparse")
    return x


@pytest.mark.parametrize("soft", [True, False], ids=["soft", "hard"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs_and_gradients_are_those_of_gather_and_scatter(name: str, kind: str, soft: bool) -> None:
    graph = Graph.from_data(toy_data(loops=name != "Chebyshev"))
    scores = (randn(60, seed=1) + 1).requires_grad_() if soft else None
    fused, plain = both(PyGNetwork(On(seeded(LAYERS[name]))), features(kind), graph, scores)
    torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "SAGE projected"])
def test_no_message_is_written_down(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = PyGNetwork(On(seeded(LAYERS[name])))
    for part in network.modules():
        if isinstance(part, pyg.MessagePassing):
            monkeypatch.setattr(type(part), "message", None)
    network(features("sparse"), Graph.from_data(toy_data()), torch.ones(60))


def test_directed_graphs_with_isolated_nodes() -> None:
    data = toy_data(directed=True)
    data.edge_index = data.edge_index[:, 20:]
    graph, soft = Graph.from_data(data), (randn(40, seed=1) + 1).requires_grad_()
    for name in ("SAGE", "SAGE both ways", "GCN", "GAT"):
        torch.testing.assert_close(*both(PyGNetwork(On(seeded(LAYERS[name]))), features("sparse"), graph, soft))


class Weighed(nn.Module):
    """Edge weights that are trained."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.read = pyg.GCNConv(WIDE, OUT), nn.Linear(1, 1)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        weight = self.read(edge_weight.unsqueeze(1)).sigmoid().squeeze(1)
        return self.conv(x, edge_index, weight)  # type: ignore[no-any-return]


def test_edge_weights_may_be_trained() -> None:
    graph, soft = Graph.from_data(toy_data(edge_weight=per_edge())), (randn(60, seed=1) + 1).requires_grad_()
    fused, plain = both(PyGNetwork(seeded(Weighed)), features("dense"), graph, soft)
    torch.testing.assert_close(fused, plain)
    assert all(gradient.any() for gradient in fused)


class Louder(pyg.SAGEConv):  # type: ignore[misc]
    """A layer of its owner's."""

    def message(self, x_j: Tensor) -> Tensor:
        return 2 * x_j


def hooked() -> Any:
    layer = pyg.SAGEConv(WIDE, OUT)
    layer.register_message_forward_hook(lambda _layer, _inputs, out: 3 * out)
    return layer


def replaced() -> Any:
    layer = pyg.SAGEConv(WIDE, OUT)
    layer.message = lambda x_j: 3 * x_j
    return layer


UNUSUAL: dict[str, Callable[[], Any]] = {
    "subclass": lambda: Louder(WIDE, OUT),
    "hook": hooked,
    "replaced": replaced,
    "max": lambda: pyg.SAGEConv(WIDE, OUT, aggr="max"),
    "several": lambda: pyg.SAGEConv(WIDE, OUT, aggr=["mean", "sum"]),
    "decomposed": lambda: pyg.GCNConv(WIDE, OUT, decomposed_layers=2),
    "double": lambda: pyg.SAGEConv(WIDE, OUT).double(),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_layers_go_pygs_own_way(name: str) -> None:
    soft = (randn(60, seed=1) + 1).requires_grad_()
    fused, plain = both(PyGNetwork(On(seeded(UNUSUAL[name]))), features("dense"), Graph.from_data(toy_data()), soft)
    torch.testing.assert_close(fused, plain, rtol=0, atol=0)


def test_repeated_columns_go_pygs_own_way() -> None:
    data = toy_data()
    data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :7], data.edge_index[:, :7].flip(0)], dim=1)
    graph, soft = Graph.from_data(data, directed=False), (randn(60, seed=1) + 1).requires_grad_()
    fused, plain = both(PyGNetwork(On(seeded(LAYERS["SAGE"]))), features("dense"), graph, soft)
    torch.testing.assert_close(fused, plain, rtol=0, atol=0)


def test_linear_layers_may_be_called_by_name() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.own, self.theirs = pyg.GCNConv(8, OUT), nn.Linear(WIDE, 8), pyg.Linear(WIDE, 8)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.own(input=x) + self.theirs(x=x), edge_index)  # type: ignore[no-any-return]

    fused, plain = both(PyGNetwork(seeded(Named)), features("sparse"), Graph.from_data(toy_data()), None)
    torch.testing.assert_close(fused, plain)


def test_layers_are_as_pyg_made_them_between_two_runs() -> None:
    network = PyGNetwork(On(seeded(LAYERS["SAGE"])))
    before = {part: set(vars(part)) for part in network.module.modules()}
    graph, x = Graph.from_data(toy_data()), features("sparse")
    network(x, graph, torch.ones(60))
    with pytest.raises(RuntimeError):
        network(Features(randn(NODES, WIDE + 1)), graph)
    assert {part: set(vars(part)) for part in network.module.modules()} == before
    twin = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert not network(x, graph).any()
    assert twin(x, graph).any()


def test_equal_searches_give_equal_tickets() -> None:
    data, model = toy_data(), seeded(lambda: pyg.GraphSAGE(WIDE, 8, 2, OUT, dropout=0.5))
    data.x = features("sparse").dense
    one, two = quick_ticket(model, data), quick_ticket(model, data)
    assert one.scores == two.scores
    assert all(torch.equal(value, two.weights[name]) for name, value in one.weights.items())
