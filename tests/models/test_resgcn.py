"""ResGCN against PyG's DeepGCNLayer and GENConv, and what only a deep network shows."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models.recompute import recomputed
from fastglt.models.resgcn.fused import Room
from fastglt.models.resgcn.network import ResGCN
from fastglt.models.resgcn.twin import StockResGCN
from tests.helpers import randn
from tests.models.references import FEATURES, GRAPHS, HIDDEN, IN, OUT

VARIANTS: dict[str, dict[str, Any]] = {
    "as on arxiv": {},
    "as on proteins": {
        "norm": "layer",
        "mlp_layers": 2,
        "temperature": 1.0,
        "learn_temperature": True,
        "self_loops": False,
    },
    "deeper MLPs": {"mlp_layers": 3, "num_layers": 3},
    "one layer": {"num_layers": 1, "norm": "layer"},
}


def network(**options: Any) -> ResGCN:
    return ResGCN(IN, HIDDEN, OUT, **{"num_layers": 5, "dropout": 0.0, **options})


def results(outputs: Tensor, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    gradients = torch.autograd.grad(
        (outputs * randn(*outputs.shape, seed=42).double()).sum(), [*parameters.values()]
    )
    return dict(zip(parameters, gradients, strict=True))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_is_pygs(variant: str, kind: str, training: bool) -> None:
    graph, x = GRAPHS[kind], FEATURES["dense"].dense.double()
    ours = network(**VARIANTS[variant]).double().train(training)
    theirs = StockResGCN.of(ours.spec).double().train(training)
    theirs.load_weights(ours)
    out, expected = ours(Features(x), graph), theirs(x, graph.edge_index)
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)  # self-loops are single
    mine, other = results(out, dict(ours.named_parameters())), results(expected, dict(theirs.named_parameters()))
    if "temperatures" in mine:
        for i, gradient in enumerate(mine.pop("temperatures")):
            torch.testing.assert_close(
                gradient, other[f"layers.{i}.conv.aggr_module.t"].squeeze(), rtol=1e-5, atol=1e-6
            )
    for name, gradient in mine.items():
        want = other[theirs.names[name]]
        torch.testing.assert_close(gradient.T if gradient.dim() == 2 else gradient, want, rtol=1e-5, atol=1e-6)
    for name, buffer in ours.named_buffers():  # running means are counted once, although layers run twice
        torch.testing.assert_close(buffer, theirs.get_buffer(theirs.names[name]), rtol=1e-6, atol=1e-6)


def with_features(graph: Graph) -> Graph:
    """The same graph with two features for each column, the same in both directions; loops have some as well."""
    rows = randn(graph.num_edges + graph.num_nodes, 2, seed=9)
    loop = graph.edge_index[0] == graph.edge_index[1]
    place = torch.where(loop, graph.num_edges + graph.edge_index[0], graph.column_edge)
    return Graph.from_edge_index(graph.edge_index, graph.num_nodes, directed=graph.directed, edge_attr=rows[place])


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("kind", GRAPHS)
def test_with_edge_features_it_is_pygs(kind: str, self_loops: bool) -> None:
    graph, x = with_features(GRAPHS[kind]), FEATURES["dense"].dense.double()
    options = {**VARIANTS["as on proteins"], "self_loops": self_loops, "edge_channels": 2, "num_layers": 3}
    ours = network(**options).double().train()
    theirs = StockResGCN.of(ours.spec).double().train()
    theirs.load_weights(ours)
    assert graph.edge_attr is not None
    out, expected = ours(Features(x), graph), theirs(x, graph.edge_index, graph.edge_attr.double())
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=1e-6)
    mine, other = results(out, dict(ours.named_parameters())), results(expected, dict(theirs.named_parameters()))
    mine.pop("temperatures")
    assert {"layers.0.weight_edges", "layers.2.bias_edges"} <= set(mine)
    for name, gradient in mine.items():
        want = other[theirs.names[name]]
        torch.testing.assert_close(gradient.T if gradient.dim() == 2 else gradient, want, rtol=1e-5, atol=1e-6)


def test_edge_features_go_with_their_edges() -> None:
    graph, x = with_features(GRAPHS["looped"]), FEATURES["dense"]
    model = network(edge_channels=2).eval()
    mask = Mask(torch.arange(graph.num_edges) % 3 != 0)
    pruned = graph.prune(mask)
    fresh = Graph.from_edge_index(pruned.edge_index, 7, directed=False, edge_attr=pruned.edge_attr)
    torch.testing.assert_close(model(x, pruned), model(x, fresh))
    torch.testing.assert_close(model(x, graph, mask.kept.float()), model(x, fresh), rtol=1e-5, atol=1e-6)
    nodes = torch.tensor([5, 2])
    torch.testing.assert_close(model(x, pruned, None, nodes), model(x, pruned)[nodes])


def test_edge_features_must_be_as_many_as_channels() -> None:
    graph = with_features(GRAPHS["undirected"])
    with pytest.raises(InputError, match=r"features that the data's edges have, 2, or 0 \(got 8\)"):
        network(edge_channels=8).check_fits(FEATURES["dense"], graph, OUT, soft_edges=True)
    with pytest.raises(InputError, match=r"features that the data's edges have, 0, or 0 \(got 8\)"):
        network(edge_channels=8)(FEATURES["dense"], GRAPHS["undirected"])
    assert graph.edge_attr is not None
    one_way = graph.edge_attr.clone()
    one_way[0] += 1
    other = Graph.from_edge_index(graph.edge_index, 7, directed=False, edge_attr=one_way)
    with pytest.raises(InputError, match=r"same features in both directions"):
        network(edge_channels=2)(FEATURES["dense"], other)


def test_stock_pyg_takes_a_matrix_as_well() -> None:
    graph, x = GRAPHS["directed"], FEATURES["dense"].dense
    theirs = StockResGCN.of(network().spec).eval()
    matrix = torch.zeros(7, 7)
    matrix[graph.edge_index[1], graph.edge_index[0]] = 1
    torch.testing.assert_close(theirs(x, matrix.to_sparse_csr()), theirs(x, graph.edge_index))


def test_a_pruned_edge_has_no_influence_28_layers_deep() -> None:
    pairs = torch.randint(0, 30, (2, 60), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], 1), 30, directed=False)
    bridges = (graph.edges < 15).sum(0) == 1  # between the first half of the nodes and the second
    model, x = ResGCN(IN, HIDDEN, OUT).eval(), randn(30, IN)
    assert model.num_layers == 28
    other = x.clone()
    other[15:] *= 1000
    for cut, same in ((graph.prune(Mask(~bridges)), True), (graph, False)):
        assert torch.equal(model(Features(x), cut)[:15], model(Features(other), cut)[:15]) == same
    score = (~bridges).float()  # a soft mask of 0 is exactly a removed edge
    one, two = (model(Features(each), graph, score)[:15] for each in (x, other))
    assert torch.equal(one, two)
    torch.testing.assert_close(one, model(Features(x), graph.prune(Mask(~bridges)))[:15], rtol=1e-5, atol=1e-6)


def test_soft_masks_multiply_by_their_size() -> None:
    graph, model, x = GRAPHS["undirected"], network().eval(), FEATURES["dense"]
    score = randn(graph.num_edges, seed=8)
    torch.testing.assert_close(model(x, graph, score), model(x, graph, score.abs()))


def test_some_nodes_have_the_outputs_they_have_among_all() -> None:
    pairs = torch.randint(0, 200, (2, 300), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], 1), 200, directed=False)
    model, x, nodes = network(num_layers=6).eval(), Features(randn(200, IN)), torch.tensor([3, 77, 199])
    torch.testing.assert_close(model(x, graph, None, nodes), model(x, graph)[nodes])
    hops = graph.hops(nodes, depth=6)
    assert hops[-1].csr.num_rows == 3
    assert hops[0] is hops[1]  # nearly all send: all do, and the graph is kept once
    torch.testing.assert_close(
        model(x, graph.prune(Mask(torch.arange(graph.num_edges) % 2 == 0)), None, nodes),
        model(x, graph.prune(Mask(torch.arange(graph.num_edges) % 2 == 0)))[nodes],
    )


def test_dropout_is_drawn_once_for_both_passes() -> None:
    graph, x, model = GRAPHS["undirected"], Features(randn(7, IN)), network(dropout=0.5, norm="layer").train()
    weight = model.weight_readout

    def loss() -> Tensor:
        torch.manual_seed(3)
        return model(x, graph).square().sum()  # type: ignore[no-any-return]

    target = model.layers[0].weights[0]  # type: ignore[index]
    (gradient,) = torch.autograd.grad(loss(), target)
    step = torch.zeros_like(target)
    step[0, 0] = 1e-3
    with torch.no_grad():
        target += step
        above = float(loss())
        target -= 2 * step
        below = float(loss())
    assert float(gradient[0, 0]) == pytest.approx((above - below) / 2e-3, rel=0.02, abs=1e-3)
    assert weight.grad is None


def test_for_gradients_a_layer_keeps_its_input_alone() -> None:
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    graph, x, model = GRAPHS["undirected"], Features(randn(7, IN)), network(num_layers=9).train()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(x, graph)
    rows = {tensor.data_ptr() for tensor in kept if tensor.shape == (7, HIDDEN)}
    assert len(rows) <= 9 + 2  # of each layer, of the last norm and of the read-out


def test_what_is_recomputed_has_the_gradients_of_what_is_not() -> None:
    def layer(x: Tensor, factor: Tensor, nothing: None) -> Tensor:
        return (x * factor).sin()

    x, factor = randn(4, 3).requires_grad_(), randn(4, 3, seed=1)  # one that needs no gradient
    (ours,) = torch.autograd.grad(recomputed(layer, x, factor, None).sum(), x)
    (plain,) = torch.autograd.grad(layer(x, factor, None).sum(), x)
    assert torch.equal(ours, plain)


def test_prunable_are_matrices_alone() -> None:
    names = network(num_layers=2, mlp_layers=2, learn_temperature=True).prunable
    assert names == (
        "weight_encoder",
        "weight_readout",
        *(f"layers.{i}.weights.{j}" for i in range(2) for j in range(2)),
    )


def test_wrong_options_are_named() -> None:
    with pytest.raises(InputError, match=r"unknown norm \(got 'group'\). Known: batch, layer"):
        network(norm="group")
    with pytest.raises(InputError, match=r"mlp_layers must be at least 1 \(got 0\)"):
        network(mlp_layers=0)
    with pytest.raises(InputError, match=r"num_layers must be at least 1 \(got 0\)"):
        network(num_layers=0)


def test_what_is_kept_while_there_is_room_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, x, model = GRAPHS["undirected"], FEATURES["dense"], network(dropout=0.5).train()
    score, found = randn(graph.num_edges, seed=8).requires_grad_(), []
    for left in (2**20, 0):
        monkeypatch.setattr(Room.__init__, "__defaults__", (left,))
        torch.manual_seed(3)
        out = model(x, graph, score)
        found.append(torch.autograd.grad(out.square().sum(), [score, *model.parameters()]))
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("spread", [1.0, 900.0])  # the second is beyond the range of an exponential
@pytest.mark.parametrize("variant", ["as on arxiv", "as on proteins"])
def test_gradients_of_a_layer_for_some_receivers(variant: str, spread: float) -> None:
    """Of the soft edge mask and the temperature too."""
    pairs = torch.randint(0, 12, (2, 20), generator=torch.Generator().manual_seed(0))
    graph = Graph.from_edge_index(torch.cat([pairs, pairs.flip(0)], 1), 12, directed=False)
    layer = network(**{**VARIANTS[variant], "num_layers": 2}).double().train().layers[int(spread == 1)]
    hop = graph.hops(torch.tensor([1, 3, 4, 8]), depth=1)[0]
    h = randn(hop.csr.num_columns, HIDDEN, dtype=torch.float64)
    h[0] *= spread
    score = randn(graph.num_edges, seed=8, dtype=torch.float64).abs().add(0.1)

    def run(h: Tensor, score: Tensor, t: Tensor) -> Tensor:
        torch.manual_seed(1)
        values = hop.weigh(torch.ones(hop.csr.num_entries, dtype=torch.float64), score)
        return layer(h, hop, values, t, 0.3, Room())  # type: ignore[no-any-return]

    given = h.requires_grad_(), score.requires_grad_(), torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(run, given)
