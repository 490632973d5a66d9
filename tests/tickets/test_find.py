import json
import pickle
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.datasets import Planetoid
from torch_geometric.transforms import NormalizeFeatures

from fastglt import GAT, GCN, GIN, Budget, InputError, Ticket, compile_ticket, evaluate, find_ticket
from fastglt.cli import main
from fastglt.cli.shared.setup import Setup
from fastglt.graphs.graph import Graph
from fastglt.methods import Method, Targets, make
from fastglt.methods.settings import budget_for
from fastglt.methods.settings.graphs import GRAPHS
from fastglt.models import PyGNetwork
from fastglt.tasks import NodeClassification
from fastglt.tickets.find import Found, find
from fastglt.tickets.networks import as_network
from fastglt.training.loop import Training
from tests.helpers import both_ways
from tests.toy_data import CLASSES, FEATURES, QUICK, USER_MODELS, quick_ticket, seeded, toy_data

OURS: dict[str, Any] = {
    "by name": lambda: "gin",
    "our GCN": lambda: GCN(FEATURES, 8, CLASSES, seed=4),
    "our GIN": lambda: GIN(FEATURES, 8, CLASSES),
    "our GAT": lambda: GAT(FEATURES, 4, CLASSES),
}


@pytest.mark.parametrize("name", [*OURS, *USER_MODELS])
def test_a_ticket_has_exactly_the_sparsities_asked_for_and_says_how_it_was_found(name: str) -> None:
    model = OURS[name]() if name in OURS else seeded(USER_MODELS[name])
    ticket = quick_ticket(model, graph_sparsity=0.25, weight_sparsity=0.8, seed=2)
    total = ticket.masks.weights_total
    assert ticket.masks.edges.count == 45
    assert ticket.masks.weights_kept == total - round(0.8 * total)
    assert ticket.soft_edge_mask is not None
    assert ticket.soft_edge_mask.shape == (45,)
    runs = ("search", "search_unweighted", "isolated")
    assert list(ticket.scores) == [f"{run}_{part}" for run in runs for part in ("val", "test")]
    assert all(0 <= score <= 1 for score in ticket.scores.values())
    for weight, mask in ticket.masks.weights.items():
        assert not ticket.weights[weight][~mask.kept].any()
    assert ticket.config["targets"] == {"graph_sparsity": 0.25, "weight_sparsity": 0.8}
    assert ticket.config["method"] == "fastglt"
    assert ticket.seed == 2
    assert json.loads(json.dumps(dict(ticket.config))) == ticket.config
    assert len(ticket.history) >= QUICK.epochs
    assert {"fastglt", "torch", "torch_geometric", "python"} <= set(ticket.versions)
    assert ticket.initial_from == ("file" if name in USER_MODELS else "recipe")


def test_the_start_is_the_models_own_weights() -> None:
    model = seeded(USER_MODELS["GCN"])
    ticket = quick_ticket(model, isolated=False)
    assert ticket.initial.keys() == ticket.weights.keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(ticket.initial[name], value)


def test_pruned_data_and_found_weights_give_the_users_model_the_tickets_score() -> None:
    """What the ticket promises can be had with nothing but the user's own model and data."""
    data, model = toy_data(loops=True), seeded(USER_MODELS["GraphSAGE"])
    ticket = quick_ticket(model, data)
    model.load_state_dict(ticket.weights)
    pruned = ticket.prune(data)
    with torch.no_grad():
        right = model.eval()(pruned.x, pruned.edge_index).argmax(-1) == data.y
    assert float(right[data.test_mask].double().mean()) == ticket.scores["search_unweighted_test"]
    assert float(right[data.val_mask].double().mean()) == ticket.scores["search_unweighted_val"]


def test_the_same_seed_finds_the_same_ticket_and_another_one_another() -> None:
    one, two, other = (quick_ticket(seed=seed, isolated=False) for seed in (0, 0, 1))
    assert one.masks == two.masks != other.masks
    assert one.scores == two.scores


def test_isolation_can_be_left_out() -> None:
    ticket = quick_ticket(isolated=False)
    assert not any(name.startswith("isolated") for name in ticket.scores)


