"""Masks that move: what fits is taken over exactly, what does not stays whole."""

from dataclasses import asdict, replace

import pytest
import torch

from fastglt import Budget, InputError, Ticket, evaluate, find_ticket, transfer_ticket
from fastglt.methods.settings import budget_for
from fastglt.methods.settings.graphs import GRAPHS
from fastglt.tasks import NodeClassification
from fastglt.training.loop import Training
from tests.deploy.test_predictor import Convolution, data

BUDGET = Budget(oneshot_epochs=3, denoise_epochs=6, interval=2, lr=0.01)


@pytest.fixture(scope="module")
def ticket() -> Ticket:
    return find_ticket(
        "gcn", data(), graph_sparsity=0.25, weight_sparsity=0.6, hidden=8, budget=BUDGET, isolated=False
    )


def test_both_masks_go_to_other_initial_weights(ticket: Ticket) -> None:
    moved = transfer_ticket(ticket, "gcn", data(), seed=5, hidden=8, budget=BUDGET)
    assert moved.masks == ticket.masks
    assert moved.seed == 5
    assert moved.initial_hash != ticket.initial_hash
    assert moved.config["method"] == "transfer"
    assert moved.config["taken"]["matrices"] == ["layer1.weight", "layer2.weight"]
    assert moved.scores["isolated_test"] == moved.scores["search_test"]
    verdict = evaluate(moved, None, data(), seeds=[5])
    assert verdict.ticket_scores == (moved.scores["isolated_test"],)


def test_the_width_is_the_tickets(ticket: Ticket) -> None:
    moved = transfer_ticket(ticket, "gcn", data(), seed=5, budget=BUDGET)
    assert moved.model["hidden"] == 8
    assert moved.masks == ticket.masks


def test_the_budget_is_the_graphs_own(ticket: Ticket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GRAPHS, ticket.graph_fingerprint, "citeseer")
    moved = transfer_ticket(ticket, "gat", data(), budget={"oneshot_epochs": 1, "denoise_epochs": 4})
    assert moved.config["budget"]["interval"] == budget_for("citeseer", "gat").interval == 3


def test_another_backbone_takes_the_edges_and_what_has_the_same_shape(ticket: Ticket) -> None:
    moved = transfer_ticket(ticket, "gin", data(), hidden=8, budget=BUDGET)
    assert moved.masks.edges == ticket.masks.edges
    assert moved.config["taken"]["matrices"] == ["layer1.weight", "layer2.weight"]
    assert moved.masks.weights["weight_readout"].sparsity == 0
    wider = transfer_ticket(ticket, "gat", data(), hidden=8, budget=BUDGET)
    assert wider.config["taken"] | {"edges": True, "matrices": []} == wider.config["taken"]
    assert wider.masks.weight_sparsity == 0
    assert wider.graph_sparsity == ticket.graph_sparsity


def test_another_graph_takes_the_weights_alone(ticket: Ticket) -> None:
    other = data(nodes=50, seed=3)
    moved = transfer_ticket(ticket, "gcn", other, hidden=8, budget=BUDGET)
    assert moved.graph_sparsity == 0
    assert moved.masks.weights == ticket.masks.weights
    assert moved.config["taken"]["edges"] is False
    moved.check(NodeClassification.from_data(other))


def test_a_users_model_takes_the_edges(ticket: Ticket) -> None:
    model = Convolution()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    moved = transfer_ticket(ticket, model, data(), budget=BUDGET)
    assert moved.masks.edges == ticket.masks.edges
    assert moved.masks.weight_sparsity == 0
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_budget_may_say_what_differs(ticket: Ticket) -> None:
    moved = transfer_ticket(ticket, "gcn", data(), hidden=8, budget=asdict(BUDGET))
    assert moved.masks.weights == ticket.masks.weights
    assert moved.config["budget"]["denoise_epochs"] == BUDGET.denoise_epochs
    with pytest.raises(InputError, match=r"unknown part of a budget \(got 'epochs'\)"):
        transfer_ticket(ticket, "gcn", data(), hidden=8, budget={"epochs": 3})


def test_what_fits_nowhere_is_refused(ticket: Ticket) -> None:
    with pytest.raises(InputError, match=r"nothing of the ticket fits: .*layer1.weight \(12, 16\)"):
        transfer_ticket(ticket, "gcn", data(nodes=50, seed=3), hidden=16, budget=BUDGET)


def test_a_budget_with_a_teacher_has_the_masks_taught(ticket: Ticket) -> None:
    budget = replace(BUDGET, distill=2.0)
    told: list[str] = []

    def progress(phase: str, training: Training, epochs: int) -> None:
        told.extend([phase] * (training.epoch == 1))

    moved = transfer_ticket(ticket, "gcn", data(), seed=3, budget=budget, hidden=8, progress=progress)
    assert told == ["teacher", "isolated"]
    assert moved.config["budget"]["distill"] == 2.0
    verdict = evaluate(moved, None, data(), seeds=[3])
    assert verdict.ticket_scores == (moved.scores["isolated_test"],)
    assert verdict.distilled is not None
