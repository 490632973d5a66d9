"""Many labels a node go everywhere: find, evaluate, compare, save and load, compile, predict, serve, export."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import fastglt
from fastglt import Budget, Ticket
from fastglt.deploy.exports import export
from fastglt.methods import METHODS
from fastglt.serve.requests import response_model
from fastglt.serve.worker import Prediction
from fastglt.tasks import MultiLabel

BUDGET = Budget(oneshot_epochs=10, denoise_epochs=40, interval=10, lr=0.03)


def example(nodes: int = 160) -> dict[str, Tensor]:
    """A ring with chords; a label is whether a feature, averaged over the neighbourhood, is large; some unknown."""
    draws = torch.Generator().manual_seed(0)
    x, ids = torch.randn(nodes, 6, generator=draws), torch.arange(nodes)
    pairs = torch.cat([torch.stack([ids, (ids + step) % nodes]) for step in (1, 7)], 1)
    edge_index = torch.cat([pairs, pairs.flip(0)], 1)
    mean = (x + torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])) / 5
    y = (mean[:, :4] > 0.2).float()
    y[torch.rand(nodes, 4, generator=draws) < 0.1] = float("nan")
    masks = {name: (ids % 4 == i) for i, name in ((1, "val_mask"), (2, "test_mask"))}
    return {"x": x, "y": y, "edge_index": edge_index, "train_mask": ids % 4 % 3 == 0, **masks}


def find(method: str = "fastglt", **settings: Any) -> Ticket:
    given = {"graph_sparsity": 0.2, "weight_sparsity": 0.5, "hidden": 16, "budget": BUDGET, **settings}
    return fastglt.find_ticket("gcn", Data(**example()), method=method, **given)


@pytest.fixture(scope="module")
def found() -> Ticket:
    return find()


def test_a_ticket_is_found_by_the_labels_alone(found: Ticket) -> None:
    assert found.task is MultiLabel
    assert (found.config["task"], found.config["metric"]) == ("multi-label", "roc_auc")
    assert (found.masks.edges.count, found.masks.weights_kept) == (256, 80)
    assert found.scores["search_test"] > 0.6


def test_it_is_saved_loaded_and_judged(found: Ticket, tmp_path: Path) -> None:
    data = Data(**example())
    found.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", data)
    verdict = fastglt.evaluate(loaded, None, data, seeds=range(2))
    assert verdict.n == 2
    assert loaded.scores == found.scores


def test_it_is_compiled_served_and_exported(found: Ticket, tmp_path: Path) -> None:
    data = Data(**example())
    predictor = fastglt.compile_ticket(found, data, layout="whole rows")
    task = MultiLabel.from_data(data)
    outputs = predictor.logits()
    assert task.score(outputs[task.test], task.test) == pytest.approx(found.scores["search_test"], abs=1e-3)
    assert torch.equal(predictor.predict(), (outputs > 0).long())
    served = Prediction.of(MultiLabel, [3, 5], outputs[[3, 5]], probabilities=True)
    assert served.answers == MultiLabel.listed(predictor.predict([3, 5]))
    np.testing.assert_allclose(served.probabilities, outputs[[3, 5]].sigmoid(), atol=1e-5)
    fields = {"nodes": [3, 5], "labels": served.answers, "probabilities": None, "ticket": None, "version": "0"}
    model = response_model(MultiLabel, named=False)
    assert json.loads(model(**fields).model_dump_json())["labels"] == served.answers
    assert "ids" in response_model(MultiLabel, named=True).model_fields
    written = export(predictor, tmp_path / "ticket.npz", to="npz")
    assert written.max_difference < 1e-3


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ace"])  # which trains as ugs does
def test_every_method_finds_such_tickets(method: str) -> None:
    options = {"round_epochs": 1} if method in ("ugs", "wdglt", "ace") else {}
    ticket = find(method, isolated=False, budget=Budget(oneshot_epochs=4, denoise_epochs=8, interval=4), **options)
    assert ticket.masks.edges.count == 256


def test_a_teacher_teaches_every_label() -> None:
    taught = find(distill=1.0)
    assert taught.config["budget"]["distill"] == 1.0
    assert taught.scores["isolated_test"] > 0.6


def test_a_users_model_is_trained_for_it() -> None:
    torch.manual_seed(0)
    model = GraphSAGE(6, 16, num_layers=2, out_channels=4)
    ticket = fastglt.find_ticket(model, Data(**example()), budget=BUDGET, weight_sparsity=0.5)
    assert ticket.task is MultiLabel
    assert ticket.scores["search_test"] > 0.6
