"""A task from outside goes everywhere: find, evaluate, compare, save and load, compile, predict, serve."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

import fastglt
from fastglt import Budget, InputError, Ticket
from tests.extending import regression
from tests.extending.conftest import Commands
from tests.extending.regression import NodeRegression, example, r2

BUDGET = Budget(oneshot_epochs=10, denoise_epochs=60, interval=10, lr=0.03)
SHORT = ("--hidden", "8", "--oneshot-epochs", "4", "--denoise-epochs", "8", "--interval", "4", "--lr", "0.02")
PLACE = "regression:NodeRegression"


def find(method: str = "fastglt", **settings: object) -> Ticket:
    given = {"graph_sparsity": 0.2, "weight_sparsity": 0.5, "hidden": 16, "budget": BUDGET, **settings}
    return fastglt.find_ticket("gcn", Data(**example()), task=NodeRegression, method=method, **given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found() -> Ticket:
    return find()


def test_the_score_is_r2_worked_out_by_hand() -> None:
    labels, outputs = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([[1.0], [2.0], [2.0]])
    assert r2(outputs, labels) == pytest.approx(0.5)


def test_a_ticket_is_found_that_explains_something(found: Ticket) -> None:
    assert found.task is NodeRegression
    assert found.config["metric"] == "r2"
    assert found.config["task"] == "tests.extending.regression:NodeRegression"
    assert (found.masks.edges.count, found.masks.weights_kept) == (128, 56)
    assert found.scores["search_test"] > 0.3


def test_it_is_saved_loaded_and_judged(found: Ticket, tmp_path: Path) -> None:
    data = Data(**example())
    found.save(tmp_path / "ticket.safetensors")
    loaded = Ticket.load(tmp_path / "ticket.safetensors", data)
    verdict = fastglt.evaluate(loaded, None, data, seeds=range(2))
    assert verdict.n == 2
    task = NodeRegression.from_data(data)
    assert loaded.scores["isolated_test"] == found.scores["isolated_test"]
    assert task.num_outputs == 1


def test_it_is_compiled_and_predicts_values(found: Ticket) -> None:
    data = Data(**example())
    predictor = fastglt.compile_ticket(found, data)
    values, task = predictor.predict(), NodeRegression.from_data(data)
    masked = predictor.network(predictor.x, predictor.graph, found.soft_edge_mask)
    torch.testing.assert_close(values, masked.squeeze(-1).detach(), rtol=1e-4, atol=1e-4)
    assert task.score(values[task.test].unsqueeze(-1), task.test) == pytest.approx(
        found.scores["search_test"], abs=1e-4
    )
    assert predictor.predict([3, 5]).tolist() == pytest.approx(values[[3, 5]].tolist(), abs=1e-5)


@pytest.mark.parametrize("method", ["oneshot", "ugs", "random", "snip", "grasp", "rigl", "teddy", "adaglt", "gebt"])
def test_methods_that_ask_nothing_of_classes_work(method: str) -> None:
    options = {"round_epochs": 2} if method == "ugs" else {}
    assert find(method, isolated=False, **options).masks.edges.count == 128


@pytest.mark.parametrize("method", ["forest", "wdglt"])
def test_methods_that_need_classes_refuse_before_anything_is_trained(method: str) -> None:
    with pytest.raises(InputError, match=r"the method needs a task that says .* \(got 'node-regression'\)"):
        find(method, progress=lambda *_: pytest.fail("it was trained"))


def test_a_distilled_ticket_is_taught_by_distances() -> None:
    taught = find(distill=1.0)
    assert taught.config["budget"]["distill"] == 1.0
    assert taught.scores["isolated_test"] > 0.3


def test_a_users_model_is_trained_for_it() -> None:
    torch.manual_seed(0)
    model = GraphSAGE(6, 16, num_layers=2, out_channels=1)
    ticket = fastglt.find_ticket(model, Data(**example()), task=NodeRegression, budget=BUDGET, weight_sparsity=0.5)
    assert ticket.scores["search_test"] > 0.3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The task's file and a graph with real numbers as labels, as a user has them."""
    (tmp_path / "regression.py").write_text(Path(regression.__file__).read_text())
    arrays: dict[str, Any] = {name: value.numpy() for name, value in example().items()}
    np.savez(tmp_path / "graph.npz", allow_pickle=False, **arrays)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_command_line_takes_it_all_the_way(commands: Commands) -> None:
    def run(*words: str) -> str:
        done = commands(*words)
        assert done.code == 0, done.err
        return done.out

    same = ("--dataset", "graph.npz", "--task", PLACE, *SHORT)
    found = json.loads(run("find", *same, "--out", "run", "--threads", "1", "--quiet", "--json"))
    assert (found["metric"], found["task"]) == ("r2", PLACE)
    graph = ("--dataset", "graph.npz")
    use = ("--use", PLACE)
    refused = commands("evaluate", "run", *graph)
    assert (refused.code, "`fastglt --use module:Class …` makes it known" in refused.err) == (2, True)
    verdict = json.loads(run(*use, "evaluate", "run", *graph, "--seeds", "0-1", "--quiet", "--json"))
    assert (verdict["metric"], verdict["n"]) == ("r2", 2)
    rows = json.loads(run(*use, "predict", "run", *graph, "--nodes", "0,3", "--json"))
    assert [list(row) for row in rows["predictions"]] == [["node", "value"]] * 2
    assert rows["values"] == 1
    table = run("compare", *same, "--methods", "fastglt,random", "--seeds", "0-1", "--jobs", "1", "--quiet")
    assert "R²" in table or "r2" in table
    assert "fastglt" in table
    assert "random" in table


@pytest.mark.usefixtures("folder")
def test_numbers_are_not_taken_for_classes(commands: Commands) -> None:
    done = commands("find", "--dataset", "graph.npz")
    assert done.code == 2
    assert "data.y must hold one integer label per node (got torch.float32)" in done.err
