"""An exported ticket gives what the masked network gives: on any graph, and where there is no fastglt.

`FASTGLT_EXPORTS=100` tries a hundred random graphs for the formats whose tracing takes seconds, instead of three.
"""

import inspect
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.nn import GCNConv

import fastglt
from fastglt import InputError, MachineError, compile_ticket
from fastglt.deploy import Predictor
from fastglt.deploy.exports import FORMATS, Format, arrays, export
from fastglt.deploy.exports.pyg_folder import _module
from fastglt.graphs.graph import Graph
from tests.deploy.test_predictor import backbone, frozen, graphs, word_features
from tests.helpers import house, randn
from tests.toy_data import USER_MODELS, quick_ticket, toy_data

TRACED = int(os.environ.get("FASTGLT_EXPORTS", "3"))
PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
MODELS = ("gcn", "gin", "gat")


def expected(predictor: Predictor) -> Tensor:
    with torch.no_grad():
        found: Tensor = predictor.network(predictor.x, predictor.graph, predictor.score)
    return found


def assert_close(found: Any, predictor: Predictor) -> None:
    torch.testing.assert_close(torch.as_tensor(found), expected(predictor), rtol=0, atol=1e-5)


def example(name: str, *, scored: bool = True, directed: bool = False, **more: Any) -> Predictor:
    graph = house(directed=directed)
    score = randn(graph.num_edges, seed=4).sigmoid() if scored else None
    return frozen(backbone(name, 9, **more), graph, word_features(7, 9, 1), score, "dense")


def assert_no_folder_of_this_machine(path: Path) -> None:
    """Neither the sources' folder nor the libraries', the home folder, the current one or that of the file."""
    contents = [path.read_bytes()]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            contents += [archive.read(name) for name in archive.namelist()]
    code = {Path(fastglt.__file__).parents[1], Path(torch.__file__).parents[1], Path(__file__).parents[1]}
    folders = {*code, Path(sys.prefix), Path.home(), Path.cwd(), path.parent}
    for content in contents:
        assert not [str(folder) for folder in folders if f"{folder}/".encode() in content]


@st.composite
def predictors(draw: st.DrawFn) -> Predictor:
    """A backbone of which any share of weights is left, on any graph, with edge scores or without."""
    graph: Graph = draw(graphs())
    name, seed = draw(st.sampled_from(MODELS)), draw(st.integers(0, 999))
    more = draw(st.sampled_from([{}, {"aggregation": "sum"}])) if name == "gin" else {}
    network = backbone(name, 8, seed, draw(st.floats(0, 1)), **more)
    with torch.no_grad():
        for value in network.parameters():
            value.mul_(0.5)  # sums of eight numbers stay near 1, where floats are 1e-7 apart
    score = randn(graph.num_edges, seed=seed).sigmoid() if draw(st.booleans()) else None
    return frozen(network, graph, word_features(graph.num_nodes, 8, seed), score, "dense")


@given(predictors())
@settings(max_examples=100, deadline=None)
def test_the_portable_module_on_any_graph(predictor: Predictor) -> None:
    with torch.no_grad():
        module = predictor.network.portable(predictor.graph, predictor.score)
        assert_close(module(predictor.x.dense), predictor)


@given(predictors())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("to", ["npz", "pyg"])
def test_cheap_formats_on_any_graph(tmp_path: Path, to: str, predictor: Predictor) -> None:
    path = tmp_path / ("folder" if to == "pyg" else "ticket.npz")
    assert export(predictor, path, to=to).max_difference < 1e-5
    assert_close(FORMATS[to].read(path, predictor.x.dense), predictor)


