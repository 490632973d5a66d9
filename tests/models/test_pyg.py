import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.utils import dropout_edge, to_torch_csr_tensor

from fastglt import InputError, Mask, evaluate, find_ticket
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import PyGNetwork
from fastglt.models.pyg_checks import default_prunable
from fastglt.tasks import NodeClassification
from fastglt.tickets.ticket import OtherFeaturesWarning
from fastglt.training.loop import Recipe, Training
from tests.helpers import both_ways, drop, randn
from tests.toy_data import (
    CLASSES,
    FEATURES,
    NODES,
    PAIRS,
    QUICK,
    USER_MODELS,
    HandWritten,
    Layer,
    TakesData,
    basic,
    per_edge,
    quick_ticket,
    seeded,
    toy_data,
)

IN, OUT = FEATURES, CLASSES


def mlp(*norms: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(IN, 8), *norms, nn.ReLU(), nn.Linear(8, OUT))


def degrees() -> Tensor:
    return torch.bincount(torch.full((NODES,), 4))


PLAIN: dict[str, Callable[[], Any]] = {
    **USER_MODELS,
    "GATv2": lambda: basic(pyg.GAT, heads=2, v2=True),
    "PNA": lambda: basic(pyg.PNA, aggregators=["mean", "max"], scalers=["identity"], deg=degrees()),
    "EdgeCNN": lambda: basic(pyg.EdgeCNN),
    "jumping knowledge": lambda: basic(pyg.GCN, jk="lstm"),
    "takes data": TakesData,
    "Transformer": lambda: Layer(pyg.TransformerConv(IN, OUT, heads=2, concat=False, beta=True)),
    "several aggregations": lambda: Layer(pyg.SAGEConv(IN, OUT, aggr=["mean", "max", "std"])),
    "GEN": lambda: Layer(pyg.GENConv(IN, OUT)),
    "Chebyshev": lambda: Layer(pyg.ChebConv(IN, OUT, K=3)),
    "ARMA": lambda: Layer(pyg.ARMAConv(IN, OUT, num_stacks=2, num_layers=2)),
    "Sequential": lambda: pyg.Sequential(
        "x, edge_index",
        [
            (pyg.GCNConv(IN, 8), "x, edge_index -> x"),
            nn.ReLU(inplace=True),
            (pyg.SAGEConv(8, OUT), "x, edge_index -> x"),
        ],
    ),
}
EDGY: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "GINE": (lambda: Layer(pyg.GINEConv(mlp(nn.BatchNorm1d(8)), edge_dim=4)), {"edge_attr": per_edge(4)}),
    "GAT": (lambda: Layer(pyg.GATConv(IN, OUT, edge_dim=4)), {"edge_attr": per_edge(4)}),
    "Transformer": (lambda: Layer(pyg.TransformerConv(IN, OUT, edge_dim=4)), {"edge_attr": per_edge(4)}),
    "NN": (lambda: Layer(pyg.NNConv(IN, OUT, nn.Linear(4, IN * OUT))), {"edge_attr": per_edge(4)}),
    "weighted GCN": (lambda: basic(pyg.GCN), {"edge_weight": per_edge()}),
    "weighted graph conv": (lambda: Layer(pyg.GraphConv(IN, OUT)), {"edge_weight": per_edge()}),
    "ignores edge_attr": (lambda: basic(pyg.GraphSAGE), {"edge_attr": per_edge(4)}),
}


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


def with_explainer(model: nn.Module, data: Data, scores: Tensor) -> Tensor:
    """PyG's own way of weighing messages, written for explanations."""
    ids = edge_of_columns(data)
    weight = torch.where(ids < 0, 1.0, scores[ids.clamp(min=0)])
    set_masks(model, weight, data.edge_index, apply_sigmoid=False)
    return call(model, data)


