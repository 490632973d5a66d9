import pytest
import torch
from torch_geometric.nn import GCNConv

from fastglt.graphs.features import Features
from fastglt.models.gcn.network import GCN, GCNLayer
from fastglt.models.gcn.twin import StockGCN
from tests.helpers import house, randn
from tests.models.references import (
    FEATURES,
    GRAPHS,
    HIDDEN,
    IN,
    OUT,
    assert_same,
    randomise,
    score_messages,
)

LAYER = {"weight": "lin.weight", "bias": "bias"}


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("features", FEATURES)
def test_a_layer_is_pygs(kind: str, features: str) -> None:
    graph, x = GRAPHS[kind], FEATURES[features]
    (hop,) = graph.hops(None, depth=1)
    ours, theirs = GCNLayer(IN, HIDDEN, 0, "layer"), GCNConv(IN, HIDDEN)
    randomise(ours)
    assert_same(ours, theirs, LAYER, lambda: ours(x.of(None), hop), lambda: theirs(x.dense, graph.edge_index))


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("features", FEATURES)
def test_the_network_is_pygs(kind: str, features: str) -> None:
    graph, x = GRAPHS[kind], FEATURES[features]
    ours = GCN(IN, HIDDEN, OUT).eval()
    theirs = StockGCN.of(ours.spec).eval()
    randomise(ours)
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), lambda: theirs(x.dense, graph.edge_index))


def test_the_network_works_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "plain")
    graph, x = house(), Features(randn(7, IN, dtype=torch.float64))
    ours = GCN(IN, HIDDEN, OUT).double().eval()
    theirs = StockGCN.of(ours.spec).double().eval()
    run = lambda: theirs(x.dense, graph.edge_index)  # noqa: E731
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), run, tolerance=1e-6)  # the norm is single


@pytest.mark.parametrize("kind", ["undirected", "directed", "looped"])
def test_soft_edge_masks_multiply_the_messages(kind: str) -> None:
    graph, x = GRAPHS[kind], FEATURES["dense"]
    (hop,) = graph.hops(None, depth=1)
    mine, other = (randn(graph.num_edges, seed=8).requires_grad_() for _ in range(2))
    ours, theirs = GCNLayer(IN, HIDDEN, 0, "layer"), GCNConv(IN, HIDDEN)
    score_messages(theirs, graph, other, added_loops=True)
    assert_same(ours, theirs, LAYER, lambda: ours(x.of(None), hop, mine), lambda: theirs(x.dense, graph.edge_index))
    projection = randn(7, HIDDEN, seed=9)
    (gradient,) = torch.autograd.grad((ours(x.of(None), hop, mine) * projection).sum(), mine)
    (expected,) = torch.autograd.grad((theirs(x.dense, graph.edge_index) * projection).sum(), other)
    torch.testing.assert_close(gradient, expected)


def test_the_weight_matrices_are_prunable() -> None:
    assert GCN(IN, HIDDEN, OUT).prunable == ("layer1.weight", "layer2.weight")
