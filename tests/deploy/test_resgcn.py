"""A compiled ResGCN gives what the network gives, without the channels and edges that are gone."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fastglt.deploy.predictor import Predictor
from fastglt.graphs import columns, graph, messages
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.kernels import csr, order
from fastglt.kernels.frozen import times
from fastglt.models.resgcn.network import ResGCN
from fastglt.models.resgcn.pyg_model import ResGCN as PyGResGCN
from tests.deploy.test_predictor import frozen, pruned
from tests.helpers import both_ways, randn

NODES, FEATURES = 40, 7


def rings(nodes: int = NODES) -> Graph:
    """Two rings with a few edges between them, numbered so that neighbours are far from one another."""
    name = [(node * 17) % nodes for node in range(nodes)]
    pairs = [(name[i], name[(i + 1) % (nodes // 2) + (i // (nodes // 2)) * (nodes // 2)]) for i in range(nodes)]
    return Graph.from_edge_index(both_ways([*pairs, (name[0], name[nodes - 1])]), num_nodes=nodes)


def network(share: float, **options: Any) -> ResGCN:
    """Weights drawn anew and, of batch norms, what they have counted."""
    shape: dict[str, Any] = {"num_layers": 4, "learn_temperature": True, **options}
    found = pruned(ResGCN(FEATURES, 10, 3, **shape), share, seed=1)
    with torch.no_grad():
        for name, value in found.named_buffers():
            if name.endswith("running_mean"):
                value.copy_(randn(*value.shape, seed=2))
            elif name.endswith("running_var"):
                value.copy_(randn(*value.shape, seed=3).abs() + 0.5)
    assert isinstance(found, ResGCN)
    return found


def assert_same(found: Predictor, nodes: Tensor | None = None) -> None:
    """Up to single precision: numbers grow from layer to layer."""
    with torch.no_grad():
        expected = found.network(found.x, found.graph, found.score, nodes)
    scale = float(expected.abs().max())
    torch.testing.assert_close(found.logits(nodes) / scale, expected / scale, rtol=0, atol=1e-5)


def predictor(model: ResGCN, score: Tensor | None = None) -> Predictor:
    return frozen(model, rings(), Features(randn(NODES, FEATURES)), score, "whole rows")


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("share", [1.0, 0.3, 0.04])
@pytest.mark.parametrize("self_loops", [False, True])
def test_it_gives_what_the_network_gives(share: float, self_loops: bool) -> None:
    score = randn(rings().num_edges, seed=4)
    for each in (None, score):
        norm = "batch" if self_loops else "renorm"  # one and the same here
        found = predictor(network(share, self_loops=self_loops, norm=norm), each)
        assert found.program is not None
        assert_same(found)
        assert_same(found, torch.tensor([5, 2, 39]))


def test_channels_that_nothing_reads_are_not_computed() -> None:
    model = network(1.0)
    dead = torch.tensor([1, 4, 8])
    with torch.no_grad():
        for layer in model.layers:
            layer.weights[0][dead] = 0  # type: ignore[index]
        model.weight_readout[dead] = 0
    found = predictor(model)
    assert found.live_units == 7
    assert found.program is not None
    assert found.program.matrices[0].shape == (FEATURES, 7)
    assert_same(found)


def test_what_has_no_program_is_run_as_it_is() -> None:
    for options in ({"norm": "layer"}, {"mlp_layers": 2}, {"edge_channels": 2}):
        assert network(0.5, **options).program() is None


@pytest.mark.parametrize(
    "options", [{}, {"self_loops": False}, {"norm": "layer", "mlp_layers": 2}, {"mlp_layers": 3, "norm": "renorm"}]
)
def test_the_pyg_model_that_is_handed_out_gives_the_same(options: dict[str, Any]) -> None:
    model, graph, x = network(0.5, **options), rings(), randn(NODES, FEATURES)
    score = randn(graph.num_edges, seed=4)
    form = model.pyg_form(graph, score)
    assert form is not None
    theirs = PyGResGCN(**form.arguments).eval()
    theirs.load_state_dict(dict(form.state))
    with torch.no_grad():
        ours, other = model(Features(x), graph, score), theirs(x, form.edge_index, form.edge_weight)
    torch.testing.assert_close(ours / ours.abs().max(), other / ours.abs().max(), rtol=0, atol=1e-5)
    assert network(0.5, edge_channels=2).pyg_form(graph, None) is None


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every graph is large, and worth ordering."""
    for module in (columns, graph, messages, csr):
        monkeypatch.setattr(module, "LARGE", 1)
    monkeypatch.setattr(order, "_GROUP", 8)


@pytest.mark.usefixtures("near")
@pytest.mark.parametrize("nodes", [None, torch.tensor([7, 3, 31])])
def test_an_order_of_the_nodes_is_undone_in_results(nodes: Tensor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = predictor(network(0.5))
    assert found.graph._order is not None
    assert not torch.equal(found.graph._order, torch.arange(NODES))
    ours, theirs = found.logits(nodes), found.network(found.x, found.graph, None, nodes)
    torch.testing.assert_close(ours, theirs)
    monkeypatch.setattr(Graph, "_order", None)
    plain = found.network(found.x, rings(), None, nodes)
    torch.testing.assert_close(theirs, plain, rtol=1e-5, atol=1e-5)


def test_few_weights_are_multiplied_alone() -> None:
    x, weight = randn(300, 20), torch.zeros(20, 30)
    weight[3, 4], weight[19, 0] = 2.0, -1.0
    out = randn(300, 30, seed=1)
    torch.testing.assert_close(times(x, weight, out.clone()), out + x @ weight)