def gradients(out: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    projected = (out * randn(*out.shape, seed=3)).sum()
    return list(torch.autograd.grad(projected, inputs, materialize_grads=True))


def check_soft_scores(build: Callable[[], nn.Module], data: Data) -> None:
    model = seeded(build).eval()
    network = PyGNetwork(model).eval()
    scores = (randn(60, seed=1) + 1).requires_grad_()
    ours = network(Features(data.x), Graph.from_data(data), scores)
    theirs = with_explainer(model, data, scores)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    got = gradients(ours, [scores, *network.parameters()])
    expected = gradients(theirs, [scores, *model.parameters()])
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    assert got[0].abs().sum() > 0


@pytest.mark.parametrize("loops", [False, True], ids=["no loops", "loops"])
@pytest.mark.parametrize("name", PLAIN)
def test_soft_scores_multiply_messages_as_pygs_explainer_does(name: str, loops: bool) -> None:
    check_soft_scores(PLAIN[name], toy_data(loops=loops))


@pytest.mark.parametrize("name", EDGY)
def test_soft_scores_with_edge_inputs(name: str) -> None:
    build, extra = EDGY[name]
    check_soft_scores(build, toy_data(**extra))


def test_soft_scores_by_hand() -> None:
    model, data, scores = seeded(HandWritten), toy_data(), randn(60, seed=2)
    dense, counts = torch.zeros(NODES, NODES), torch.zeros(NODES, 1)
    for (a, b), edge in zip(data.edge_index.T.tolist(), edge_of_columns(data).tolist(), strict=True):
        dense[b, a] += scores[edge]
        counts[b] += 1
    expected = dense @ data.x @ model.weight / counts
    out = PyGNetwork(model)(Features(data.x), Graph.from_data(data), scores)
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
    cut, scores = graph.prune(drop(13, bridge)), randn(12, seed=4)
    before, after = (network(Features(v), cut, scores)[6:] for v in (x, other))
    assert torch.equal(before, after)
    joined = [network(Features(v), graph)[6:] for v in (x, other)]
    assert not torch.equal(*joined)


def test_a_directed_graph_has_a_score_for_each_arrow() -> None:
    data, model = toy_data(directed=True), seeded(HandWritten)
    graph = Graph.from_data(data)
    assert graph.directed
    scores = randn(60, seed=1)
    out = PyGNetwork(model)(Features(data.x), graph, scores)
    dense, counts = torch.zeros(NODES, NODES), torch.zeros(NODES, 1)
    for (a, b), score in zip(graph.edges.T.tolist(), scores, strict=True):
        dense[b, a], counts[b] = score, counts[b] + 1
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
    scores = randn(60)
    assert not network(x, graph, scores).any()
    torch.testing.assert_close(twin(x, graph, scores), PyGNetwork(model)(x, graph, scores))


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


def test_batch_norm_buffers_belong_to_the_ticket() -> None:
    model = seeded(TakesData)
    ticket = quick_ticket(model)
    assert int(ticket.weights["norm.num_batches_tracked"]) > 0
    assert ticket.weights["norm.running_mean"].any()
    assert int(ticket.initial["norm.num_batches_tracked"]) == 0
    model.load_state_dict(ticket.weights)


def test_prunable_weights_are_the_matrices() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.again = pyg.GATConv(IN, 4, heads=2), pyg.SAGEConv(8, 8, bias=False)
            self.embedding, self.norm = nn.Embedding(5, 8), nn.LayerNorm((2, 8))
            self.tied, self.frozen, self.one = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)
            self.tied.weight = self.again.lin_l.weight
            self.frozen.weight.requires_grad_(False)
            self.bias2, self.stack = nn.Parameter(torch.ones(1, 8)), nn.Parameter(torch.ones(1, 3, 8))

    expected = {"stack", "conv.lin.weight", "again.lin_l.weight", "again.lin_r.weight", "one.weight"}
    assert set(default_prunable(Mixed())) == expected


def test_unused_weights_are_not_prunable() -> None:
    class Spare(HandWritten):
        def __init__(self) -> None:
            super().__init__()
            self.spare = nn.Linear(4, 4)

    ticket = quick_ticket(seeded(Spare))
    assert ticket.model["prunable"] == ["weight"]
    with pytest.raises(InputError, match=r"that the prediction depends on \(got 'spare.weight'\)"):
        quick_ticket(seeded(Spare), prunable=["weight", "spare.weight"])