def test_only_what_is_to_be_pruned_is_scored() -> None:
    weights_only = quick_ticket(graph_sparsity=0.0, isolated=False)
    assert weights_only.soft_edge_mask is None
    assert weights_only.masks.edges.count == 60
    edges_only = quick_ticket(weight_sparsity=0.0, isolated=False)
    assert edges_only.masks.weights_kept == edges_only.masks.weights_total


def test_progress_is_told_every_epoch_of_every_phase() -> None:
    calls: list[tuple[str, int, int]] = []

    def progress(phase: str, training: Training, epochs: int) -> None:
        calls.append((phase, training.epoch, epochs))

    quick_ticket(progress=progress)
    epochs = range(1, QUICK.epochs + 1)
    assert calls == [(phase, epoch, 6) for phase in ("search", "isolated") for epoch in epochs]


def test_a_search_can_bring_its_dense_twin() -> None:
    task = NodeClassification.from_data(toy_data())
    network = as_network("gcn", task, hidden=8, seed=0)
    method = make("fastglt", targets=Targets(graph_sparsity=0.3, weight_sparsity=0.5), budget=QUICK)
    found = find(network, task, method, seed=0)
    assert found.ticket.scores["dense_test"] == found.phases["dense"].best.scores.test
    assert [record.epoch for record in found.phases["isolated"].history] == [1, 2, 3, 4, 5, 6]
    verdict = evaluate(found.ticket, None, toy_data(), seeds=[0])
    assert verdict.dense_scores == (found.phases["dense"].best.scores.test,)
    assert verdict.ticket_scores == (found.phases["isolated"].best.scores.test,)


class TestRounds:
    def found(self, method: str, **options: Any) -> Found:
        task = NodeClassification.from_data(toy_data())
        targets = Targets(graph_sparsity=0.3, weight_sparsity=0.8)
        chosen = make(method, targets=targets, budget=QUICK, **options)
        return find(as_network("gcn", task, hidden=8, seed=0), task, chosen, seed=0)

    def test_an_iterative_method_gives_a_ticket_for_each(self) -> None:
        found = self.found("ugs", round_epochs=2, edge_share=0.2, weight_share=0.5)
        # 60 edges: 20 %, then 36 % is beyond 30 %; 72 weights: 50 %, 75 %, then 80 %
        kept = [(ticket.masks.edges.count, ticket.masks.weights_kept) for ticket in found.rounds]
        assert kept == [(48, 36), (42, 18), (42, 14)]
        assert [ticket.config["round"] for ticket in found.rounds] == [1, 2, 3]
        for ticket in found.rounds:
            assert list(ticket.scores) == [
                f"search{part}_{s}" for part in ("", "_unweighted") for s in ("val", "test")
            ]

    def test_the_last_one_is_the_ticket(self) -> None:
        found = self.found("ugs", round_epochs=2, edge_share=0.2, weight_share=0.5)
        *_, last = found.rounds
        assert last.masks == found.ticket.masks
        assert all(torch.equal(value, found.ticket.weights[name]) for name, value in last.weights.items())
        assert last.scores["search_test"] == found.ticket.scores["search_test"]
        assert "round" not in found.ticket.config
        assert found.phases["search"].rounds[-1] is found.phases["search"].best

    def test_rounds_that_are_not_trained_give_none(self) -> None:
        found = self.found("ugs", round_epochs=2, edge_share=0.2, weight_share=0.5, train_rounds=False)
        assert [ticket.masks.weights_kept for ticket in found.rounds] == [14]
        assert len(found.phases["search"].history) == 3 * 2 + 2

    def test_other_methods_have_none(self) -> None:
        assert self.found("fastglt").rounds == ()

    def test_dense_and_isolated_runs_go_by_the_budget_and_the_search_by_its_own(self) -> None:
        found = self.found("ugs", round_epochs=2, edge_share=0.2, weight_share=0.5)
        epochs = {name: len(result.history) for name, result in found.phases.items()}
        assert epochs == {"search": 12, "isolated": QUICK.epochs, "dense": QUICK.epochs}


