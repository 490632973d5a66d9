"""What holds for every backbone alike."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models import BACKBONES, Backbone, build
from tests.helpers import both_ways, columns, randn, sparse_features

SPECS: list[dict[str, Any]] = [
    {"name": "gcn"},
    {"name": "gin"},
    {"name": "gin", "depth": 2, "aggregation": "sum"},
    {"name": "gat", "heads": 2},
    {"name": "gat", "heads": 2, "prune_attention": True},
    {"name": "resgcn", "num_layers": 2},
    {"name": "resgcn", "num_layers": 4, "norm": "layer", "mlp_layers": 2, "learn_temperature": True},
]
SHAPE = {"in_channels": 10, "hidden": 6, "out_channels": 3, "seed": 1}
each_backbone = pytest.mark.parametrize("spec", SPECS, ids=[" ".join(map(str, spec.values())) for spec in SPECS])

# Node 4 hangs on the rest by the edges 1–4, 2–4 and 3–4 only; those are pruned, and 0–2 with them.
EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 4), (3, 4), (3, 5)]
GONE = [(0, 2), (1, 4), (2, 4), (3, 4)]
OTHERS = [0, 1, 2, 3, 5]


def network(spec: dict[str, Any], **changes: Any) -> Backbone:
    return build(spec | SHAPE | changes)


def graph_of(pairs: list[tuple[int, int]], *, directed: bool) -> Graph:
    index = columns(pairs) if directed else both_ways(pairs)
    return Graph.from_edge_index(torch.cat([index, columns([(3, 3)])], dim=1), num_nodes=6, directed=directed)


def pruned(*, directed: bool = False, built_before: bool = True) -> Graph:
    """The graph without the edges that go, by way of a mask."""
    graph = graph_of(EDGES, directed=directed)
    if built_before:
        graph.hops(None, depth=2)
    return graph.prune(Mask([(a, b) not in GONE for a, b in graph.edges.T.tolist()]))


@each_backbone
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("built_before", [False, True])
@pytest.mark.parametrize("scored", [False, True])
def test_a_pruned_graph_is_one_that_never_had_the_edges(
    spec: dict[str, Any], directed: bool, built_before: bool, scored: bool
) -> None:
    model, x = network(spec), Features(randn(6, 10))
    left = pruned(directed=directed, built_before=built_before)
    fresh = graph_of([pair for pair in EDGES if pair not in GONE], directed=directed)
    score = randn(fresh.num_edges, seed=3) if scored else None
    for training in (False, True):
        model.train(training)
        torch.manual_seed(0)
        out = model(x, left, score)
        torch.manual_seed(0)
        assert torch.equal(out, model(x, fresh, score))


@each_backbone
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_pruned_edge_has_exactly_no_influence(spec: dict[str, Any], kind: str) -> None:
    model, graph = network(spec).eval(), pruned()
    x = randn(6, 10) if kind == "dense" else sparse_features(6, 10).dense
    changed = x.clone()
    changed[4] *= 1000
    before, after = model(Features(x), graph), model(Features(changed), graph)
    assert torch.equal(before[OTHERS], after[OTHERS])
    assert not torch.equal(before[4], after[4])
    whole = graph_of(EDGES, directed=False)  # the same change is felt over edges that are there
    assert not torch.equal(model(Features(x), whole)[OTHERS], model(Features(changed), whole)[OTHERS])


@each_backbone
def test_no_gradient_flows_over_a_pruned_edge(spec: dict[str, Any]) -> None:
    model, x = network(spec).eval(), randn(6, 10).requires_grad_()
    for graph, silent in ((pruned(), True), (graph_of(EDGES, directed=False), False)):
        out: Tensor = model(Features(x), graph)
        (gradient,) = torch.autograd.grad(out[OTHERS].square().sum(), x)
        assert bool((gradient[4] == 0).all()) == silent
        assert bool((gradient[OTHERS] != 0).any())


@each_backbone
def test_soft_edge_masks_of_one_change_nothing(spec: dict[str, Any]) -> None:
    model, graph, x = network(spec).eval(), graph_of(EDGES, directed=False), Features(randn(6, 10))
    torch.testing.assert_close(model(x, graph, torch.ones(8)), model(x, graph))


@each_backbone
def test_a_network_built_from_its_spec_has_the_same_weights(spec: dict[str, Any]) -> None:
    model = network(spec, dropout=0.25)
    twin = build(model.spec)
    assert twin.spec == model.spec
    assert list(twin.state_dict()) == list(model.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


@each_backbone
def test_the_seed_and_nothing_else_decides_the_weights(spec: dict[str, Any]) -> None:
    torch.manual_seed(0)
    one = network(spec)
    torch.manual_seed(1)
    again, other = network(spec), network(spec, seed=2)
    for name in one.prunable:
        assert torch.equal(one.get_parameter(name), again.get_parameter(name))
        assert not torch.equal(one.get_parameter(name), other.get_parameter(name))


@each_backbone
def test_operations_name_every_weight_matrix_once(spec: dict[str, Any]) -> None:
    model = network(spec)
    named = [operation.weight for operation in model.operations if hasattr(operation, "weight")]
    assert sorted(named) == sorted(name for name in model.prunable if "attention" not in name)


@pytest.mark.usefixtures("backend")
@each_backbone
def test_dropout_is_silent_in_eval_and_seeded_in_training(spec: dict[str, Any]) -> None:
    model, graph, x = network(spec), graph_of(EDGES, directed=False), Features(randn(6, 10))
    assert torch.equal(model.eval()(x, graph), model.eval()(x, graph))
    model.train()
    torch.manual_seed(0)
    one = model(x, graph)
    assert not torch.equal(one, model(x, graph))
    torch.manual_seed(0)
    assert torch.equal(one, model(x, graph))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_channels": 0}, r"in_channels must be at least 1 \(got 0\)"),
        ({"hidden": -1}, r"hidden must be at least 1 \(got -1\)"),
        ({"out_channels": 0}, r"out_channels must be at least 1 \(got 0\)"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\) \(got 1.0\)"),
        ({"dropout": -0.1}, r"dropout must lie in \[0, 1\) \(got -0.1\)"),
        ({"heads": 3}, r"gcn does not take these settings \(.*'heads'\)"),
        ({"name": "gcm"}, r"unknown model \(got 'gcm'\); did you mean 'gcn'\? Known: gat, gcn, gin"),
    ],
)
def test_impossible_networks_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build({"name": "gcn"} | SHAPE | changes)


def test_names_are_those_of_the_registry() -> None:
    assert {name: backbone.name for name, backbone in BACKBONES.items()} == {name: name for name in BACKBONES}


@each_backbone
@pytest.mark.parametrize("scored", [False, True])
def test_a_few_nodes_have_the_outputs_and_gradients_they_have_among_all(spec: dict[str, Any], scored: bool) -> None:
    model, graph = network(spec).eval(), pruned()
    nodes, x = torch.tensor([4, 1]), Features(randn(6, 10))
    score = randn(graph.num_edges, seed=3).requires_grad_() if scored else None
    wanted = [*model.parameters(), *([] if score is None else [score])]
    few, among_all = model(x, graph, score, nodes), model(x, graph, score)[nodes]
    torch.testing.assert_close(few, among_all)
    gradients = (torch.autograd.grad(out.square().sum(), wanted) for out in (few, among_all))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)
