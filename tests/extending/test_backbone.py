"""A backbone from outside the package is one file: everything that ours can do, it can do."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from fastglt import Backbone, Graph, InputError, Mask, Masks, Ticket, compile_ticket, evaluate, find_ticket
from fastglt.analysis.cost import CostRow, count_macs
from fastglt.bench.runs import stock_runs
from fastglt.deploy.exports import export
from fastglt.graphs.features import Features
from fastglt.methods import Budget, Targets
from fastglt.models import BACKBONES, make, register
from fastglt.runs.experiment import Experiment
from fastglt.tasks import NodeClassification
from tests.cli.conftest import TINY
from tests.extending.conftest import Commands
from tests.helpers import drop, house, randn
from tests.models.references import randomise
from tests.toy_data import CLASSES, FEATURES, NODES, QUICK, toy_data

FILE = Path(__file__).with_name("sage.py")
SHORT = "--oneshot-epochs 2 --denoise-epochs 4 --interval 2 --lr 0.01 --hidden 8 --threads 1"
QUIET = ("--quiet", "--json")


@pytest.fixture(scope="module", autouse=True)
def sage() -> Iterator[type[Backbone]]:
    """Registered while this file is tested; the others know of ours alone."""
    from tests.extending.sage import SAGE

    yield register(SAGE)
    del BACKBONES["sage"]


def network(features: int = FEATURES, hidden: int = 8, classes: int = CLASSES, **more: Any) -> Backbone:
    found = make("sage", in_channels=features, hidden=hidden, out_channels=classes, seed=0, **more)
    randomise(found)
    return found


class PyGs(nn.Module):
    """The same network from PyG's layers."""

    def __init__(self, ours: Backbone) -> None:
        super().__init__()
        widths = [ours.in_channels, *[ours.hidden] * (ours.num_layers - 1), ours.out_channels]
        self.convs = nn.ModuleList(SAGEConv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(ours.hidden) for _ in range(ours.num_layers - 1))
        state = ours.state_dict()
        names = {"neighbours": "lin_l.weight", "own": "lin_r.weight", "bias": "lin_l.bias"}
        self.names = {f"layers.{i}.{a}": f"convs.{i}.{b}" for i in range(len(self.convs)) for a, b in names.items()}
        self.names |= {name: name for name in state if name.startswith("norms.")}
        self.load_state_dict({self.names[name]: self.turned(name, value) for name, value in state.items()})

    @staticmethod
    def turned(name: str, value: Tensor) -> Tensor:
        return value.T if name.endswith(("neighbours", "own")) else value

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv, norm in zip(self.convs, self.norms, strict=False):
            x = norm(conv(x, edge_index)).relu()
        out: Tensor = self.convs[-1](x, edge_index)
        return out


@pytest.mark.usefixtures("backend")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", [{}, {"loops": True}, {"directed": True}])
def test_outputs_and_gradients_are_pygs(kind: dict[str, bool], layers: int, training: bool) -> None:
    data, ours = toy_data(**kind), network(dropout=0.0, num_layers=layers).train(training)
    theirs, task = PyGs(ours).train(training), NodeClassification.from_data(data)
    some = torch.tensor([4, 17, 5])
    out, expected = ours(task.x, task.graph, None, some), theirs(data.x, data.edge_index)[some]
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    projection = randn(*out.shape, seed=9)
    (out * projection).sum().backward()
    (expected * projection).sum().backward()
    others = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        want = others[theirs.names[name]].grad
        assert parameter.grad is not None
        assert want is not None
        torch.testing.assert_close(theirs.turned(name, parameter.grad), want, rtol=1e-3, atol=1e-4, msg=name)
    for name, value in ours.named_buffers():  # what batch norm learns of all nodes, whichever were asked for
        torch.testing.assert_close(value, theirs.get_buffer(name))


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
@pytest.mark.parametrize("training", [False, True])
def test_a_few_nodes_have_the_outputs_they_have_among_all(layers: int, training: bool) -> None:
    ours, graph, x = network(9, num_layers=layers, dropout=0.0).train(training), house(), Features(randn(7, 9))
    nodes = torch.tensor([5, 2])
    torch.testing.assert_close(ours(x, graph, None, nodes), ours(x, graph)[nodes])