class TestDistilled:
    taught = replace(QUICK, distill=2.0)

    def found(self, budget: Budget = taught, **choices: Any) -> Found:
        task = NodeClassification.from_data(toy_data())
        method = make("fastglt", targets=Targets(graph_sparsity=0.3, weight_sparsity=0.5), budget=budget)
        return find(as_network("gcn", task, hidden=8, seed=0), task, method, seed=0, **choices)

    def test_the_teacher_is_the_plain_dense_training_bit_for_bit_and_is_trained_once(self) -> None:
        told: list[str] = []

        def progress(phase: str, training: Training, epochs: int) -> None:
            told.extend([phase] * (training.epoch == 1))

        distilled, plain = self.found(progress=progress), self.found(QUICK)
        assert told == ["teacher", "search", "isolated", "dense_distilled"]
        assert list(distilled.phases) == ["teacher", "search", "isolated", "dense", "dense_distilled"]
        assert distilled.phases["dense"] is distilled.phases["teacher"]
        teacher, dense = distilled.phases["teacher"], plain.phases["dense"]
        assert teacher.history == dense.history
        assert all(torch.equal(value, dense.best.state[name]) for name, value in teacher.best.state.items())

    def test_everything_else_is_taught(self) -> None:
        distilled, plain = self.found(), self.found(QUICK)
        for phase, twin in (("search", "search"), ("isolated", "isolated"), ("dense_distilled", "dense")):
            first, second = distilled.phases[phase].history[0].loss, plain.phases[twin].history[0].loss
            assert first > second, "what the teacher adds"

    def test_the_ticket_says_so(self) -> None:
        ticket, plain = self.found().ticket, self.found(QUICK).ticket
        assert ticket.config["budget"] == {**plain.config["budget"], "distill": 2.0}
        assert "distill" not in plain.config["budget"]
        runs = ("search", "search_unweighted", "teacher", "isolated", "dense", "dense_distilled")
        assert list(ticket.scores) == [f"{run}_{part}" for run in runs for part in ("val", "test")]
        assert ticket.scores["dense_test"] == ticket.scores["teacher_test"] == plain.scores["dense_test"]
        assert set(ticket.seconds) == {"teacher", "search", "isolated", "dense", "dense_distilled"}

    def test_python_asks_for_it_by_one_keyword(self) -> None:
        ticket = quick_ticket(distill=2.0)
        assert ticket.masks == self.found(dense=False).ticket.masks
        assert ticket.scores == quick_ticket(budget=self.taught).scores
        assert not any(name.startswith("dense") for name in ticket.scores)
        assert "distill" not in quick_ticket(distill=0.0, budget=self.taught).config["budget"]
        with pytest.raises(InputError, match="distill must not be negative"):
            quick_ticket(distill=-1.0)

    def test_a_method_with_a_teacher_of_its_own_keeps_it(self) -> None:
        ticket = quick_ticket(method="teddy", distill=2.0, imitation=0.5, isolated=False)
        assert (ticket.config["options"], ticket.config["budget"]["distill"]) == ({"imitation": 0.5}, 2.0)

    @pytest.mark.parametrize("name", USER_MODELS)
    def test_users_models_are_taught_as_well(self, name: str) -> None:
        model = seeded(USER_MODELS[name])
        ticket = quick_ticket(model, distill=2.0)
        verdict = evaluate(ticket, model, toy_data(), seeds=[0])
        assert verdict.dense_scores == (ticket.scores["teacher_test"],)
        assert verdict.ticket_scores == (ticket.scores["isolated_test"],)


def test_data_without_test_nodes_has_no_test_scores() -> None:
    data = toy_data()
    del data.test_mask
    ticket = quick_ticket(data=data, isolated=False)
    assert ticket.scores["search_test"] != ticket.scores["search_test"]
    with pytest.raises(InputError, match="test_mask must select at least one node"):
        evaluate(ticket, None, data)


