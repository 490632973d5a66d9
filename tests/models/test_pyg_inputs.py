from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import nn as pyg
from torch_geometric.data import HeteroData

from fastglt import InputError, Mask, evaluate, find_ticket
from fastglt.tickets.ticket import OtherFeaturesWarning
from tests.models.user_models import IN, OUT, PLAIN, Single
from tests.toy_data import (
    QUICK,
    USER_MODELS,
    HandWritten,
    Layer,
    basic,
    per_edge,
    quick_ticket,
    seeded,
    toy_data,
)


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


def test_buffers_that_do_not_matter_may_change() -> None:
    assert quick_ticket(seeded(Scratch)).scores == quick_ticket(seeded(Single)).scores


def test_features_may_come_from_inference_mode() -> None:
    data, made = toy_data(), toy_data()
    with torch.inference_mode():
        made.x = data.x.clone()
    model = seeded(Single)
    ticket = quick_ticket(model, made)
    assert ticket.scores == quick_ticket(model, data).scores
    with torch.inference_mode():
        assert evaluate(ticket, model, made, seeds=[0]).ticket_scores == (ticket.scores["isolated_test"],)


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