def test_a_few_nodes_touch_no_more_than_their_neighbourhood() -> None:
    path = torch.arange(29).repeat(2, 1) + torch.tensor([[0], [1]])
    graph, x = Graph.from_edge_index(torch.cat([path, path.flip(0)], 1), 30), randn(30, 9)
    ours, asked = network(9).eval(), torch.tensor([10])
    before = ours(Features(x), graph, None, asked)
    x[:7], x[14:] = torch.nan, torch.nan  # more than three steps away
    assert torch.equal(ours(Features(x), graph, None, asked), before)
    x[13] = 1000
    assert not torch.equal(ours(Features(x), graph, None, asked), before)


def test_a_pruned_edge_has_no_influence() -> None:
    graph, x, ours = house(), randn(7, 9), network(9).eval()
    gone = graph.edges.eq(5).any(0)  # node 5 is alone then
    changed = x.clone()
    changed[5] *= 1000
    others = torch.tensor([0, 1, 2, 3, 4, 6])
    for left, silent in ((graph.prune(Mask(~gone)), True), (graph, False)):
        before, after = ours(Features(x), left)[others], ours(Features(changed), left)[others]
        assert torch.equal(before, after) == silent
    score = randn(graph.num_edges).requires_grad_()
    (gradient,) = torch.autograd.grad(ours(Features(x), graph, score).square().sum(), score)
    assert bool((gradient != 0).all())  # and a soft mask reaches every edge


def test_matrices_are_pruned_and_norms_are_not() -> None:
    ours = network()
    names = tuple(f"layers.{i}.{part}" for i in range(3) for part in ("neighbours", "own"))
    assert ours.prunable == names
    ticket = found_ticket()
    assert tuple(ticket.masks.weights) == names
    assert ticket.weight_sparsity == pytest.approx(0.5, abs=0.01)
    assert all(bool((ticket.weights[f"norms.{i}.weight"] != 0).all()) for i in range(2))


def found_ticket(data: Data | None = None, **more: Any) -> Ticket:
    given = {"graph_sparsity": 0.3, "weight_sparsity": 0.5, "hidden": 8, "budget": QUICK, **more}
    return find_ticket("sage", toy_data() if data is None else data, **given)


def test_a_ticket_from_search_to_prediction(tmp_path: Path) -> None:
    data = toy_data()
    found = found_ticket(data)
    assert (found.initial_from, found.model["num_layers"], found.model["name"]) == ("recipe", 3, "sage")
    found.save(tmp_path / "ticket.safetensors")
    ticket = Ticket.load(tmp_path / "ticket.safetensors", data)
    assert {
        name: torch.equal(value, found.weights[name]) for name, value in ticket.weights.items()
    } == dict.fromkeys(found.weights, True)
    verdict = evaluate(ticket, None, data, seeds=range(2))
    assert len(verdict.ticket_scores) == len(verdict.dense_scores) == 2
    assert evaluate(ticket, None, data, seeds=range(2), fresh_init=True).seeds == (0, 1)
    predictor = compile_ticket(ticket, data)
    trained = network()
    trained.load_state_dict(dict(ticket.weights))
    task = NodeClassification.from_data(data)
    with torch.no_grad():
        pruned = task.graph.prune(ticket.masks.edges)
        expected = trained.eval()(task.x, pruned, ticket.soft_edge_mask)
    torch.testing.assert_close(predictor.logits(), expected)
    torch.testing.assert_close(predictor.logits([3, 29]), expected[[3, 29]], rtol=1e-4, atol=1e-5)
    right = (predictor.predict(task.test) == data.y[task.test]).float().mean()
    assert float(right) == pytest.approx(ticket.scores["search_test"])
    grown = predictor.with_nodes(torch.rand(1, FEATURES), torch.tensor([[NODES], [3]]))
    assert grown.logits([NODES]).shape == (1, CLASSES)


