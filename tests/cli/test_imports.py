"""What a process of ours does not load: PyG and PyTorch's compiler take seconds and a hundred megabytes."""

import subprocess
import sys
from pathlib import Path

import pytest

SLOW = ("torch_geometric", "torch._dynamo", "torch._inductor")
SHORT = "--hidden 4 --oneshot-epochs 1 --denoise-epochs 2 --interval 1 --threads 1 --quiet"
COMMAND = """
import sys
from fastglt.cli import (main)
sys.argv = ["fastglt", *sys.argv[1:]]
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
print(*sorted(sys.modules))
"""
RUN = """
import sys
from pathlib import Path
from fastglt.runs.experiment import Experiment
from fastglt.methods import (Budget, Targets)
from fastglt.runs.run_folder import RunFolder
budget = Budget(oneshot_epochs=1, denoise_epochs=2, interval=1, lr=0.01)
targets = Targets(graph_sparsity=0.2, weight_sparsity=0.5)
prepared = Experiment(targets=targets, budget=budget, hidden=4, threads=1).prepare()
folder = RunFolder(Path(sys.argv[1]), prepared.settings)
with folder.open():
    assert prepared.run(folder)["dataset"] == "digits"
print(*sorted(sys.modules))
"""


def modules_after(code: str, *arguments: object) -> set[str]:
    """The modules that a fresh process has at its end."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return set(result.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_find_loads_neither_pyg_nor_the_compiler(model: str, tmp_path: Path) -> None:
    loaded = modules_after(COMMAND, "find", "--model", model, *SHORT.split(), "--out", tmp_path / "run")
    assert (tmp_path / "run" / "metrics.json").exists()
    assert {"torch", "fastglt.training.loop", f"fastglt.models.{model}.network"} <= loaded
    assert loaded.isdisjoint(SLOW)
    parts = {name.rpartition(".")[2] for name in loaded if name.startswith("fastglt.models.")}
    assert parts.isdisjoint({"program", "programs", "portable", "pyg_model", "twin", "twins"})


def test_an_experiment_in_python_loads_neither(tmp_path: Path) -> None:
    loaded = modules_after(RUN, tmp_path / "run")
    assert "fastglt.training.loop" in loaded
    assert loaded.isdisjoint(SLOW)


def test_help_does_not_even_load_torch() -> None:
    assert modules_after(COMMAND, "find", "--help").isdisjoint({"torch", "numba", *SLOW})