def test_shared_weights_are_pruned_once_and_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = pyg.SAGEConv(IN, IN), pyg.SAGEConv(IN, IN)
            self.second.lin_l.weight = self.first.lin_l.weight
            self.last = nn.Linear(IN, OUT)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.last(self.second(self.first(x, edge_index).relu(), edge_index))  # type: ignore[no-any-return]

    ticket = quick_ticket(seeded(Tied))
    assert len(ticket.masks.weights) == 4
    weights = ticket.weights
    assert torch.equal(weights["first.lin_l.weight"], weights["second.lin_l.weight"])
    assert not weights["second.lin_l.weight"][~ticket.masks.weights["first.lin_l.weight"].kept].any()


def test_a_weight_may_lie_in_memory_column_by_column() -> None:
    class Columns(nn.Module):
        def __init__(self, *, transposed: bool) -> None:
            super().__init__()
            self.conv, weight = pyg.SAGEConv(IN, 8), torch.randn(8, OUT)
            self.weight = nn.Parameter(weight.T.contiguous().T if transposed else weight)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index).relu() @ self.weight  # type: ignore[no-any-return]

    ours, usual = (quick_ticket(seeded(Columns, transposed=transposed)) for transposed in (True, False))
    assert ours.masks == usual.masks
    for name, value in usual.weights.items():
        torch.testing.assert_close(ours.weights[name], value)


def test_frozen_weights_stay_as_they_are() -> None:
    model = seeded(USER_MODELS["GCN"])
    model.convs[0].lin.weight.requires_grad_(False)
    ticket = quick_ticket(model)
    assert list(ticket.masks.weights) == ["convs.1.lin.weight"]
    assert torch.equal(ticket.weights["convs.0.lin.weight"], model.convs[0].lin.weight)


def test_named_weights_only() -> None:
    ticket = quick_ticket(seeded(USER_MODELS["GCN"]), prunable=["convs.1.lin.weight"])
    assert list(ticket.masks.weights) == ["convs.1.lin.weight"]
    with pytest.raises(InputError, match=r"parameters of the model \(got 'convs.7.weight'\)"):
        quick_ticket(basic(pyg.GCN), prunable=["convs.7.weight"])
    with pytest.raises(InputError, match="prunable is for PyG models"):
        quick_ticket("gcn", prunable=["layer1.weight"])


def test_double_precision() -> None:
    model = seeded(USER_MODELS["GCN"]).double()
    ticket = quick_ticket(model, toy_data())
    assert ticket.weights["convs.0.lin.weight"].dtype == torch.float64


def test_lstm_aggregation_works_on_sorted_edges_only() -> None:
    def build() -> nn.Module:
        return Layer(pyg.SAGEConv(IN, OUT, aggr="lstm"))

    data = toy_data()
    with pytest.raises(InputError, match="not sorted"):
        quick_ticket(seeded(build), data)
    assert quick_ticket(seeded(build), data.sort(sort_by_row=False)).masks.edges.count == 42


def test_a_model_that_is_random_even_in_evaluation_still_gives_equal_tickets() -> None:
    class Always(HandWritten):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(F.dropout(x, 0.5), edge_index)

    model = seeded(Always)
    one, two = quick_ticket(model), quick_ticket(model)
    assert one.scores == two.scores
    assert torch.equal(one.weights["weight"], two.weights["weight"])


