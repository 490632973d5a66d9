import pytest
import torch
from torch_geometric.nn import GATConv

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.models.gat.network import GAT, GATLayer
from fastglt.models.gat.twin import StockGAT
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

LAYER = {
    "weight": "lin.weight",
    "attention_source": "att_src",
    "attention_target": "att_dst",
    "bias": "bias",
}


def layer(width: int, heads: int) -> GATLayer:
    made = GATLayer(IN, width, heads, dropout=0.6, slope=0.2, seed=0, purpose="layer")
    randomise(made)
    return made.eval()


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize(("width", "heads"), [(4, 1), (4, 3), (16, 3)])  # 16: wider than a row of x
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("features", FEATURES)
def test_a_layer_is_pygs(width: int, heads: int, kind: str, features: str) -> None:
    graph, x = GRAPHS[kind], FEATURES[features]
    (hop,) = graph.hops(None, depth=1)
    ours, theirs = layer(width, heads), GATConv(IN, width, heads)
    assert_same(ours, theirs, LAYER, lambda: ours(x.of(None), hop), lambda: theirs(x.dense, graph.edge_index))


@pytest.mark.parametrize("heads", [1, 8])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("features", FEATURES)
def test_the_network_is_pygs(heads: int, kind: str, features: str) -> None:
    graph, x = GRAPHS[kind], FEATURES[features]
    ours = GAT(IN, HIDDEN, OUT, heads=heads).eval()
    theirs = StockGAT.of(ours.spec).eval()
    randomise(ours)
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), lambda: theirs(x.dense, graph.edge_index))


def test_the_network_works_in_double_precision() -> None:
    graph, x = house(), Features(randn(7, IN, dtype=torch.float64))
    ours = GAT(IN, HIDDEN, OUT).double().eval()
    theirs = StockGAT.of(ours.spec).double().eval()
    run = lambda: theirs(x.dense, graph.edge_index)  # noqa: E731
    assert_same(ours, theirs, theirs.names, lambda: ours(x, graph), run, tolerance=1e-12)


@pytest.mark.parametrize("kind", ["undirected", "directed", "looped"])
def test_soft_edge_masks_multiply_the_messages(kind: str) -> None:
    graph, x = GRAPHS[kind], FEATURES["dense"]
    (hop,) = graph.hops(None, depth=1)
    mine, other = (randn(graph.num_edges, seed=8).requires_grad_() for _ in range(2))
    ours, theirs = layer(4, 3), GATConv(IN, 4, 3)
    score_messages(theirs, graph, other, added_loops=True)
    assert_same(ours, theirs, LAYER, lambda: ours(x.of(None), hop, mine), lambda: theirs(x.dense, graph.edge_index))
    projection = randn(7, 12, seed=9)
    (gradient,) = torch.autograd.grad((ours(x.of(None), hop, mine) * projection).sum(), mine)
    (expected,) = torch.autograd.grad((theirs(x.dense, graph.edge_index) * projection).sum(), other)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)


def test_attention_is_dropped_out_in_training() -> None:
    made, x = layer(4, 3), FEATURES["dense"].of(None)
    (hop,) = house().hops(None, depth=1)
    calm = made(x, hop)
    made.train()
    torch.manual_seed(0)
    assert not torch.equal(made(x, hop), calm)


def test_only_matrices_are_prunable_unless_attention_is_asked_for() -> None:
    matrices = ("layer1.weight", "layer2.weight")
    vectors = tuple(f"layer{i}.attention_{end}" for i in (1, 2) for end in ("source", "target"))
    assert GAT(IN, HIDDEN, OUT).prunable == matrices
    assert GAT(IN, HIDDEN, OUT, prune_attention=True).prunable == matrices + vectors


def test_a_layer_without_heads_is_refused() -> None:
    with pytest.raises(InputError, match=r"heads must be at least 1 \(got 0\)"):
        GAT(IN, HIDDEN, OUT, heads=0)