@given(predictors())
@settings(max_examples=TRACED, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("to", ["torch", "onnx"])
def test_traced_formats_on_any_graph(tmp_path: Path, to: str, predictor: Predictor) -> None:
    path = (tmp_path / "ticket").with_suffix(FORMATS[to].suffix)
    assert export(predictor, path, to=to).max_difference < 1e-5
    assert_close(FORMATS[to].read(path, predictor.x.dense), predictor)


def test_what_is_dead_is_not_written(tmp_path: Path) -> None:
    predictor = example("gcn", share=1.0)
    with torch.no_grad():
        predictor.network.get_parameter("layer1.weight")[:, 0] = 0  # nothing leads in: relu(bias) at every node
        predictor.network.get_parameter("layer1.bias")[0] = 2.5
        predictor.network.get_parameter("layer2.weight")[1] = 0  # nothing leads out
        predictor.network.get_parameter("layer1.weight")[4] = 0  # nobody reads this feature
    export(predictor, tmp_path / "a.npz", to="npz")
    with np.load(tmp_path / "a.npz") as file:
        assert file["units"].tolist() == [2, 3, 4, 5]
        assert file["features"].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
        assert (file["weight1"].shape, file["weight2"].shape, file["x"].shape) == ((8, 4), (4, 3), (7, 8))
        shift = 2.5 * predictor.network.get_parameter("layer2.weight")[0].detach()
        np.testing.assert_allclose(file["shift"], shift)


def test_a_pyg_folder_has_whole_weights_and_the_pruned_graph(tmp_path: Path) -> None:
    predictor = example("gcn", share=0.5)
    export(predictor, tmp_path, to="pyg")
    state, data = load_file(tmp_path / "model.safetensors"), load_file(tmp_path / "data.safetensors")
    torch.testing.assert_close(state["conv1.lin.weight"].T, predictor.network.get_parameter("layer1.weight"))
    assert set(state) == {"conv1.bias", "conv1.lin.weight", "conv2.bias", "conv2.lin.weight"}
    assert data["edge_index"].shape == (2, 2 * 7 + 7)  # seven edges both ways, a self-loop at each node
    assert data["edge_weight"].shape == (21,)
    torch.testing.assert_close(data["x"], predictor.x.dense)


def test_a_pyg_folder_has_labels_and_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded by name, by path, or from where the file is, the model scores as the search has told."""
    data = toy_data()
    ticket = quick_ticket("gcn", data, isolated=False)
    predictor = compile_ticket(ticket, data, layout="whole rows")
    export(predictor, tmp_path / "out", to="pyg")
    monkeypatch.chdir(tmp_path)
    with _module(Path("out/model.py").absolute()) as module:
        for arguments in ((), ("out",), (Path("out"),)):
            model, found = module.load(*arguments)
            assert (found.num_nodes, found.num_features) == (data.num_nodes, data.num_features)
            for name in ("y", "train_mask", "val_mask", "test_mask"):
                assert torch.equal(found[name], data[name])
            classes = model(found.x, found.edge_index, found.edge_weight).argmax(1)
            right = (classes == found.y)[found.test_mask].double().mean()
            assert float(right) == pytest.approx(ticket.scores["search_test"])
    new = predictor.with_nodes(data.x[:1], torch.tensor([[data.num_nodes], [0]]))
    export(new, tmp_path / "grown", to="pyg")
    assert "y" not in load_file(tmp_path / "grown" / "data.safetensors"), "nobody knows the new node's"


def test_deeper_gin_has_no_arrays(tmp_path: Path) -> None:
    network, graph = backbone("gin", 9, depth=3), house()
    score = randn(graph.num_edges).sigmoid()
    predictor = Predictor(network=network, graph=graph, x=word_features(7, 9, 1), score=score, program=None)
    assert export(predictor, tmp_path / "gin", to="pyg").max_difference < 1e-5
    assert export(predictor, tmp_path / "gin.pt2", to="torch").max_difference < 1e-5
    assert export(predictor, tmp_path / "gin.onnx", to="onnx").max_difference < 1e-5
    with pytest.raises(InputError, match=r"gin with depth 1 \(got gin with depth 3\); try another format"):
        export(predictor, tmp_path / "a.npz", to="npz")


@pytest.mark.parametrize("to", ["torch", "onnx"])
def test_a_program_does_not_hold_the_features(tmp_path: Path, to: str) -> None:
    graph, x = house(), word_features(7, 20_000, 1)
    predictor = frozen(backbone("gcn", 20_000, share=0.0001), graph, x, None, "dense")
    path = tmp_path / f"a{FORMATS[to].suffix}"
    assert sum(export(predictor, path, to=to).files.values()) < 4 * 7 * 20_000


@pytest.fixture
def without_fastglt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """For processes that are started from here on."""
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "fastglt.py").write_text('raise ImportError("blocked")')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "blocked"))
    with pytest.raises(AssertionError, match="blocked"):
        fresh("-c", "import fastglt", folder=tmp_path)
    return tmp_path


def fresh(*arguments: str, folder: Path) -> str:
    """What another process prints."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


EACH = """
import os, runpy, sys
for name in sys.argv[1:]:
    os.chdir(name)
    sys.argv = ["model.py", "scores.npz"]
    runpy.run_path("model.py", run_name="__main__")
    os.chdir("..")
print("without a file, the last one says:")
os.chdir(name)
sys.argv = ["model.py"]
runpy.run_path("model.py", run_name="__main__")
"""


def test_a_pyg_folder_elsewhere(without_fastglt: Path) -> None:
    for name in MODELS:
        export(example(name), without_fastglt / name, to="pyg")
    said = fresh("-c", EACH, *MODELS, folder=without_fastglt)
    for name in MODELS:
        predictor = example(name)
        with np.load(without_fastglt / name / "scores.npz") as file:
            assert_close(file["scores"], predictor)
            assert file["classes"].tolist() == expected(predictor).argmax(1).tolist()
    predictor = example("gat")
    lines = said.partition("the last one says:\n")[2].splitlines()
    top = expected(predictor).softmax(1).max(1)
    assert lines[3].split("\t") == ["3", str(int(top.indices[3])), f"{float(top.values[3]):.4f}"]
    assert len(lines) == 7


READ = {
    "torch": "torch.export.load(name + '.pt2').module()(torch.from_numpy(x)).numpy()",
    "onnx": "onnxruntime.InferenceSession(name + '.onnx').run(None, {'x': x})[0]",
}


@pytest.mark.parametrize(("to", "library"), [("torch", "torch"), ("onnx", "onnxruntime")])
def test_a_program_elsewhere(without_fastglt: Path, to: str, library: str) -> None:
    found = {name: example(name) for name in MODELS}
    for name, predictor in found.items():
        export(predictor, (without_fastglt / name).with_suffix(FORMATS[to].suffix), to=to)
    np.save(without_fastglt / "x.npy", found["gcn"].x.dense.numpy())
    code = f"""
import numpy, {library}
x = numpy.load("x.npy")
numpy.savez("scores.npz", **{{name: {READ[to]} for name in {MODELS}}})
"""
    fresh("-c", code, folder=without_fastglt)
    with np.load(without_fastglt / "scores.npz") as file:
        for name, predictor in found.items():
            assert_close(file[name], predictor)


def test_the_pages_lines_of_numpy(without_fastglt: Path) -> None:
    (code,) = re.findall(r"```python\n(import numpy as np\n.*?)```", PAGE.read_text(), re.DOTALL)
    plain = re.sub(r"(: |-> )(Mapping\[.*?\]\]|NDArray\[.*?\]|Any)", "", inspect.getsource(arrays.scores))
    assert re.sub(r"\s+", "", re.sub(r'""".*?"""\n', "", plain)) in re.sub(r"\s+", "", code)
    for name in MODELS:
        predictor = example(name)
        export(predictor, without_fastglt / "ticket.npz", to="npz")
        fresh("-c", f"{code}\nnp.save('scores.npy', scores(a))", folder=without_fastglt)
        assert_close(np.load(without_fastglt / "scores.npy"), predictor)


def test_a_found_ticket_in_every_format(tmp_path: Path) -> None:
    ticket = quick_ticket("gat", toy_data(), isolated=False)
    predictor = compile_ticket(ticket, toy_data(), layout="whole rows")
    for name, chosen in FORMATS.items():
        done = export(predictor, tmp_path / f"ticket{chosen.suffix}", to=name)
        assert done.max_difference < 1e-5
        assert all(Path(path).stat().st_size == size for path, size in done.files.items())
        for path in done.files:
            assert_no_folder_of_this_machine(Path(path))


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("name", ["GCN", "GAT", "hand-written"])
def test_a_users_model_as_a_program(tmp_path: Path, name: str, loops: bool) -> None:
    data, model = toy_data(loops=loops), USER_MODELS[name]()
    predictor = compile_ticket(quick_ticket(model, data, isolated=False), data, model)
    assert predictor.score is not None
    before = expected(predictor)
    assert export(predictor, tmp_path / "a.pt2", to="torch").max_difference < 1e-5
    assert torch.equal(expected(predictor), before)  # the model that was given is as it was
    assert_no_folder_of_this_machine(tmp_path / "a.pt2")
    if loops:
        assert export(predictor, tmp_path / "a.onnx", to="onnx").max_difference < 1e-5
        assert_no_folder_of_this_machine(tmp_path / "a.onnx")


class Peeking(torch.nn.Module):
    """A model that decides by a number: nothing can trace it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(6, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found: Tensor = self.conv(x if float(x.sum()) > 1e9 else 2 * x, edge_index)
        return found


def test_a_users_model_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    data, model = toy_data(), Peeking()
    predictor = compile_ticket(quick_ticket(model, data, isolated=False), data, model)
    with pytest.raises(InputError, match=r"torch.export cannot trace the model \(.*\); try another format"):
        export(predictor, tmp_path / "a.pt2", to="torch")
    with pytest.raises(InputError, match=r"fastglt's own backbones .*ticket.prune\(data\)"):
        export(predictor, tmp_path / "a", to="pyg")
    with pytest.raises(InputError, match=r"got a user's model"):
        export(predictor, tmp_path / "a.npz", to="npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", FORMATS)
def test_the_callers_modes_and_types_change_nothing(tmp_path: Path, to: str) -> None:
    data = toy_data()
    predictor = compile_ticket(quick_ticket(data=data, isolated=False), data)
    place = tmp_path / f"a{FORMATS[to].suffix}"
    with torch.autocast("cpu"), torch.inference_mode():
        assert export(predictor, place, to=to).max_difference < 1e-4
    torch.set_default_dtype(torch.float64)
    try:
        assert export(predictor, place, to=to).max_difference < 1e-4
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_asked_for_wrongly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown format \(got 'onyx'\); did you mean 'onnx'"):
        export(example("gcn"), tmp_path / "a", to="onyx")
    with pytest.raises(InputError, match=r"must be named ….npz \(got '.*safetensors'\)"):
        export(example("gcn"), tmp_path / "ticket.safetensors", to="npz")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MachineError, match=r"needs onnxscript, which is not there; pip install 'fastglt\[onnx\]'"):
        export(example("gcn"), tmp_path / "a.onnx", to="onnx")


def test_a_wrong_export_never_comes_to_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(predictor: Predictor) -> dict[str, bytes]:
        with np.load(io.BytesIO(arrays.make(predictor)["ticket.npz"])) as file:
            parts = dict(file)
        parts["bias2"] = parts["bias2"] + 0.1
        again = io.BytesIO()
        np.savez(again, **parts)
        return {"ticket.npz": again.getvalue()}

    monkeypatch.setitem(FORMATS, "npz", Format(suffix=".npz", make=spoiled, read=arrays.read))
    with pytest.raises(MachineError, match=r"masked network's scores \(got 1.0e-01 apart\)"):
        export(example("gcn"), tmp_path / "a.npz", to="npz")
    assert list(tmp_path.iterdir()) == []