class Single(nn.Module):
    """A convolution that subclasses treat in their own way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(IN, OUT)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index)


class DropsEdges(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, dropout_edge(edge_index, 0.5, training=self.training)[0])


class AddsEdges(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, torch.cat([edge_index, torch.tensor([[0], [5]])], dim=1))


class MakesSparse(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, to_torch_csr_tensor(edge_index, size=(len(x), len(x))))


class KeepsEdges(Single):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", toy_data().edge_index)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, self.kept)


class WeightPerColumn(Single):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(120))

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index, self.weight)


class Remembers(Single):
    adjacency: Tensor | None = None

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        if self.adjacency is None:
            self.adjacency = torch.zeros(len(x), len(x))
            self.adjacency[edge_index[1], edge_index[0]] = 1
        return self.conv(self.adjacency @ x, edge_index)


class WritesInput(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x.relu_(), edge_index)


class Silent(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv.lin(x)


class ReturnsTwo(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index), x


class NeedsBatch(Single):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> Any:  # type: ignore[override]
        return self.conv(x, edge_index)


class OnlyX(Single):
    def forward(self, x: Tensor) -> Any:  # type: ignore[override]
        return self.conv(x, toy_data().edge_index)


class TwoMessages(HandWritten):
    def message(self, x_j: Tensor) -> Any:
        return x_j, x_j

    def aggregate(self, inputs: Any, index: Tensor, ptr: Any = None, dim_size: Any = None) -> Any:
        return super().aggregate(inputs[0], index, ptr, dim_size)


class ExtraState(Single):
    def get_extra_state(self) -> dict[str, int]:
        return {"steps": 1}


class OneWay(Single):
    def state_dict(self, *args: Any, **keywords: Any) -> Any:
        return {**super().state_dict(*args, **keywords), "more": torch.ones(1)}


class Checkpointed(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return checkpoint(self.conv, x, edge_index, use_reentrant=False)


class CheckpointedFunction(Single):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(OUT, OUT))

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        def block(h: Tensor) -> Tensor:
            return (h @ self.weight).relu()

        return checkpoint(block, self.conv(x, edge_index), use_reentrant=False)


class InPlace(Single):
    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        h = self.conv(x, edge_index).sigmoid()
        return h.mul_(2)


class Deep(nn.Module):
    """Reentrant checkpoints, as PyG has them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(IN, 8), nn.Linear(8, OUT)
        self.block = pyg.DeepGCNLayer(pyg.GCNConv(8, 8), nn.LayerNorm(8), nn.ReLU(), ckpt_grad=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.last(self.block(self.first(x), edge_index))


class PassingMean(Single):
    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(OUT), persistent=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        out = self.conv(x, edge_index)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * out.detach().mean(0)
        return out - self.mean


class Scratch(Single):
    """Buffers that nobody keeps and that do not matter: unknown numbers, and what training leaves behind."""

    last: Tensor
    flags: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("unknown", torch.full((OUT,), torch.nan), persistent=False)
        self.register_buffer("last", torch.zeros(0), persistent=False)
        self.register_buffer("flags", torch.zeros(2, dtype=torch.bool), persistent=False)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        out = self.conv(x, edge_index)
        if self.training:
            self.last, self.flags = out.detach().mean(0), ~self.flags
        return out


class Closure(Single):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(OUT, OUT)
        self.mix: Callable[[Tensor], Tensor] = lambda h: self.readout(h).relu()

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.mix(self.conv(x, edge_index))


class PlainList(Single):
    def __init__(self) -> None:
        super().__init__()
        self.more = [nn.Linear(OUT, OUT)]

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.more[0](self.conv(x, edge_index))


class Embeds(Single):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(NODES, IN, sparse=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x + self.table(torch.arange(NODES)), edge_index)


def complex_numbers() -> nn.Module:
    model = Single()
    model.phase = nn.Parameter(torch.ones(2, dtype=torch.complex64))
    return model


def hetero() -> nn.Module:
    model = pyg.GraphSAGE((IN, IN), 8, num_layers=2, out_channels=OUT)
    return pyg.to_hetero(model, (["paper"], [("paper", "cites", "paper")]))  # type: ignore[no-any-return]


def frozen() -> nn.Module:
    return Single().requires_grad_(False)


def spectral() -> nn.Module:
    model = Single()
    nn.utils.parametrizations.spectral_norm(model.conv.lin)
    return model


def edges_by_type() -> nn.Module:
    return pyg.HeteroConv({("paper", "cites", "paper"): pyg.SAGEConv(IN, OUT)})  # type: ignore[no-any-return]


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "cached": (lambda: basic(pyg.GCN, cached=True), r"GCNConv\(cached=True\) keeps the unpruned graph"),
    "cached SGC": (lambda: Layer(pyg.SGConv(IN, OUT, cached=True)), r"SGConv\(cached=True\)"),
    "lazy": (lambda: pyg.GCN(-1, 8, 2, OUT), "has no shape yet; run the model once"),
    "half": (lambda: basic(pyg.GCN).half(), r"float32 or float64 \(got torch.float16"),
    "no messages": (lambda: pyg.MLP([IN, 8, OUT]), r"at least one MessagePassing layer \(got none in MLP\)"),
    "silent": (Silent, "got no message at all"),
    "to_hetero": (hetero, "heterogeneous and traced models are not supported"),
    "HeteroConv": (edges_by_type, "heterogeneous"),
    "compiled": (lambda: torch.compile(Single()), "before compilation"),
    "needs edge_attr": (
        lambda: Layer(pyg.GATConv(IN, OUT, edge_dim=4)),
        r"GATConv\(edge_dim=4\) needs data.edge_attr",
    ),
    "GINE without": (lambda: Layer(pyg.GINEConv(mlp(), edge_dim=4)), "it is given x and edge_index alone"),
    "relations": (lambda: pyg.RGCNConv(IN, OUT, 2), "must run on this data"),
    "needs batch": (NeedsBatch, r"got 'batch', which it is never given"),
    "only x": (OnlyX, r"\(got x alone\)"),
    "drops edges": (DropsEdges, "GCNConv passes messages along other edges"),
    "adds edges": (AddsEdges, "GCNConv passes messages along other edges"),
    "makes sparse": (MakesSparse, "GCNConv passes messages along other edges"),
    "keeps edges": (KeepsEdges, "GCNConv passes messages along other edges"),
    "weight per column": (WeightPerColumn, "must run on this data without one of its edges"),
    "remembers": (Remembers, "one that remembers a graph"),
    "writes input": (WritesInput, "writes into x"),
    "tuple": (ReturnsTwo, r"\(got tuple\)"),
    "two messages": (TwoMessages, r"message must return one tensor, a row per edge \(got tuple\)"),
    "classes": (lambda: pyg.GCN(IN, 8, 2, 2), r"at least 3 class scores .* \(got shape \(30, 2\)\)"),
    "features": (lambda: pyg.GCN(IN + 1, 8, 2, OUT), "must run on this data"),
    "frozen": (frozen, "trainable parameters"),
    "extra state": (ExtraState, r"must consist of tensors \(got dict in '_extra_state'\)"),
    "spectral norm": (spectral, "must load the state that it gives"),
    "one way": (OneWay, "must load the state that it gives"),
    "checkpoints": (Checkpointed, "activation checkpointing has to be turned off"),
    "checkpoints a function": (CheckpointedFunction, "runs again in the backward pass"),
    "reentrant": (Deep, "activation checkpointing has to be turned off"),
    "in place": (InPlace, r"differentiable \(got .* modified by an inplace operation.*\)$"),
    "passing buffer": (PassingMean, r"must be persistent \(got 'mean', which is not\)"),
    "closure": (Closure, r"parameters of its own \(got one of shape \(3.*\) that is not\)"),
    "plain list": (PlainList, r"\(got one of shape \(3.*\) that is not\); layers belong in an nn.ModuleList"),
    "sparse gradients": (Embeds, r"must be dense \(got a sparse one of 'table.weight'"),
    "complex": (complex_numbers, r"float32 or float64 \(got torch.complex64 in 'phase'\)"),
}