def test_its_options_are_those_of_its_init() -> None:
    ticket = found_ticket(model_options={"num_layers": 2, "dropout": 0.25}, isolated=False)
    assert (ticket.model["num_layers"], ticket.model["dropout"]) == (2, 0.25)
    assert set(ticket.masks.weights) == {f"layers.{i}.{part}" for i in range(2) for part in ("neighbours", "own")}
    with pytest.raises(InputError, match="model 'sage' has no option 'heads'; it takes dropout, num_layers"):
        found_ticket(model_options={"heads": 2})


@pytest.mark.parametrize("to", ["torch", "onnx"])
def test_it_is_exported_as_it_is(tmp_path: Path, to: str) -> None:
    data = toy_data()
    predictor = compile_ticket(found_ticket(data, isolated=False), data)
    assert predictor.score is not None
    path = tmp_path / ("a.pt2" if to == "torch" else "a.onnx")
    assert export(predictor, path, to=to).max_difference < 1e-5


def test_forms_that_it_does_not_have_are_refused(tmp_path: Path) -> None:
    data = toy_data()
    predictor = compile_ticket(found_ticket(data, isolated=False), data)
    with pytest.raises(InputError, match=r"compact arrays are there for .* \(got sage\); try another format"):
        export(predictor, tmp_path / "a.npz", to="npz")
    with pytest.raises(InputError, match=r"that have a PyG form \(got sage\)"):
        export(predictor, tmp_path / "a", to="pyg")
    prepared = Experiment(model="sage", targets=Targets(), budget=QUICK, hidden=4).prepare()
    with pytest.raises(InputError, match=r"measured against stock PyG \(got sage, which has none\)"):
        stock_runs(prepared)


def test_its_cost_is_counted_by_watching_it() -> None:
    """Two layers on seven nodes: 14 messages and one from each node to itself, features without zeros but one."""
    x = randn(7, 5)
    x[0, 0] = 0
    masks = {"train_mask": torch.arange(7) < 4, "val_mask": torch.arange(7) >= 4}
    task = NodeClassification.from_data(Data(x=x, edge_index=house().edge_index, y=torch.arange(7) % 3, **masks))
    ours = network(5, 4, 3, num_layers=2)
    kept = torch.ones(5, 4)
    kept[1, :3] = 0
    full = Masks.full(7, ours.weight_shapes)
    pruned = Masks(edges=drop(7, 2), weights={**full.weights, "layers.0.neighbours": Mask(kept)})
    rows = count_macs(ours, task, pruned).rows
    assert [(row.layer, row.kind, row.macs, row.macs_paper, row.parameters) for row in rows] == [
        ("layers.0", "linear", 6 * 4 + 7 * (1 + 3 * 4), 7 * 17, 17),
        ("layers.0", "aggregation", (2 * 6 + 7) * 4, 0, 0),
        ("layers.0", "linear", 6 * 4 + 7 * 16, 7 * 20, 20),
        ("layers.1", "linear", 7 * 12, 7 * 12, 12),
        ("layers.1", "aggregation", (2 * 6 + 7) * 3, 0, 0),
        ("layers.1", "linear", 7 * 12, 7 * 12, 12),
        ("rest", "other", 0, 0, 4 + 3 + 2 * 4),  # biases, and batch norm's two vectors
    ]
    assert isinstance(rows[0], CostRow)
    assert rows[1].bytes == 8 * 8 + 8 * 19 + 2 * 4 * 7 * 4


def test_one_that_is_not_registered_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    found_ticket(isolated=False).save(tmp_path / "ticket.safetensors")
    ours = network()
    del BACKBONES["sage"]
    with pytest.raises(InputError, match=r"or a registered one \(got 'sage'\); fastglt.register\(its class\)"):
        Ticket.load(tmp_path / "ticket.safetensors")
    with pytest.raises(InputError, match=r"must be registered \(got the class SAGE, which is not\)"):
        find_ticket(ours, toy_data(), budget=QUICK)


