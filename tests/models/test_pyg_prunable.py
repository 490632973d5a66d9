import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt import InputError, evaluate
from fastglt.models import PyGNetwork
from fastglt.models.pyg_checks import default_prunable
from fastglt.tasks import NodeClassification
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe
from tests.models.user_models import IN, OUT, Single
from tests.toy_data import (
    USER_MODELS,
    HandWritten,
    TakesData,
    basic,
    quick_ticket,
    seeded,
    toy_data,
)


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
    model, data, options = seeded(Repeats), toy_data(), {"round_epochs": 2} if method == "ugs" else {}
    ticket = quick_ticket(model, data, method=method, **options)
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
    assert torch.allclose(training.outputs(None).std(0), torch.zeros(OUT), atol=1e-6)
    after = training.network.get_parameter("module.convs.0.lin.weight")
    assert after is training.weights["module.convs.0.lin.weight"]


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
