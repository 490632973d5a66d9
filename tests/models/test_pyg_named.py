"""A user's PyG model by name: ``module:Class``, called as PyG's own models are."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt import InputError, Ticket, compile_ticket, evaluate, find_ticket
from fastglt.methods import Targets
from fastglt.models import BACKBONES, build, lookup
from fastglt.models.options import options_of, read_options
from fastglt.runs.experiment import Experiment
from tests.toy_data import CLASSES, FEATURES, QUICK, toy_data

HERE = __name__


def make_gat(in_channels: int, hidden: int, out_channels: int, *, heads: int = 2) -> nn.Module:
    """A function that returns a model."""
    found: nn.Module = pyg.GAT(in_channels, hidden, 2, out_channels, heads=heads, dropout=0.3)
    return found


class NoShape(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()


class Needs(pyg.GCN):  # type: ignore[misc]
    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, temperature: float) -> None:
        super().__init__(in_channels, hidden_channels, 2, out_channels)


class Idle(nn.Module):
    def __init__(self, in_channels: int, hidden_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv, self.idle = pyg.GCNConv(in_channels, out_channels), nn.Linear(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)  # type: ignore[no-any-return]


def not_a_model(in_channels: int, hidden: int, out_channels: int) -> str:
    return "a model"


def quick(model: str, **settings: Any) -> Ticket:
    given = {"graph_sparsity": 0.3, "weight_sparsity": 0.5, "hidden": 8, "budget": QUICK, **settings}
    return find_ticket(model, toy_data(), **given)


@pytest.mark.parametrize("model", ["torch_geometric.nn:GraphSAGE", f"{HERE}:make_gat", "torch_geometric.nn:GAT"])
def test_a_seed_gives_the_model_back(model: str, tmp_path: Path) -> None:
    ticket = quick(model, seed=3)
    ticket.save(tmp_path / "ticket.safetensors")
    assert not (tmp_path / "init.safetensors").exists()
    loaded = Ticket.load(tmp_path / "ticket.safetensors", toy_data())
    assert all(torch.equal(value, loaded.initial[name]) for name, value in ticket.initial.items())
    verdict = evaluate(loaded, None, toy_data(), seeds=[3])
    assert verdict.ticket_scores == (ticket.scores["isolated_test"],)
    assert compile_ticket(loaded, toy_data()).logits().shape == (30, CLASSES)
    other = quick(model, seed=4)
    assert any(not torch.equal(value, other.initial[name]) for name, value in ticket.initial.items())


def test_a_ticket_is_that_of_the_same_model_built_by_hand() -> None:
    named = quick("torch_geometric.nn:GraphSAGE", model_options={"dropout": 0.5})
    spec = named.model
    model = pyg.GraphSAGE(FEATURES, 8, 2, CLASSES, dropout=0.5)
    model.load_state_dict(dict(named.initial))
    by_hand = find_ticket(model, toy_data(), graph_sparsity=0.3, weight_sparsity=0.5, budget=QUICK)
    assert by_hand.masks == named.masks
    assert by_hand.scores == named.scores
    assert (spec["name"], spec["class"]) == ("pyg-graphsage", "torch_geometric.nn.models.basic_gnn:GraphSAGE")
    assert (spec["num_layers"], spec["dropout"], spec["hidden"], spec["seed"]) == (2, 0.5, 8, 0)


def test_options_have_the_types_that_the_class_says() -> None:
    sage, gat, own = (lookup(f"torch_geometric.nn:{name}") for name in ("GraphSAGE", "GAT", "GCN"))
    assert own is not BACKBONES["gcn"]
    assert {"num_layers", "dropout", "norm", "jk"} <= options_of(sage).keys()
    texts = {"num_layers": "3", "dropout": "0.25", "norm": "batch_norm", "jk": "none"}
    assert read_options(sage, texts) == {"num_layers": 3, "dropout": 0.25, "norm": "batch_norm", "jk": None}
    assert read_options(gat, {"heads": "4", "residual": "true"}) == {"heads": 4, "residual": True}  # its layers'
    function = lookup(f"{HERE}:make_gat")
    with pytest.raises(InputError, match=r"model 'pyg-make_gat' has no option 'head'; it takes heads"):
        read_options(function, {"head": "4"})


def test_options_that_are_none_may_be_words(tmp_path: Path) -> None:
    ticket = quick("torch_geometric.nn:GraphSAGE", model_options={"norm": "batch_norm"})
    ticket.save(tmp_path / "ticket.safetensors")
    assert Ticket.load(tmp_path / "ticket.safetensors", toy_data()).model["norm"] == "batch_norm"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (f"{HERE}:NoShape", "by name \\(got the class NoShape without in_channels\\)"),
        (f"{HERE}:Needs", r"must have a name and a default \(got temperature of the class Needs, without\)"),
        (f"{HERE}:Idle", r"must take part in its prediction \(got 'idle.weight', which does not\)"),
        (f"{HERE}:not_a_model", r"must give a torch.nn.Module \(got str\)"),
        (f"{HERE}:CLASSES", "a model must be a class that extends fastglt.Backbone"),
        ("torch_geometric.nn:MLP", "at least one MessagePassing layer"),
        ("torch_geometric.nn:PNA", r"must be built from its shape and options \(got TypeError: "),
    ],
)
def test_what_cannot_be_built_or_trained_is_refused(model: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        quick(model)


def test_a_file_never_has_a_module_imported(tmp_path: Path) -> None:
    quick("torch_geometric.nn:GraphSAGE").save(tmp_path / "ticket.safetensors")
    spec = dict(quick(f"{HERE}:make_gat").model)
    del BACKBONES["pyg-graphsage"], BACKBONES["pyg-make_gat"]
    with pytest.raises(InputError, match=r"or a registered one \(got 'pyg-graphsage' of torch_geometric\."):
        Ticket.load(tmp_path / "ticket.safetensors", toy_data())
    with pytest.raises(InputError, match="unknown model"):
        build(spec)


def test_another_class_of_that_name_is_refused() -> None:
    spec = {**quick(f"{HERE}:make_gat").model, "class": "elsewhere:make_gat"}
    with pytest.raises(InputError, match=r"the model is elsewhere:make_gat, .* \(got .*test_pyg_named:make_gat\)"):
        build(spec)


def test_a_process_of_a_comparison_is_told_where_the_model_lives() -> None:
    given: dict[str, Any] = {"targets": Targets(), "budget": QUICK, "model_options": {"dropout": 0.5}}
    experiment = Experiment(model="torch_geometric.nn:GraphSAGE", **given)
    again = Experiment(model=experiment.model_name, **given)  # by its name, which only this process knows
    for one in (experiment, again):
        values = json.loads(json.dumps(one.to_json()))
        BACKBONES.pop("pyg-graphsage", None)
        told = Experiment.from_json(values)
        assert (told.model, told.model_name) == ("torch_geometric.nn.models.basic_gnn:GraphSAGE", "pyg-graphsage")
        assert told.model_options == {"dropout": 0.5}