def test_method_options_are_passed_on() -> None:
    ticket = quick_ticket(swap_fraction=0.1, isolated=False)
    assert ticket.config["options"]["swap_fraction"] == 0.1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": "gcm"}, r"unknown model \(got 'gcm'\); did you mean 'gcn'"),
        ({"model": 3}, r"a name or a torch.nn.Module \(got int\)"),
        ({"model": nn.Linear(FEATURES, CLASSES)}, "at least one MessagePassing layer"),
        ({"model": GCN(FEATURES + 1, 8, CLASSES)}, r"must take 6 features \(got 7\)"),
        ({"model": GCN(FEATURES, 8, CLASSES - 1)}, r"give 3 outputs for each node \(got 2\)"),
        (
            {"model": GCN(FEATURES, 8, CLASSES).double()},
            r"single precision \(got 'layer1.weight' as torch.float64\)",
        ),
        (
            {"model": GCN(FEATURES, 8, CLASSES).requires_grad_(False)},
            r"trained whole \(got 'layer1.weight' with requires_grad=False\)",
        ),
        ({"weight_sparsity": torch.tensor(0.5)}, r"weight_sparsity must be a number \(got tensor\(0.5"),
        ({"graph_sparsity": "0.5"}, r"graph_sparsity must be a number \(got '0.5'\)"),
        ({"graph_sparsity": 1.0}, r"graph_sparsity must lie in \[0, 1\) \(got 1.0\)"),
        ({"weight_sparsity": -0.1}, r"weight_sparsity must lie in \[0, 1\) \(got -0.1\)"),
        ({"graph_sparsity": float("nan")}, "graph_sparsity must lie"),
        ({"graph_sparsity": 0.999}, "must leave at least one of 60"),
        ({"method": "fastgtl"}, "did you mean 'fastglt'"),
        ({"metric": "f2"}, "unknown metric"),
        ({"wrong_option": 1}, "has no option 'wrong_option'"),
        ({"swap_fraction": 2.0}, "swap_fraction"),
        ({"hidden": 0}, "hidden must be at least 1"),
    ],
)
def test_bad_arguments_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        quick_ticket(settings.pop("model", "gcn"), **settings)


def test_numbers_may_be_numpys(tmp_path: Path) -> None:
    numbers = {"seed": np.int64(3), "graph_sparsity": np.float32(0.5), "hidden": np.int32(8)}
    ticket = quick_ticket(**numbers, swap_fraction=np.float32(0.25))
    ticket.save(tmp_path / "ticket.safetensors")
    again = Ticket.load(tmp_path / "ticket.safetensors")
    assert (again.seed, again.graph_sparsity, again.config["options"]["swap_fraction"]) == (3, 0.5, 0.25)
    assert again.masks == quick_ticket(seed=3, graph_sparsity=0.5, hidden=8, swap_fraction=0.25).masks


