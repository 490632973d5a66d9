"""Trainings in the store: what was trained on other edge weights is another training."""

from pathlib import Path
from typing import Any

import torch
from torch_geometric import nn as pyg

from fastglt import Ticket
from fastglt.judge.evaluate import Contest
from fastglt.judge.ledger import StoredTrainings
from fastglt.runs.store import Store
from fastglt.tasks import NodeClassification
from tests.toy_data import CLASSES, FEATURES, per_edge, quick_ticket, seeded, toy_data

ABOUT: dict[str, Any] = {"ticket": "t", "dataset": "toy", "model": "pyg", "method": "fastglt"}


def found_on(weight: torch.Tensor | None) -> tuple[Ticket, Contest]:
    """A ticket of one and the same network that reads edge weights, on the toy graph with some weights."""
    model, data = seeded(pyg.GCN, FEATURES, 8, 2, CLASSES, dropout=0.5), toy_data()
    if weight is not None:
        data.edge_weight = weight
    ticket = quick_ticket(model, data=data)
    return ticket, Contest.prepare(ticket, model, NodeClassification.from_data(data))


def ledger(store: Store) -> StoredTrainings:
    return StoredTrainings(store, {}, ABOUT)


def test_a_graph_with_other_edge_weights_has_dense_trainings_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "results.sqlite")
    one, other = (found_on(scale * per_edge(seed=seed))[1] for scale, seed in ((1.0, 5), (0.01, 6)))
    one.verdict([1, 2], ledger=ledger(store))
    looking = ledger(store)
    assert other.verdict([1, 2], ledger=looking).dense_scores == other.verdict([1, 2]).dense_scores
    assert (looking.recalled, looking.kept) == (0, 4)


def test_weights_are_told_where_the_network_reads_them_and_nowhere_else(ticket: Ticket) -> None:
    weight = per_edge()
    reads, without = found_on(weight)[1], found_on(None)[1]
    assert reads.settings("dense", reads.network, 0)["edge_values"] == reads.task.graph.values_fingerprint
    assert "edge_values" not in without.settings("dense", without.network, 0)
    blind = Contest.prepare(ticket, None, NodeClassification.from_data(toy_data(edge_weight=weight)))
    assert "edge_values" not in blind.settings("dense", blind.network, 0)


def test_a_run_on_other_edge_weights_is_not_trusted() -> None:
    ticket, contest = found_on(per_edge())
    run = {**contest.task.digests, "seed": ticket.seed}
    settings = contest.settings("ticket", contest.network, ticket.seed)
    for said, known in ((contest.task.graph.values_fingerprint, True), ("another", False)):
        trusting = StoredTrainings(None, {}, ABOUT)
        trusting.trust(contest, {**run, "edge_values": said})
        assert trusting.knows(settings) is known
