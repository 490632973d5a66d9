"""A predictor gives what the masked network gives: on any graph, any back end, for some nodes, for new ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from fastglt import Budget, InputError, Ticket, compile_ticket, find_ticket
from fastglt.deploy.layouts import for_each
from fastglt.deploy.predictor import Predictor
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.kernels.frozen import StoredRows
from fastglt.models import GAT, GCN, GIN, Backbone, programs
from fastglt.models.resgcn.network import ResGCN
from tests.helpers import both_ways, house, randn
from tests.toy_data import NODES, USER_MODELS, per_edge, quick_ticket, seeded, toy_data

LAYOUTS = ("whole rows", "strips", "dense")
BUDGET = Budget(oneshot_epochs=3, denoise_epochs=6, interval=2, lr=0.01)


def pruned(network: Backbone, share: float, seed: int) -> Backbone:
    """Weights and biases drawn anew, most of the weights zero."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in network.named_parameters():
            value.copy_(torch.randn(value.shape, generator=draw))
            if name in network.prunable:
                value.mul_(torch.rand(value.shape, generator=draw) < share)
    return network.eval()


_OPTIONS: dict[str, dict[str, Any]] = {"gat": {"heads": 3}, "resgcn": {"num_layers": 2}}


def backbone(name: str, features: int, seed: int = 0, share: float = 0.3, **more: Any) -> Backbone:
    """A narrow network of which most weights are gone."""
    shape = {"in_channels": features, "hidden": 6, "out_channels": 3, "seed": seed}
    kinds: dict[str, Any] = {"gcn": GCN, "gin": GIN, "gat": GAT, "resgcn": ResGCN}
    return pruned(kinds[name](**shape, **_OPTIONS.get(name, {}), **more), share, seed)


def frozen(network: Backbone, graph: Graph, x: Features, score: Tensor | None, layout: str) -> Predictor:
    program = network.program()
    assert program is not None
    layouts = for_each(program, layout)
    return Predictor(network=network, graph=graph, x=x, score=score, program=program, layouts=layouts)


def word_features(nodes: int, width: int, seed: int) -> Features:
    draw = torch.Generator().manual_seed(seed)
    dense = torch.randn(nodes, width, generator=draw)
    return Features(dense * (torch.rand(nodes, width, generator=draw) < 0.4))


def assert_same(predictor: Predictor, nodes: Tensor | None = None) -> None:
    with torch.no_grad():
        expected = predictor.network(predictor.x, predictor.graph, predictor.score, nodes)
    torch.testing.assert_close(predictor.logits(nodes), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
def test_few_nodes_touch_their_neighbourhood_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Graph.from_edge_index(both_ways([(node, node + 1) for node in range(29)]), num_nodes=30)
    predictor = frozen(backbone(name, 5), path, word_features(30, 5, seed=1), None, "strips")
    touched: list[list[int]] = []
    take = StoredRows.take

    def noting(rows: StoredRows, nodes: Tensor) -> StoredRows:
        touched.append(nodes.tolist())
        return take(rows, nodes)

    monkeypatch.setattr(StoredRows, "take", noting)
    assert_same(predictor, torch.tensor([10, 20]))
    assert touched
    assert all(nodes == [8, 9, 10, 11, 12, 18, 19, 20, 21, 22] for nodes in touched)  # two steps away at most


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("hidden", "heads"), [(70, 3), (8, 8)])
def test_heads_by_parts_and_many_classes(
    layout: str, hidden: int, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "_UNITS", 64)  # one or four heads in a part
    network = pruned(GAT(9, hidden, 11, heads=heads, seed=1), 0.4, 1)
    with torch.no_grad():
        network.get_parameter("layer2.weight")[hidden : 2 * hidden] = 0  # nobody reads the second head
    graph = house()
    predictor = frozen(network, graph, word_features(7, 9, 1), randn(graph.num_edges, seed=4).sigmoid(), layout)
    assert predictor.program is not None
    assert len(predictor.program.matrices) == 1 + (3 if heads == 3 else 2)
    assert_same(predictor)
    assert_same(predictor, torch.tensor([6, 2]))


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
def test_on_every_back_end(name: str, layout: str) -> None:
    for directed in (False, True):
        graph = house(directed=directed)
        score = randn(graph.num_edges, seed=4).abs()
        network, x = backbone(name, 9), word_features(7, 9, 1)
        for chosen in (None, score):
            predictor = frozen(network, graph, x, chosen, layout)
            assert_same(predictor)
            assert_same(predictor, torch.tensor([6, 2, 2]))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    nodes = draw(st.integers(1, 12))
    pairs = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), max_size=30))
    index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    directed = draw(st.booleans())
    return Graph.from_edge_index(index if directed else torch.cat([index, index.flip(0)], 1), nodes)