@pytest.mark.parametrize("model", ["gcn", "gin", "gat", "GraphSAGE"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu")])
def test_the_callers_modes_change_nothing(model: str, mode: Any) -> None:
    data = toy_data()
    own = seeded(USER_MODELS[model]) if model in USER_MODELS else None
    expected = quick_ticket(own or model, data)
    with mode():
        ticket = quick_ticket(own or model, data)
        verdict = evaluate(ticket, own, data, seeds=[0])
        logits = compile_ticket(ticket, data, own).logits()
    assert ticket.scores == expected.scores
    assert verdict.ticket_scores == (expected.scores["isolated_test"],)
    assert logits.dtype == torch.float32


@pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
def test_the_default_type_of_numbers_changes_nothing(model: str, tmp_path: Path) -> None:
    data, path = toy_data(), tmp_path / "ticket.safetensors"
    expected = quick_ticket(model, data)
    torch.set_default_dtype(torch.float64)
    try:
        ticket = quick_ticket(model, data)
        assert {value.dtype for value in ticket.weights.values()} == {torch.float32}
        assert compile_ticket(expected, data).logits().dtype == torch.float32
        ticket.save(path)
    finally:
        torch.set_default_dtype(torch.float32)
    assert ticket.scores == expected.scores
    expected.save(tmp_path / "expected.safetensors")
    assert path.read_bytes() == (tmp_path / "expected.safetensors").read_bytes()


def test_bad_data_is_refused() -> None:
    for name in ("x", "y", "train_mask", "val_mask", "edge_index"):
        data = toy_data()
        del data[name]
        with pytest.raises(InputError, match=name):
            quick_ticket(data=data)
    with pytest.raises(InputError, match=r"torch_geometric.data.Data \(got dict\)"):
        find_ticket("gcn", {}, budget=QUICK)


def test_a_wrapped_model_is_taken_as_it_is() -> None:
    wrapped = PyGNetwork(seeded(USER_MODELS["GCN"]))
    assert as_network(wrapped, NodeClassification.from_data(toy_data()), hidden=8, seed=0) is wrapped
    with pytest.raises(InputError, match="must return"):
        as_network(
            PyGNetwork(seeded(USER_MODELS["GCN"])), NodeClassification.from_data(five_classes()), hidden=8, seed=0
        )


def five_classes() -> Any:
    data = toy_data()
    data.y = torch.arange(30) % 5
    return data


def test_training_learns() -> None:
    budget = Budget(oneshot_epochs=10, denoise_epochs=40, interval=10, lr=0.02)
    data = toy_data()
    data.edge_index = both_ways([(i, (i + step) % 30) for step in (3, 6) for i in range(30)])  # within classes
    for model in ("gcn", seeded(USER_MODELS["GraphSAGE"])):
        ticket = find_ticket(model, data, graph_sparsity=0.2, weight_sparsity=0.3, budget=budget, hidden=16)
        assert ticket.scores["search_val"] > 0.5
        assert ticket.scores["isolated_val"] > 0.5


@pytest.mark.parametrize("seed", [1.5, -1])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(InputError, match=r"seed must (be a whole number|not be negative) \(got -?1"):
        quick_ticket("gcn", seed=seed)


@pytest.mark.parametrize("model", ["gcn", "own"])
def test_a_ticket_goes_from_process_to_process(model: str, tmp_path: Path) -> None:
    ticket = quick_ticket(model if model == "gcn" else seeded(next(iter(USER_MODELS.values()))))
    ticket.save(tmp_path / "ticket.safetensors")
    for one in (ticket, Ticket.load(tmp_path / "ticket.safetensors")):
        other = pickle.loads(pickle.dumps(one))
        assert other.masks == ticket.masks
        assert other.initial.keys() == ticket.initial.keys()


def test_a_graph_can_be_called_undirected_and_its_ticket_remembers(tmp_path: Path) -> None:
    """Seven columns have lost their reverse: 20 % of the pairs go, and the ticket fits the same data again."""
    data = toy_data()
    data.edge_index = data.edge_index[:, 7:]
    ticket = quick_ticket(seeded(USER_MODELS["GCN"]), data, graph_sparsity=0.2, directed=False)
    assert (ticket.masks.edges.size, ticket.masks.edges.count) == (60, 48)
    ticket.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", data)
    assert loaded.directed is False
    kept = loaded.prune(data).edge_index
    assert {tuple(sorted(pair)) for pair in kept.T.tolist()} <= {
        tuple(sorted(p)) for p in data.edge_index.T.tolist()
    }
    assert len({tuple(sorted(pair)) for pair in kept.T.tolist()}) == 48
    assert evaluate(loaded, seeded(USER_MODELS["GCN"]), data, seeds=[0]).n == 1


class Resolved(Exception):
    """What a search would be given."""


class TestDefaults:
    """`find_ticket` searches as `fastglt find` does, where nobody says otherwise."""

    def method_of_a_call(self, monkeypatch: pytest.MonkeyPatch, *arguments: Any, **choices: Any) -> Method:
        """The method, with budget and options, that a call would search with."""

        def stop(network: Any, task: Any, method: Method, **rest: Any) -> None:
            raise Resolved(method)

        with monkeypatch.context() as patch:
            patch.setattr("fastglt.tickets.find.find", stop)
            with pytest.raises(Resolved) as stopped:
                find_ticket(*arguments, **choices)
        found = stopped.value.args[0]
        assert isinstance(found, Method)
        return found

    def method_of_the_command(self, dataset: str, model: str, method: str) -> Method:
        setup = Setup(dataset=dataset, model=model)
        targets = Targets(graph_sparsity=0.2, weight_sparsity=0.9)
        return setup.experiment(method=method, options={}, targets=targets, seed=0, threads=1).make_method()

    @pytest.mark.parametrize("model", ["gcn", "gin", "gat"])
    @pytest.mark.parametrize("method", ["fastglt", "ugs", "wdglt"])
    def test_a_graph_of_the_paper_takes_the_published_settings(
        self, monkeypatch: pytest.MonkeyPatch, model: str, method: str
    ) -> None:
        data = toy_data()
        monkeypatch.setitem(GRAPHS, Graph.from_data(data).fingerprint, "citeseer")
        found = self.method_of_a_call(monkeypatch, model, data, method=method, hidden=8)
        assert found == self.method_of_the_command("citeseer", model, method)
        ours = {"gcn": GCN, "gin": GIN, "gat": GAT}[model](FEATURES, 8, CLASSES)
        assert found == self.method_of_a_call(monkeypatch, ours, data, method=method)

    def test_other_graphs_and_models_take_the_defaults(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = toy_data()
        found = self.method_of_a_call(monkeypatch, "gcn", data, method="ugs", hidden=8)
        assert found == self.method_of_the_command("digits", "gcn", "ugs")
        monkeypatch.setitem(GRAPHS, Graph.from_data(data).fingerprint, "citeseer")
        users = self.method_of_a_call(monkeypatch, seeded(USER_MODELS["GCN"]), data, method="ugs")
        assert users == found

    def test_what_the_caller_gives_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        data = toy_data()
        monkeypatch.setitem(GRAPHS, Graph.from_data(data).fingerprint, "cora")
        given = {"budget": {"lr": 0.02}, "distill": 2.0, "edge_l1": 0.5, "hidden": 8}
        found = self.method_of_a_call(monkeypatch, "gat", data, method="ugs", **given)
        assert found.budget == Budget(oneshot_epochs=30, denoise_epochs=600, interval=10, lr=0.02, distill=2.0)
        assert (found.options["edge_l1"], found.options["weight_l1"]) == (0.5, 1e-3)
        assert self.method_of_a_call(monkeypatch, "gat", data, hidden=8, budget=QUICK).budget == QUICK

    def planetoid(self, real: Callable[[str], Path], folder: Path) -> Any:
        """PyG's own Cora, as users have it."""
        shutil.copytree(real("planetoid/Cora") / "planetoid" / "Cora" / "raw", folder / "Cora" / "raw")
        return Planetoid(str(folder), "Cora", transform=NormalizeFeatures())[0]

    def test_pygs_cora_takes_the_budget_that_the_command_takes(
        self, monkeypatch: pytest.MonkeyPatch, real: Callable[[str], Path], tmp_path: Path
    ) -> None:
        data = self.planetoid(real, tmp_path)
        found = self.method_of_a_call(monkeypatch, "gat", data, hidden=8)
        assert found == self.method_of_the_command("cora", "gat", "fastglt")
        assert (found.budget.oneshot_epochs, found.budget.denoise_epochs) == (30, 600)

    def test_pygs_cora_gives_the_ticket_of_the_command(
        self, monkeypatch: pytest.MonkeyPatch, real: Callable[[str], Path], tmp_path: Path
    ) -> None:
        data = self.planetoid(real, tmp_path)
        ticket = find_ticket("gcn", data, seed=3, hidden=16, budget={"oneshot_epochs": 2, "denoise_epochs": 4})
        words = ["--dataset", "cora", "--seed", "3", "--hidden", "16", "--oneshot-epochs", "2"]
        words += ["--denoise-epochs", "4", "--threads", "1", "--quiet", "--store", str(tmp_path / "store.sqlite")]
        monkeypatch.setattr(sys, "argv", ["fastglt", "find", *words, "--out", str(tmp_path / "run")])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        other = Ticket.load(tmp_path / "run" / "ticket.safetensors", data)
        assert ticket.masks == other.masks
        assert ticket.weights.keys() == other.weights.keys()
        assert all(torch.equal(value, other.weights[name]) for name, value in ticket.weights.items())
        assert dict(ticket.config) == dict(other.config)


@pytest.mark.parametrize("how", [{}, {"inductive": 0.2}, {"task": "link"}], ids=["plain", "inductive", "link"])
def test_a_graph_is_known_by_all_its_edges(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hidden nodes and edges that are to be predicted do not make it another graph."""
    data = toy_data()
    nodes = torch.arange(data.num_nodes)
    data.train_mask = nodes < 9
    data.val_mask = (nodes >= 9) & (nodes < 15)
    monkeypatch.setitem(GRAPHS, Graph.from_data(data).fingerprint, "citeseer")
    budget = {"oneshot_epochs": 1, "denoise_epochs": 4}
    ticket = find_ticket("gat", data, hidden=8, budget=budget, isolated=False, **how)
    assert ticket.config["budget"]["interval"] == budget_for("citeseer", "gat").interval == 3
