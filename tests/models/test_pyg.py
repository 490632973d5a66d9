import copy
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import set_masks

from fastglt import evaluate
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import PyGNetwork
from tests.helpers import both_ways, drop, randn
from tests.models.user_models import EDGY, IN, OUT, PLAIN
from tests.toy_data import (
    NODES,
    PAIRS,
    USER_MODELS,
    HandWritten,
    Layer,
    TakesData,
    quick_ticket,
    seeded,
    toy_data,
)


def call(model: nn.Module, data: Data) -> Tensor:
    """What the user would write."""
    if isinstance(model, TakesData):
        return model(data)  # type: ignore[no-any-return]
    names = ("edge_weight", "edge_attr")
    taken = [name for name in names if name in data and getattr(model, f"supports_{name}", True)]
    return model(data.x, data.edge_index, **{name: data[name] for name in taken})  # type: ignore[no-any-return]


def edge_of_columns(data: Data) -> Tensor:
    """Each column's undirected pair as its place among the sorted pairs, −1 for self-loops: worked out by hand."""
    pairs = sorted({(min(a, b), max(a, b)) for a, b in PAIRS})
    return torch.tensor(
        [pairs.index((min(a, b), max(a, b))) if a != b else -1 for a, b in data.edge_index.T.tolist()]
    )


def with_explainer(model: nn.Module, data: Data, soft: Tensor) -> Tensor:
    """PyG's own way of weighing messages, written for explanations."""
    ids = edge_of_columns(data)
    weight = torch.where(ids < 0, 1.0, soft[ids.clamp(min=0)])
    set_masks(model, weight, data.edge_index, apply_sigmoid=False)
    return call(model, data)