@pytest.mark.filterwarnings("ignore:Sparse", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_supported_is_refused_with_a_reason(name: str) -> None:
    build, reason = REFUSED[name]
    with pytest.raises(InputError, match=reason):
        quick_ticket(seeded(build))


def test_a_model_that_cannot_be_copied_is_refused() -> None:
    model = Single()
    model.batches = (value for value in [1])  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"copyable with copy\.deepcopy"):
        quick_ticket(model)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("build", [DropsEdges, MakesSparse])
def test_without_pruned_edges_a_model_may_do_what_it_likes_with_them(build: Callable[[], nn.Module]) -> None:
    ticket = quick_ticket(seeded(build), graph_sparsity=0.0)
    assert (ticket.graph_sparsity, ticket.weight_sparsity) == (0.0, 0.5)


@pytest.mark.parametrize("build", [CheckpointedFunction, Deep])
def test_a_model_that_runs_again_is_refused_without_pruned_edges_too(build: Callable[[], nn.Module]) -> None:
    with pytest.raises(InputError, match="activation checkpointing has to be turned off"):
        quick_ticket(seeded(build), graph_sparsity=0.0)


class Repeats(nn.Module):
    """One layer under several names, and one weight in two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(IN, 8), nn.Linear(8, OUT)
        conv = pyg.GCNConv(8, 8)
        self.convs = nn.ModuleList([conv] * 3)
        self.other = pyg.SAGEConv(8, 8, root_weight=False)
        self.other.lin_l.weight = conv.lin.weight
        self.again = self.other

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        h = self.first(x)
        for conv in (*self.convs, self.other, self.again):
            h = conv(h, edge_index).relu()
        return self.last(h)


@pytest.mark.parametrize("method", ["fastglt", "forest", "ugs", "adaglt", "snip", "teddy"])
def test_a_layer_under_several_names_is_pruned_under_all_of_them(method: str) -> None:
    model, data = seeded(Repeats), toy_data()
    ticket = quick_ticket(model, data, method=method)
    assert set(ticket.masks.weights) == {"first.weight", "last.weight", "convs.0.lin.weight"}
    kept = ticket.masks.weights["convs.0.lin.weight"].kept
    for name in ("convs.0.lin.weight", "convs.2.lin.weight", "other.lin_l.weight", "again.lin_l.weight"):
        assert not bool(ticket.weights[name][~kept].any())
        assert torch.equal(ticket.weights[name], ticket.weights["convs.0.lin.weight"])
    masked = copy.deepcopy(model).eval()
    masked.load_state_dict(dict(ticket.weights))
    logits = masked(data.x, ticket.prune(data).edge_index)
    test = data.test_mask
    accuracy = float((logits.argmax(1)[test] == data.y[test]).float().mean())
    assert accuracy == pytest.approx(ticket.scores["search_unweighted_test"])


def test_soft_weights_are_in_force_wherever_a_layer_is_used() -> None:
    """Softened to zero in every place, the shared weight leaves a readout of nothing but biases."""
    network = PyGNetwork(seeded(Repeats))
    training = Training(network, NodeClassification.from_data(toy_data()), Recipe(), seed=0)
    training.begin_stage("soft", soft_weights=True)
    with torch.no_grad():
        training.soft_weight_masks["module.convs.0.lin.weight"].zero_()
    training.network.eval()
    assert torch.allclose(training.logits(None).std(0), torch.zeros(OUT), atol=1e-6)
    after = training.network.get_parameter("module.convs.0.lin.weight")
    assert after is training.weights["module.convs.0.lin.weight"]


def test_buffers_that_do_not_matter_may_change() -> None:
    assert quick_ticket(seeded(Scratch)).scores == quick_ticket(seeded(Single)).scores


def test_what_a_weight_is_computed_from_is_not_pruned() -> None:
    class Normed(Single):
        def __init__(self) -> None:
            super().__init__()
            self.readout = nn.utils.parametrizations.spectral_norm(nn.Linear(OUT, OUT))

        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return self.readout(self.conv(x, edge_index))

    ticket = quick_ticket(seeded(Normed))
    assert set(ticket.masks.weights) == {"conv.lin.weight"}
    with pytest.raises(InputError, match="must name weights, not what they are computed from"):
        quick_ticket(seeded(Normed), prunable=["readout.parametrizations.weight.original"])


def test_features_may_come_from_inference_mode() -> None:
    data, made = toy_data(), toy_data()
    with torch.inference_mode():
        made.x = data.x.clone()
    model = seeded(Single)
    ticket = quick_ticket(model, made)
    assert ticket.scores == quick_ticket(model, data).scores
    with torch.inference_mode():
        assert evaluate(ticket, model, made, seeds=[0]).ticket_scores == (ticket.scores["isolated_test"],)


def test_a_weight_may_be_tied_to_an_embedding() -> None:
    class Tied(Single):
        def __init__(self) -> None:
            super().__init__()
            self.names, self.readout = nn.Embedding(OUT, OUT), nn.Linear(OUT, OUT)
            self.readout.weight = self.names.weight

        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return self.readout(self.conv(x, edge_index))

    model, data = seeded(Tied), toy_data()
    ticket = quick_ticket(model, data)
    assert "readout.weight" in ticket.masks.weights
    assert evaluate(ticket, model, data, seeds=[0]).n == 1


def test_edge_values_that_are_trained_elsewhere_are_numbers_here() -> None:
    weight = per_edge()
    plain, trained = (toy_data(edge_weight=value) for value in (weight, weight.clone().requires_grad_()))
    one, two = (quick_ticket(seeded(basic, pyg.GCN), data) for data in (plain, trained))
    assert one.scores == two.scores
    assert trained.edge_weight.grad is None


def test_other_edge_values_are_told() -> None:
    data, model = toy_data(edge_weight=per_edge()), seeded(basic, pyg.GCN)
    ticket = quick_ticket(model, data)
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    shuffled = toy_data(edge_weight=data.edge_weight[order])
    shuffled.edge_index = data.edge_index[:, order]
    ticket.prune(shuffled)  # the same values, in another order
    for other in (toy_data(edge_weight=2 * data.edge_weight), toy_data()):
        with pytest.warns(OtherFeaturesWarning, match="edge values differ"):
            ticket.prune(other)
    quick_ticket(seeded(Single), data).prune(toy_data())  # a model that does not look at them
    older = replace(ticket, config={name: value for name, value in ticket.config.items() if name != "edge_values"})
    older.prune(toy_data())  # nobody knows


@pytest.mark.parametrize("model", ["gcn", "takes data"])
def test_edge_values_may_be_of_any_kind(model: str) -> None:
    data = toy_data(edge_attr=per_edge(2).bfloat16())
    assert quick_ticket(seeded(PLAIN[model]) if model in PLAIN else model, data).masks.edges.count == 42


def test_arguments_may_be_positional_only() -> None:
    class Positional(Single):
        def forward(self, x: Tensor, edge_index: Tensor, /) -> Any:
            return self.conv(x, edge_index)

    assert quick_ticket(seeded(Positional)).scores == quick_ticket(seeded(Single)).scores


def test_heterogeneous_data_is_refused() -> None:
    with pytest.raises(InputError, match="heterogeneous graphs are not supported"):
        find_ticket(basic(pyg.GCN), HeteroData(), budget=QUICK)


def test_positional_names_and_more_classes_than_labels_are_fine() -> None:
    class Renamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.SAGEConv(IN, OUT + 2)

        def forward(self, features: Tensor, adjacency: Tensor, scale: float = 1.0) -> Tensor:
            return scale * self.conv(features, adjacency)  # type: ignore[no-any-return]

    class Swapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.SAGEConv(IN, OUT)

        def forward(self, edge_index: Tensor, x: Tensor) -> Tensor:
            return self.conv(x, edge_index)  # type: ignore[no-any-return]

    for build in (Renamed, Swapped):
        assert quick_ticket(seeded(build)).weight_sparsity == 0.5


def test_a_graph_without_edges() -> None:
    data = toy_data()
    data.edge_index = data.edge_index[:, :0]
    ticket = quick_ticket(seeded(USER_MODELS["GraphSAGE"]), data, graph_sparsity=0.0)
    assert ticket.masks.edges == Mask([])
