"""Tickets for links: every method, saved and judged, taught, resumed, compiled, of users' models."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.nn import GraphSAGE

import fastglt
from fastglt import Budget, InputError, Ticket, compile_ticket, find_ticket
from fastglt.masks import Mask
from fastglt.methods import METHODS, FixedMasks, Method
from fastglt.tasks import LinkPrediction
from fastglt.tickets.networks import named_network
from fastglt.tickets.ticket_file import decode, encode
from fastglt.training.checkpoint import pack, unpack
from fastglt.training.loop import Training
from fastglt.training.outputs import network_outputs
from tests.helpers import method_of
from tests.tasks.links import link_data, link_task
from tests.tasks.test_pairs import as_set

BUDGET = Budget(oneshot_epochs=2, denoise_epochs=6, interval=2, lr=0.02)
QUICK: dict[str, dict[str, Any]] = {name: {"round_epochs": 2} for name in ("ugs", "wdglt", "ace")}


def find(method: str = "fastglt", model: Any = "gcn", **settings: Any) -> Ticket:
    given = {"graph_sparsity": 0.3, "weight_sparsity": 0.5, "hidden": 6, "budget": BUDGET, **settings}
    return find_ticket(model, link_data(), task="link", method=method, **given)


@pytest.fixture(scope="module")
def found() -> Ticket:
    long = Budget(oneshot_epochs=10, denoise_epochs=60, interval=10, lr=0.02)
    return find(budget=long, hidden=16, task_options={"split_seed": 1})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_prunes_messages_and_decoder(method: str) -> None:
    ticket = find(method, isolated=False, **QUICK.get(method, {}))
    assert ticket.task is LinkPrediction
    assert (ticket.masks.edges.size, ticket.masks.edges.count) == (153, 107)
    assert ticket.masks.weights_kept == 75  # of 36 + 36 + 36 + 36 + 6
    assert "decoder.weights.2" in ticket.masks.weights


def test_a_ticket_is_found_that_predicts_something(found: Ticket) -> None:
    assert found.config["metric"] == "hits@50"
    assert found.config["task_options"] == {"split_seed": 1}
    assert found.scores["search_test"] > 0.9  # the cliques are in the features
    assert found.scores["isolated_test"] > 0.9


def test_it_is_saved_loaded_and_judged(found: Ticket, tmp_path: Path) -> None:
    found.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", link_data())
    assert loaded.model["link-decoder"] == {"name": "mlp", "hidden": 16, "layers": 3}
    assert fastglt.evaluate(loaded, None, link_data(), seeds=range(2)).n == 2
    pruned = loaded.prune(link_data())
    kept = link_task(split_seed=1).edge_targets[found.masks.edges.kept]
    assert as_set(pruned.edge_index.T) == as_set(kept)


@pytest.mark.parametrize(
    ("claimed", "reason"),
    [
        (
            {"name": "mlp", "hidden": 9, "layers": 3},
            r"'decoder\.biases\.0' of shape \(9,\) expected",
        ),
        ({"name": "mlp", "hidden": 16, "layers": 2}, r"'decoder\.biases\.1' of shape \(1,\) expected"),
        ({"name": "mlp", "hidden": 16, "layers": 10**9}, "layers of at most"),
        ({"name": "mlp", "hidden": -1, "layers": 3}, "must have a decoder that is one of mlp, dot"),
        ({"name": "__import__"}, "must have a decoder that is one of mlp, dot"),
        (["mlp"], "must have a decoder that is one of mlp, dot"),
    ],
)
def test_a_file_that_claims_another_decoder_is_refused(found: Ticket, claimed: Any, reason: str) -> None:
    forged = replace(found, model={**found.model, "link-decoder": claimed})
    with pytest.raises(InputError, match=reason):
        decode(encode(forged), "a file", initial_file=Path("none"))


class TestCompiled:
    PAIRS = ((0, 1), (0, 15), (39, 2), (0, 1))

    def test_it_gives_the_masked_networks_numbers(self, found: Ticket) -> None:
        predictor = compile_ticket(found, link_data())
        with torch.no_grad():
            expected = predictor.network(predictor.x, predictor.graph, predictor.score, torch.tensor(self.PAIRS))
        torch.testing.assert_close(predictor.logits(self.PAIRS), expected, rtol=1e-4, atol=1e-4)
        assert predictor.predict(self.PAIRS).tolist() == [1, 0, 0, 1]
        assert predictor.logits().shape == (40, 16)  # rows of all nodes

    def test_its_score_is_the_searchs(self, found: Ticket) -> None:
        predictor, task = compile_ticket(found, link_data()), link_task(split_seed=1)
        outputs = predictor.logits(torch.cat([task.test, task.test_negatives]))
        assert task.score(outputs, len(task.test)) == pytest.approx(found.scores["search_test"])

    def test_new_nodes_may_be_in_pairs(self, found: Ticket) -> None:
        predictor = compile_ticket(found, link_data())
        grown = predictor.with_nodes(predictor.x.dense[:1], [[40, 40], [1, 2]])
        assert float(grown.logits([[40, 3]])) > float(grown.logits([[40, 33]]))

    @pytest.mark.parametrize(
        ("pairs", "reason"),
        [
            ([0, 1], "pairs must be whole numbers, a row of two each"),
            ([[0, 1, 2]], "a row of two each"),
            ([[0, 40]], "must lie in 0 … 39"),
            ([[0.5, 1.0]], "must be whole numbers"),
            (None, "pairs must be named"),
        ],
    )
    def test_other_questions_are_refused(self, found: Ticket, pairs: Any, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            compile_ticket(found, link_data()).predict(pairs)


def test_a_taught_ticket_imitates_pairs() -> None:
    ticket = find(distill=1.0, task_options={"decoding": "dot", "batch": 50})
    assert ticket.config["budget"]["distill"] == 1.0
    assert ticket.config["task_options"] == {"decoding": "dot", "batch": 50}
    assert ticket.masks.weights_total == 72


def test_a_users_model_gives_rows(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = GraphSAGE(6, 8, num_layers=2, out_channels=5)
    ticket = find(model=model)
    assert {"encoder.convs.0.lin_l.weight", "decoder.weights.0"} <= set(ticket.masks.weights)
    ticket.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", link_data())
    assert fastglt.evaluate(loaded, model, link_data(), seeds=[0, 1]).n == 2
    predictor = compile_ticket(loaded, link_data(), model)
    with torch.no_grad():
        expected = predictor.network(predictor.x, predictor.graph, predictor.score, torch.tensor([[0, 1]]))
    torch.testing.assert_close(predictor.logits([[0, 1]]), expected, rtol=1e-4, atol=1e-4)


def training(method: Method, task: LinkPrediction) -> Training:
    return Training(named_network("gcn", task, hidden=6, seed=0), task, method.recipe, seed=0)


@pytest.mark.parametrize("options", [{}, {"batch": 50}])
def test_a_search_goes_on_bit_for_bit(options: dict[str, Any]) -> None:
    task, method = link_task(**options), method_of("fastglt", 0.3, 0.5, budget=BUDGET)
    whole, first, second = (training(method, task) for _ in range(3))
    method.begin(whole)
    method.begin(first)
    for epoch in range(8):
        whole.run_epoch(method)
        method.after_epoch(whole)
        if epoch < 4:
            first.run_epoch(method)
            method.after_epoch(first)
    unpack(second, *pack(first))
    for _ in range(4):
        second.run_epoch(method)
        method.after_epoch(second)
    assert second.masks.edges == whole.masks.edges
    state = whole.network.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in second.network.state_dict().items())
    assert second.history == whole.history


def test_the_forest_rule_lets_improbable_edges_go_first() -> None:
    """Ten edges between the cliques are the least probable links once the network has learnt."""
    data = link_data()
    across = torch.tensor([[i, 39 - i] for i in range(10)]).T
    data.edge_index = torch.cat([data.edge_index, across, across.flip(0)], 1)
    task, method = LinkPrediction.from_data(data), method_of("forest", 0.3, 0.0, budget=BUDGET, forests=0)
    fixed, run = FixedMasks(budget=BUDGET), training(method, task)
    for _ in range(60):
        run.run_epoch(fixed)
    chosen = method.forest.choose(run, round(0.7 * task.graph.num_edges), seed=0)  # type: ignore[attr-defined]
    source, target = task.graph.edges // 10
    odd = source != target
    assert odd.sum() > 5
    assert not chosen[odd].any()
    outputs = network_outputs(run, whole=True, targets=task.edge_targets)
    assert task.agreement(outputs)[0][odd].mean() < task.agreement(outputs)[0][~odd].mean()
    assert Mask(chosen).count == round(0.7 * task.graph.num_edges)