@given(graphs(), st.sampled_from(["gcn", "gin", "gat"]), st.floats(0, 1), st.integers(0, 999), st.booleans())
@settings(max_examples=100, deadline=None)
def test_on_any_graph(graph: Graph, name: str, share: float, seed: int, scored: bool) -> None:
    network, x = backbone(name, 8, seed, share), word_features(graph.num_nodes, 8, seed)
    score = randn(graph.num_edges, seed=seed).sigmoid() if scored else None
    predictor = frozen(network, graph, x, score, LAYOUTS[seed % len(LAYOUTS)])
    assert_same(predictor)
    assert_same(predictor, torch.tensor([seed % graph.num_nodes]))


def test_units_without_an_end_are_left_out_and_constants_are_kept() -> None:
    network, x = backbone("gcn", 9, share=1.0), word_features(7, 9, 1)
    assert isinstance(network, GCN)
    with torch.no_grad():
        network.layer1.weight[:, 0] = 0  # nothing leads in: relu(bias) at every node
        network.layer1.bias[0] = 2.5
        network.layer2.weight[1] = 0  # nothing leads out
        network.layer1.weight[4] = 0  # nobody reads this feature
    predictor = frozen(network, house(), x, None, "strips")
    assert predictor.live_units == 4
    assert predictor.used_features == 8
    assert_same(predictor)


def test_a_network_without_any_weight_still_has_its_biases() -> None:
    for name in ("gcn", "gin", "gat"):
        predictor = frozen(backbone(name, 9, share=0.0), house(), word_features(7, 9, 1), None, "whole rows")
        assert predictor.live_units == 0
        assert_same(predictor)


def data(nodes: int = 40, seed: int = 0) -> Data:
    draw = torch.Generator().manual_seed(seed)
    index = torch.randint(nodes, (2, 80), generator=draw)
    masks = {f"{name}_mask": torch.arange(nodes) % 3 == i for i, name in enumerate(("train", "val", "test"))}
    x = word_features(nodes, 12, seed).dense
    y = torch.arange(nodes) % 3
    return Data(x=x, y=y, edge_index=torch.cat([index, index.flip(0)], 1), **masks)


@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
def test_a_found_ticket_predicts_as_its_search_scored(name: str) -> None:
    given_data = data()
    ticket = find_ticket(name, given_data, weight_sparsity=0.6, hidden=8, budget=BUDGET, isolated=False)
    predictor = compile_ticket(ticket, given_data)
    assert predictor.graph.num_edges == ticket.masks.edges.count
    assert predictor.trials
    assert_same(predictor)
    test = given_data.test_mask.nonzero().squeeze(1)
    right = (predictor.predict(test) == given_data.y[test]).float().mean()
    assert float(right) == pytest.approx(ticket.scores["search_test"])
    again = compile_ticket(ticket, given_data, layout="whole rows")
    assert again.trials is None
    torch.testing.assert_close(again.logits(), predictor.logits(), rtol=0, atol=1e-5)


