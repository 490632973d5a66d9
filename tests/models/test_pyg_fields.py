"""Fields of the data that a user's model asks for are given to it, or it is refused: never left out in silence."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from fastglt import InputError, Ticket, compile_ticket, evaluate
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models import PyGNetwork
from fastglt.tasks import NodeClassification
from fastglt.tickets.ticket import OtherFeaturesWarning
from tests.helpers import drop, randn
from tests.toy_data import CLASSES, FEATURES, NODES, per_edge, quick_ticket, seeded, toy_data


class ReadsField(nn.Module):
    """A convolution beside what an extra field of each node says."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.read = pyg.GCNConv(FEATURES, CLASSES), nn.Linear(4, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, pe: Tensor | None = None) -> Tensor:
        out: Tensor = self.conv(x, edge_index)
        return out if pe is None else out + self.read(pe)


class NormsByGroup(nn.Module):
    """GraphNorm over the groups that `batch` names."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = pyg.GCNConv(FEATURES, 8), pyg.GraphNorm(8), pyg.GCNConv(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.last(self.norm(self.conv(x, edge_index), batch).relu(), edge_index)  # type: ignore[no-any-return]


class WeighsEdges(nn.Module):
    """A GCN that takes one number for each edge."""

    def __init__(self, name: str = "edge_weight") -> None:
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index, edge_weight)  # type: ignore[no-any-return]


class Strength(WeighsEdges):
    """The same under a name of its own."""

    def forward(self, x: Tensor, edge_index: Tensor, strength: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index, strength)  # type: ignore[no-any-return]


class ReadsData(nn.Module):
    """All of it from one `data`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = ReadsField()

    def forward(self, data: Data) -> Tensor:
        return self.inner(data.x, data.edge_index, data.pe)  # type: ignore[no-any-return]


DATA: dict[str, tuple[Any, dict[str, Any]]] = {
    "pe": (ReadsField, {"pe": randn(NODES, 4, seed=3)}),
    "batch": (NormsByGroup, {"batch": torch.arange(NODES) // 10}),
    "edge_attr as edge_weight": (WeighsEdges, {"edge_attr": per_edge()}),
    "strength": (Strength, {"strength": per_edge()}),
    "data.pe": (ReadsData, {"pe": randn(NODES, 4, seed=3)}),
}


def own_call(model: nn.Module, data: Data) -> Tensor:
    """As its owner calls it."""
    if isinstance(model, ReadsData):
        return model(data)  # type: ignore[no-any-return]
    names = ("pe", "batch", "strength")
    fields = {name: data[name] for name in names if name in data}
    if "edge_attr" in data and data.edge_attr is not None:
        fields["edge_weight"] = data.edge_attr
    return model(data.x, data.edge_index, **fields)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("build", "fields"), DATA.values(), ids=DATA)
def test_a_model_gives_what_it_gives_its_owner(build: Any, fields: dict[str, Any]) -> None:
    model, data = seeded(build).eval(), toy_data(**fields)
    task = NodeClassification.from_data(data)
    found = PyGNetwork(model).eval()(task.x, task.graph)
    torch.testing.assert_close(found, own_call(model, data))
    less = toy_data(pe=torch.zeros(NODES, 4)) if build is ReadsData else toy_data()
    without = own_call(model, less)
    assert not torch.allclose(found, without), "the field matters"


@pytest.mark.parametrize(("build", "fields"), DATA.values(), ids=DATA)
def test_a_ticket_is_found_judged_saved_and_compiled_with_it(
    build: Any, fields: dict[str, Any], tmp_path: Path
) -> None:
    model, data = seeded(build), toy_data(**fields)
    ticket = quick_ticket(model, data)
    ticket.save(tmp_path / "ticket.safetensors")
    ticket = Ticket.load(tmp_path / "ticket.safetensors", data)
    assert evaluate(ticket, model, data, seeds=[0]).n == 1
    predictor = compile_ticket(ticket, data, model)
    task = NodeClassification.from_data(data)
    assert task.score(predictor.logits(task.test), task.test) == pytest.approx(ticket.scores["search_test"])
    with pytest.raises(InputError, match="nodes cannot be added"):
        predictor.with_nodes(torch.zeros(1, FEATURES), torch.tensor([[NODES], [0]]))


def test_fields_of_edges_go_with_their_edges() -> None:
    data = toy_data(strength=per_edge(), loops=False)
    graph = Graph.from_data(data)
    pruned = graph.prune(drop(60, 0, 7))
    by_pair = {tuple(pair): float(v) for pair, v in zip(data.edge_index.T.tolist(), data.strength, strict=True)}
    found = zip(pruned.edge_index.T.tolist(), pruned.edge_fields["strength"], strict=True)
    assert pruned.edge_fields["strength"].numel() == 116
    assert all(by_pair[tuple(pair)] == float(value) for pair, value in found)
    assert graph.prune(Mask.full([60])).node_fields == graph.node_fields


def test_another_field_is_told() -> None:
    model = seeded(ReadsField)
    ticket = quick_ticket(model, toy_data(pe=randn(NODES, 4, seed=3)), isolated=False)
    assert list(ticket.config["fields"]) == ["pe"]
    other = toy_data(pe=randn(NODES, 4, seed=4))
    with pytest.warns(OtherFeaturesWarning, match="the field 'pe' differs"):
        compile_ticket(ticket, other, model)


def test_fields_that_nobody_reads_leave_no_trace() -> None:
    plain = quick_ticket(seeded(WeighsEdges), toy_data(), isolated=False)
    more = quick_ticket(seeded(WeighsEdges), toy_data(pe=randn(NODES, 4)), isolated=False)
    assert plain.config == more.config


class Asks(nn.Module):
    """A model with one argument more."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, CLASSES)


class AsksLabels(Asks):
    def forward(self, x: Tensor, edge_index: Tensor, y: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index)  # type: ignore[no-any-return]


class AsksWorld(Asks):
    def forward(self, x: Tensor, edge_index: Tensor, u: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index)  # type: ignore[no-any-return]


class NeedsMissing(Asks):
    def forward(self, x: Tensor, edge_index: Tensor, pe: Tensor) -> Tensor:
        return self.conv(x, edge_index) + pe  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (AsksLabels, r"cannot be given 'y': labels and split would tell it the answers"),
        (AsksWorld, r"cannot be given 'u': the data has it, but not for each node or edge"),
        (NeedsMissing, r"\(got 'pe', which the data does not have\)"),
    ],
)
def test_what_cannot_be_given_is_refused_by_name(build: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        quick_ticket(seeded(build), toy_data(u=torch.ones(3)))
