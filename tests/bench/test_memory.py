"""Peak memory in processes of their own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from fastglt import MachineError
from fastglt.bench import memory
from fastglt.bench.memory import in_own_process, peaks

from .conftest import tiny_experiment

WHAT_IS_IMPORTED = """
import json, sys
from fastglt.bench import memory
memory.run_pyg(json.loads(sys.argv[1]))
print(json.dumps([name for name, module in sys.modules.items() if module is not None]))
"""


def pyg_job(**choices: Any) -> memory.Job:
    return memory.pyg_job(tiny_experiment(**choices).prepare(), "edge_index")


def test_each_side_is_measured_in_a_process_of_its_own() -> None:
    notes: list[str] = []
    found = peaks(tiny_experiment().prepare(), notes.append)
    assert set(found) == {"peak_mb_ours", "peak_mb_pyg_edge_index", "peak_mb_pyg_csr"}
    assert all(50 < peak < 5000 for peak in found.values())
    assert notes == ["memory of ours", "memory of pyg_edge_index", "memory of pyg_csr"]


def test_stock_pyg_carries_nothing_of_ours_but_the_data() -> None:
    command = [sys.executable, "-c", WHAT_IS_IMPORTED, json.dumps(pyg_job(model="gat"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout))
    ours = {name for name in imported if name.split(".")[0] == "fastglt"}
    assert "torch_geometric.nn" in imported
    assert not imported & {"numba", "llvmlite", "sklearn"}
    assert {name.split(".")[1] for name in ours - {"fastglt"}} <= {"bench", "data", "errors", "models", "system"}
    of_models = {name.removeprefix("fastglt.models") for name in ours if name.startswith("fastglt.models")}
    assert of_models == {"", ".twins", ".gat", ".gat.twin"}


def test_our_side_is_a_whole_search_in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    train = __import__("fastglt.training.loop", fromlist=["train"]).train

    def watched(training: Any, method: Any) -> Any:
        best = train(training, method)
        seen.append(training)
        return best

    monkeypatch.setattr("fastglt.training.loop.train", watched)
    memory.run_ours(json.loads(json.dumps(tiny_experiment().to_json())))
    (training,) = seen
    stages = [record.stage for record in training.history]
    assert stages == ["oneshot"] * 2 + ["denoise"] * 4 + ["final"]
    assert [record.weights_grown > 0 for record in training.history][3], "a swap after two hard epochs"
    assert training.recipe.lr == 0.01


def test_a_side_that_needs_too_much_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, -9, "", ""))
    with pytest.raises(MachineError, match="not enough memory for the side of ours; try a smaller --hidden"):
        in_own_process({"side": "ours"})


def test_what_went_wrong_there_is_told_here() -> None:
    with pytest.raises(MachineError, match=r"the side of theirs could not be measured \(KeyError: 'theirs'\)"):
        in_own_process({"side": "theirs"})
