import pytest
import torch
from torch import nn
from torch_geometric.nn import GINConv

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.models.gin.network import GIN, GINLayer
from fastglt.models.gin.twin import StockGIN
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

SHALLOW = {"eps": "eps", "weight": "nn.0.weight", "bias": "nn.0.bias"}
DEEP = SHALLOW | {"weights.0": "nn.2.weight", "biases.0": "nn.2.bias"}
variants = pytest.mark.parametrize("depth", [1, 2])
aggregations = pytest.mark.parametrize("aggregation", ["mean", "sum"])


def conv(in_channels: int, out_channels: int, depth: int, aggregation: str) -> GINConv:
    mlp = [nn.Linear(in_channels, out_channels)]
    deeper = [nn.ReLU(), nn.Linear(out_channels, out_channels)] if depth == 2 else []
    return GINConv(nn.Sequential(*mlp, *deeper), train_eps=True, aggr=aggregation)


def layer(depth: int, aggregation: str) -> GINLayer:
    made = GINLayer(IN, HIDDEN, depth=depth, aggregation=aggregation, seed=0, purpose="layer")
    randomise(made)
    return made


@pytest.mark.usefixtures("backend")
@variants
@aggregations
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("features", FEATURES)
def test_a_layer_is_pygs(depth: int, aggregation: str, kind: str, features: str) -> None:
    graph, x = GRAPHS[kind], FEATURES[features]
    (hop,) = graph.hops(None, depth=1)
    ours, theirs = layer(depth, aggregation), conv(IN, HIDDEN, depth, aggregation)
    names = SHALLOW if depth == 1 else DEEP
    assert_same(ours, theirs, names, lambda: ours(x.of(None), hop), lambda: theirs(x.dense, graph.edge_index))


@variants
@aggregations
@pytest.mark.parametrize("kind", GRAPHS)
def test_the_network_is_pygs(depth: int, aggregation: str, kind: str) -> None:
    graph, x = GRAPHS[kind], FEATURES["sparse"]
    ours = GIN(IN, HIDDEN, OUT, depth=depth, aggregation=aggregation).eval()
    randomise(ours)
    theirs = StockGIN.of(ours.spec).eval()
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), lambda: theirs(x.dense, graph.edge_index))


def test_the_network_works_in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "plain")
    graph, x = house(), Features(randn(7, IN, dtype=torch.float64))
    ours = GIN(IN, HIDDEN, OUT).double().eval()
    theirs = StockGIN.of(ours.spec).double().eval()
    run = lambda: theirs(x.dense, graph.edge_index)  # noqa: E731
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), run, tolerance=1e-6)  # the norm is single


@aggregations
@pytest.mark.parametrize("kind", ["undirected", "directed", "looped"])
def test_soft_edge_masks_multiply_the_messages(aggregation: str, kind: str) -> None:
    graph, x = GRAPHS[kind], FEATURES["dense"]
    (hop,) = graph.hops(None, depth=1)
    mine, other = (randn(graph.num_edges, seed=8).requires_grad_() for _ in range(2))
    ours, theirs = layer(1, aggregation), conv(IN, HIDDEN, 1, aggregation)
    score_messages(theirs, graph, other, added_loops=False)
    assert_same(
        ours, theirs, SHALLOW, lambda: ours(x.of(None), hop, mine), lambda: theirs(x.dense, graph.edge_index)
    )
    projection = randn(7, HIDDEN, seed=9)
    (gradient,) = torch.autograd.grad((ours(x.of(None), hop, mine) * projection).sum(), mine)
    (expected,) = torch.autograd.grad((theirs(x.dense, graph.edge_index) * projection).sum(), other)
    torch.testing.assert_close(gradient, expected)


def test_every_matrix_is_prunable_but_eps_and_biases_are_not() -> None:
    assert GIN(IN, HIDDEN, OUT).prunable == ("weight_readout", "layer1.weight", "layer2.weight")
    deep = ("weight_readout", "layer1.weight", "layer1.weights.0", "layer2.weight", "layer2.weights.0")
    assert GIN(IN, HIDDEN, OUT, depth=2).prunable == deep


def test_an_unknown_aggregation_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown aggregation \(got 'max'\); .* Known: mean, sum"):
        GIN(IN, HIDDEN, OUT, aggregation="max")


def test_a_layer_without_matrices_is_refused() -> None:
    with pytest.raises(InputError, match=r"depth must be at least 1 \(got 0\)"):
        GIN(IN, HIDDEN, OUT, depth=0)