class Convolution(torch.nn.Module):
    """A user's model."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = GCNConv(12, 8), GCNConv(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden: Tensor = self.conv1(x, edge_index).relu()
        found: Tensor = self.conv2(hidden, edge_index)
        return found


def test_a_users_model_runs_on_the_smaller_graph() -> None:
    given_data, model = data(), Convolution()
    ticket = find_ticket(model, given_data, weight_sparsity=0.6, budget=BUDGET, isolated=False)
    predictor = compile_ticket(ticket, given_data, model)
    assert predictor.live_units is None
    assert predictor.about()["compiled"] is False
    assert_same(predictor)
    test = given_data.test_mask.nonzero().squeeze(1)
    right = (predictor.predict(test) == given_data.y[test]).float().mean()
    assert float(right) == pytest.approx(ticket.scores["search_test"])
    assert_same(predictor.with_nodes(torch.rand(1, 12), torch.tensor([[40], [3]])))


def test_other_features_are_taken_as_they_are() -> None:
    predictor = frozen(backbone("gcn", 9), house(), word_features(7, 9, 1), None, "strips")
    other = word_features(7, 9, 2).dense
    changed = predictor.with_features(other)
    torch.testing.assert_close(changed.x.dense, other)
    assert_same(changed)
    assert not torch.equal(changed.logits(), predictor.logits())


@pytest.mark.parametrize("name", ["gcn", "gin", "gat"])
@pytest.mark.parametrize("layout", ["strips", "dense"])
@pytest.mark.parametrize("directed", [False, True])
def test_new_nodes_join_with_their_edges(name: str, layout: str, directed: bool) -> None:
    graph = house(directed=directed)
    score = randn(graph.num_edges, seed=4).sigmoid()
    predictor = frozen(backbone(name, 9), graph, word_features(7, 9, 1), score, layout)
    new = word_features(2, 9, 5).dense
    grown = predictor.with_nodes(new, torch.tensor([[7, 7, 1], [0, 8, 8]]))
    assert grown.graph.num_nodes == 9
    assert grown.graph.num_edges == graph.num_edges + 3
    assert_same(grown)
    assert_same(grown, torch.tensor([8]))
    assert_same(grown.with_nodes(new[:1], torch.tensor([[9], [7]])))
    old = {tuple(edge): float(value) for edge, value in zip(graph.edges.T.tolist(), score, strict=True)}
    for edge, value in zip(grown.graph.edges.T.tolist(), grown.score, strict=True):  # type: ignore[arg-type]
        assert float(value) == old.get(tuple(edge), 1.0)
    far = torch.tensor([5])  # more than two hops from any new node, and from any degree that changed
    if not directed:
        lonely = predictor.with_nodes(new, torch.zeros(2, 0, dtype=torch.int64))
        torch.testing.assert_close(lonely.logits(far), predictor.logits(far))
        torch.testing.assert_close(predictor.with_nodes(new, [[], []]).logits(), lonely.logits())


def test_what_does_not_fit_is_refused() -> None:
    predictor = frozen(backbone("gcn", 9), house(), word_features(7, 9, 1), None, "dense")
    with pytest.raises(InputError, match=r"nodes must lie in 0 … 6 \(got 7\)"):
        predictor.logits([3, 7])
    with pytest.raises(InputError, match="whole numbers"):
        predictor.logits(torch.tensor([0.5]))
    with pytest.raises(InputError, match=r"shape \[7, 9\] \(got \[7, 8\]\)"):
        predictor.with_features(torch.rand(7, 8))
    with pytest.raises(InputError, match="finite"):
        predictor.with_features(torch.full((7, 9), torch.nan))
    with pytest.raises(InputError, match="finite in float32"):
        predictor.with_features(torch.full((7, 9), 1e39, dtype=torch.float64))
    with pytest.raises(InputError, match=r"must be a dense tensor \(got torch.sparse_coo\)"):
        predictor.with_features(torch.rand(7, 9).to_sparse())
    with pytest.raises(InputError, match=r"one of the new nodes, 7 … 7"):
        predictor.with_nodes(torch.rand(1, 9), both_ways([(0, 5)]))
    with pytest.raises(InputError, match="node ids"):
        predictor.with_nodes(torch.rand(1, 9), torch.tensor([[8], [0]]))
    with pytest.raises(InputError, match=r"shape \[nodes, 9\] \(got \[9\]\)"):
        predictor.with_nodes(torch.rand(9), torch.tensor([[7], [0]]))
    with pytest.raises(InputError, match=r"of shape \[2, edges\] \(got shape \(1, 2\)"):
        predictor.with_nodes(torch.rand(1, 9), torch.tensor([[7, 0]]))
    ticket = find_ticket("gcn", data(), weight_sparsity=0.6, hidden=8, budget=BUDGET, isolated=False)
    with pytest.raises(InputError, match="unknown layout"):
        compile_ticket(ticket, data(), layout="fast")
    with pytest.raises(InputError, match="a graph with"):
        compile_ticket(ticket, data(seed=1))


@pytest.mark.parametrize("model", ["gcn", "gin", "gat", "resgcn"])
def test_no_nodes_give_no_rows(model: str) -> None:
    predictor = frozen(backbone(model, 9), house(), word_features(7, 9, 1), None, "strips")
    assert predictor.logits([]).shape == (0, 3)


def no_initial_weights() -> dict[str, Tensor]:
    pytest.fail("Θ0 is of no use for a prediction")


def test_a_ticket_file_alone_is_enough_for_a_users_model(tmp_path: Path) -> None:
    given_data, model = toy_data(), seeded(USER_MODELS["GraphSAGE"])
    ticket = quick_ticket(model, given_data, isolated=False)
    expected = compile_ticket(ticket, given_data, model, layout="whole").logits()
    ticket.save(tmp_path / "t.safetensors")
    (tmp_path / "init.safetensors").unlink()
    fresh = seeded(USER_MODELS["GraphSAGE"], seed=5)
    predictor = compile_ticket(Ticket.load(tmp_path / "t.safetensors"), given_data, fresh, layout="whole")
    torch.testing.assert_close(predictor.logits(), expected)


def test_initial_weights_are_not_looked_at() -> None:
    ticket = replace(quick_ticket(isolated=False), load_initial=no_initial_weights)
    assert_same(compile_ticket(ticket, toy_data(), layout="dense"))


def test_a_ticket_without_all_weights_is_refused() -> None:
    for model, missing in (("gcn", "layer1.bias"), (seeded(USER_MODELS["GCN"]), "convs.0.bias")):
        ticket = quick_ticket(model, isolated=False)
        weights = {name: value for name, value in ticket.weights.items() if name != missing}
        with pytest.raises(InputError, match=rf"the one the ticket was found with, .*Missing key.* \"{missing}"):
            compile_ticket(
                replace(ticket, weights=weights), toy_data(), model if isinstance(model, torch.nn.Module) else None
            )


@pytest.mark.parametrize("model", ["gcn", GIN(6, 8, 3, depth=2)], ids=["gcn", "deep gin"])
@pytest.mark.parametrize("width", [5, 7])
def test_features_of_another_width_are_refused(model: Any, width: int) -> None:
    ticket, other = quick_ticket(model, isolated=False), toy_data()
    predictor = compile_ticket(ticket, other, layout="dense")
    with pytest.raises(InputError, match=rf"must have shape \[30, 6\] \(got \[30, {width}\]\)"):
        predictor.with_features(torch.rand(NODES, width))
    other.x = torch.rand(NODES, width)
    with pytest.raises(InputError, match=rf"reads 6 features of each node \(got a graph with {width}\)"):
        compile_ticket(ticket, other)


def test_features_of_other_nodes_are_refused() -> None:
    ticket, other = quick_ticket(isolated=False), toy_data()
    other.x, other.num_nodes = other.x[:-1], NODES
    with pytest.raises(InputError, match=r"one row for each of 30 nodes \(got 29\)"):
        compile_ticket(ticket, other)


@pytest.mark.parametrize("name", ["GCN", "GIN"])
def test_an_edge_of_a_new_node_counts_once(name: str) -> None:
    given_data, model = toy_data(), seeded(USER_MODELS[name])
    predictor = compile_ticket(quick_ticket(model, given_data, isolated=False), given_data, model, layout="whole")
    new = torch.rand(1, 6)
    once = predictor.with_nodes(new, torch.tensor([[30, 30], [3, 30]]))
    for again in ([[30, 3, 30], [3, 30, 30]], [[3, 30, 30, 30], [30, 3, 30, 30]]):
        twice = predictor.with_nodes(new, torch.tensor(again))
        assert twice.graph.edge_index.shape == once.graph.edge_index.shape
        torch.testing.assert_close(twice.logits(), once.logits())
    loops = once.graph.edge_index[0] == once.graph.edge_index[1]
    assert once.graph.edge_index[:, loops].tolist() == [[30], [30]]


def test_nodes_join_a_graph_whose_edges_have_attributes_that_nobody_reads() -> None:
    plain, attributes = toy_data(), toy_data(edge_attr=per_edge(2), edge_weight=per_edge())
    new, edges = torch.rand(1, 6), torch.tensor([[30], [3]])
    ticket = quick_ticket(data=plain, isolated=False)
    grown = [compile_ticket(ticket, data, layout="dense").with_nodes(new, edges) for data in (plain, attributes)]
    torch.testing.assert_close(grown[1].logits(), grown[0].logits())
    model = seeded(USER_MODELS["GCN"])
    users = compile_ticket(quick_ticket(model, attributes, isolated=False), attributes, model, layout="whole")
    with pytest.raises(InputError, match="nodes cannot be added to a graph with edge_attr or edge_weight"):
        users.with_nodes(new, edges)


@pytest.mark.parametrize("model", ["gcn", GIN(6, 8, 3, depth=2)], ids=["gcn", "deep gin"])
def test_tensors_stay_their_owners(model: Any) -> None:
    given_data, nodes, buffer = toy_data(), torch.tensor([1, 2]), torch.rand(NODES, 6)
    ticket = quick_ticket(model, given_data, isolated=False)
    first = compile_ticket(ticket, given_data, layout="dense")
    expected, other = first.logits(), first.with_features(buffer).logits()
    torch.testing.assert_close(first.logits(nodes), expected[nodes])
    nodes += 5
    torch.testing.assert_close(first.logits(nodes), expected[nodes])
    second, changed = compile_ticket(ticket, given_data, layout="dense"), first.with_features(buffer)
    given_data.x.zero_()
    buffer.zero_()
    torch.testing.assert_close(second.logits(), expected)
    torch.testing.assert_close(second.logits(nodes), expected[nodes])
    torch.testing.assert_close(changed.logits(), other)


def test_a_recorded_decision_can_be_had_again() -> None:
    ticket = quick_ticket("gat", isolated=False)
    first = compile_ticket(ticket, toy_data())
    assert len(first.layouts) == 2
    again = compile_ticket(ticket, toy_data(), layout=first.layouts)
    assert (again.layouts, again.trials) == (first.layouts, None)
    mixed = compile_ticket(ticket, toy_data(), layout=["dense", "strips"])
    assert mixed.layouts == ("dense", "strips")
    assert_same(mixed)
    with pytest.raises(InputError, match=r"a name, or one for each of 2 matrices \(got 1\)"):
        compile_ticket(ticket, toy_data(), layout=["dense"])
    with pytest.raises(InputError, match="'strips' is no layout for a gat's first matrix"):
        compile_ticket(ticket, toy_data(), layout=["strips", "strips"])
    assert compile_ticket(ticket, toy_data(), layout="strips").layouts == ("whole rows", "strips")


def test_data_that_cannot_be_used_is_refused() -> None:
    data = toy_data()
    ticket = quick_ticket("gcn", data)
    bare, lost = data.clone(), data.clone()
    bare.x, lost.x = None, data.x.clone()
    lost.x[3, 1] = torch.nan
    for wrong, message in [
        (bare, r"data.x must be a float tensor \[nodes, features\] \(got none\)"),
        (lost, r"features must be finite in float32 \(got nan at node 3, feature 1\)"),
        ({"x": data.x}, r"data must be one graph .* torch_geometric.data.Data \(got dict\)"),
    ]:
        with pytest.raises(InputError, match=message):
            compile_ticket(ticket, wrong)