@pytest.fixture
def run(commands: Commands, tmp_path: Path) -> Callable[..., Any]:
    """Commands in a folder with the one file, and what they print: a document, or what is wrong."""
    shutil.copy(FILE, tmp_path / "my_sage.py")

    def run_one(*words: str, fails: bool = False) -> Any:
        done = commands(*words)
        assert bool(done.code) == fails, done.err
        return done.err if fails else json.loads(done.out)

    return run_one


def test_compare_takes_it_by_where_it_lives(run: Callable[..., Any], tmp_path: Path) -> None:
    asked = ["--model", "my_sage:SAGE", "--model-option", "num_layers=2", "--methods", "random,oneshot"]
    found = run("compare", "--dataset", TINY, *asked, "--seeds", "0-1", "--jobs", "2", *SHORT.split(), *QUIET)
    assert (found["model"], found["failures"]) == ("sage", [])
    assert [cell["method"] for cell in found["cells"]] == ["random", "oneshot"]
    folders = list((tmp_path / "runs" / "compare-synthetic-sage").glob("random-*"))
    assert len(folders) == 2
    settings = json.loads((folders[0] / "run.json").read_text())["settings"]
    assert (settings["model"]["num_layers"], len(settings["model_code"])) == (2, 64)


def test_compare_takes_it_by_its_name_once_it_is_known(run: Callable[..., Any]) -> None:
    """Its runs are made in processes of their own, which have to find the class too."""
    asked = ["--use", "my_sage:SAGE", "compare", "--model", "sage", "--methods", "random", "--seeds", "0"]
    found = run(*asked, "--dataset", TINY, "--jobs", "1", *SHORT.split(), *QUIET)
    assert (found["model"], found["failures"], len(found["cells"])) == ("sage", [], 1)


def test_commands_read_its_ticket_once_they_know_it(run: Callable[..., Any]) -> None:
    found = run("find", "--model", "my_sage:SAGE", "--out", "found", *SHORT.split(), *QUIET)
    assert found["macs_ticket"] < found["macs_dense"]
    assert "fastglt --use module:Class" in run("show", "found", "--json", fails=True)
    shown = run("--use", "my_sage:SAGE", "show", "found", "--json")
    assert shown["model"]["name"] == "sage"
    verdict = run(
        "--use", "my_sage:SAGE", "evaluate", "found", "--seeds", "0-1", "--threads", "1", "--quiet", "--json"
    )
    assert len(verdict["seeds"]) == 2
    told = run("models", "my_sage:SAGE", "--json")
    assert [option["name"] for option in told["options"]] == ["dropout", "num_layers"]
    assert told["options"][1]["about"] == "rounds of message passing"
    refused = run("find", "--model", "my_sage:SAGE", "--model-option", "num_layers=two", *SHORT.split(), fails=True)
    assert "option 'num_layers' of model 'sage' must be a whole number (got 'two')" in " ".join(refused.split())


def test_an_experiment_in_python_tells_its_code_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    text = FILE.read_text().replace('name = "sage"', 'name = "sage2"').replace("SAGE", "Other")
    path = tmp_path / "other_sage.py"
    path.write_text(text)
    try:
        experiment = Experiment(
            model="other_sage:Other", targets=Targets(), budget=Budget(), hidden=4, model_options={"num_layers": 2}
        )
        again = Experiment.from_json(json.loads(json.dumps(experiment.to_json())))
        assert again == experiment
        first = again.prepare().settings
        assert (first["model"]["name"], first["model"]["num_layers"]) == ("sage2", 2)
        path.write_text(text + "\n# a comment")
        assert experiment.prepare().settings == first
        path.write_text(text.replace("+ hop", "- hop"))
        assert experiment.prepare().settings["model_code"] != first["model_code"]
    finally:
        sys.modules.pop("other_sage", None)