def gradients(out: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    projected = (out * randn(*out.shape, seed=3)).sum()
    return list(torch.autograd.grad(projected, inputs, materialize_grads=True))


def check_soft_masks(build: Callable[[], nn.Module], data: Data) -> None:
    model = seeded(build).eval()
    network = PyGNetwork(model).eval()
    soft = (randn(60, seed=1) + 1).requires_grad_()
    ours = network(Features(data.x), Graph.from_data(data), soft)
    theirs = with_explainer(model, data, soft)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    got = gradients(ours, [soft, *network.parameters()])
    expected = gradients(theirs, [soft, *model.parameters()])
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert got[0].abs().sum() > 0


@pytest.mark.parametrize("loops", [False, True], ids=["no loops", "loops"])
@pytest.mark.parametrize("name", PLAIN)
def test_soft_masks_multiply_messages_as_pygs_explainer_does(name: str, loops: bool) -> None:
    check_soft_masks(PLAIN[name], toy_data(loops=loops))


@pytest.mark.parametrize("name", EDGY)
def test_soft_masks_with_edge_inputs(name: str) -> None:
    build, extra = EDGY[name]
    check_soft_masks(build, toy_data(**extra))


def test_soft_masks_by_hand() -> None:
    model, data, soft = seeded(HandWritten), toy_data(), randn(60, seed=2)
    dense, counts = torch.zeros(NODES, NODES), torch.zeros(NODES, 1)
    for (a, b), edge in zip(data.edge_index.T.tolist(), edge_of_columns(data).tolist(), strict=True):
        dense[b, a] += soft[edge]
        counts[b] += 1
    expected = dense @ data.x @ model.weight / counts
    out = PyGNetwork(model)(Features(data.x), Graph.from_data(data), soft)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("name", [*PLAIN, *(f"edge {name}" for name in EDGY)])
def test_hard_masks_give_what_the_users_own_model_gives_on_the_pruned_data(name: str) -> None:
    build, extra = EDGY[name[5:]] if name.startswith("edge ") else (PLAIN[name], {})
    model, data = seeded(build).eval(), toy_data(**extra, loops=not extra)
    gone = [0, 7, 30, 31, 59]
    keep = ~torch.isin(edge_of_columns(data), torch.tensor(gone))
    pruned = data.edge_subgraph(keep)
    out = PyGNetwork(model).eval()(Features(data.x), Graph.from_data(data).prune(drop(60, *gone)))
    torch.testing.assert_close(out, call(model, pruned), rtol=1e-5, atol=1e-6)
    assert not torch.allclose(out, call(model, data))


@pytest.mark.parametrize("name", PLAIN)
def test_a_pruned_edge_has_no_influence_at_all(name: str) -> None:
    """Two rings joined by one edge: without it, nothing in one ring can be felt in the other."""
    rings = [(start + i, start + (i + 1) % 6) for start in (0, 6) for i in range(6)]
    graph = Graph.from_edge_index(both_ways([*rings, (2, 8)]), num_nodes=12)
    bridge = graph.edges.T.tolist().index([2, 8])
    network = PyGNetwork(seeded(PLAIN[name])).eval()
    x, other = randn(12, IN), randn(12, IN, seed=1)
    other[6:] = x[6:]
    cut, soft = graph.prune(drop(13, bridge)), randn(12, seed=4)
    before, after = (network(Features(v), cut, soft)[6:] for v in (x, other))
    assert torch.equal(before, after)
    joined = [network(Features(v), graph)[6:] for v in (x, other)]
    assert not torch.equal(*joined)


def test_a_directed_graph_has_a_soft_entry_for_each_arrow() -> None:
    data, model = toy_data(directed=True), seeded(HandWritten)
    graph = Graph.from_data(data)
    assert graph.directed
    soft = randn(60, seed=1)
    out = PyGNetwork(model)(Features(data.x), graph, soft)
    dense, counts = torch.zeros(NODES, NODES), torch.zeros(NODES, 1)
    for (a, b), value in zip(graph.edges.T.tolist(), soft, strict=True):
        dense[b, a], counts[b] = value, counts[b] + 1
    torch.testing.assert_close(out, dense @ data.x @ model.weight / counts)


def test_arrows_may_be_followed_backwards() -> None:
    model = seeded(lambda: Layer(pyg.DirGNNConv(pyg.SAGEConv(IN, OUT))))
    assert quick_ticket(model, toy_data(directed=True)).masks.edges.count == 42


def test_a_copy_of_a_network_weighs_its_own_messages() -> None:
    data, model = toy_data(), seeded(PLAIN["Sequential"])
    network = PyGNetwork(model)
    twin = copy.deepcopy(network)
    x, graph = Features(data.x), Graph.from_data(data)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    soft = randn(60)
    assert not network(x, graph, soft).any()
    torch.testing.assert_close(twin(x, graph, soft), PyGNetwork(model)(x, graph, soft))


def test_two_sequentials_do_not_get_mixed_up() -> None:
    first = seeded(PLAIN["Sequential"])
    second = pyg.Sequential("x, edge_index", [(pyg.GCNConv(IN, OUT), "x, edge_index -> x")])
    data = toy_data()
    x, graph = Features(data.x), Graph.from_data(data)
    for model in (first, second, first):
        torch.testing.assert_close(PyGNetwork(model)(x, graph), model(data.x, graph.edge_index))


def state_of_the_world(model: nn.Module, data: Data) -> list[Any]:
    hooks = [
        len(value)
        for part in model.modules()
        for name, value in vars(part).items()
        if name.endswith("_hooks") and value is not None
    ]
    flags = [(part.training, *(p.requires_grad for p in part.parameters())) for part in model.modules()]
    grads = [p.grad for p in model.parameters()]
    state = {name: value.clone() for name, value in model.state_dict().items()}
    words = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    generators = (torch.get_rng_state(), random.getstate(), words["key"].copy(), words["pos"])
    return [hooks, flags, grads, state, {k: v.clone() for k, v in data.to_dict().items()}, *generators]


@pytest.mark.parametrize("name", [*USER_MODELS, "takes data", "Sequential", "SuperGAT"])
def test_a_run_leaves_the_users_model_data_and_random_numbers_alone(name: str) -> None:
    build = PLAIN.get(name, lambda: Layer(pyg.SuperGATConv(IN, OUT)))  # draws from Python's random numbers
    model, data = seeded(build), toy_data(loops=True)
    model.eval()
    before = state_of_the_world(model, data)
    ticket = quick_ticket(model, data)
    evaluate(ticket, model, data, seeds=[0])
    torch.testing.assert_close(state_of_the_world(model, data), before, rtol=0, atol=0)
