"""What a process of ours does not load: PyG and PyTorch's compiler take seconds and a hundred megabytes."""

import shlex
import subprocess
import sys
from pathlib import Path

SLOW = ("torch_geometric", "torch._dynamo", "torch._inductor")
SHORT = "--hidden 4 --oneshot-epochs 1 --denoise-epochs 2 --interval 1 --threads 1 --quiet"
# Commands one after the other, with what each of them has left among the modules.
COMMANDS = """
import shlex, sys
from fastglt.cli import (main)
for words in sys.argv[1:]:
    sys.argv = ["fastglt", *shlex.split(words)]
    try:
        main()
    except SystemExit as stopped:
        assert not stopped.code, stopped.code
    print("modules", *sorted(sys.modules))
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
print("modules", *sorted(sys.modules))
"""


def modules_after(code: str, *arguments: object) -> list[set[str]]:
    """The modules that a fresh process has, as often as it tells them."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [set(line.split()) for line in result.stdout.splitlines() if line.startswith("modules ")]


def test_find_loads_neither_pyg_nor_the_compiler(tmp_path: Path) -> None:
    models = ("gcn", "gat")
    commands = [f"find --model {model} {SHORT} --out {shlex.quote(str(tmp_path / model))}" for model in models]
    for model, loaded in zip(models, modules_after(COMMANDS, *commands), strict=True):
        assert (tmp_path / model / "metrics.json").exists()
        assert {"torch", "fastglt.training.loop", f"fastglt.models.{model}.network"} <= loaded
        assert loaded.isdisjoint(SLOW), model
        parts = {name.rpartition(".")[2] for name in loaded if name.startswith("fastglt.models.")}
        assert parts.isdisjoint({"program", "programs", "portable", "pyg_model", "twin", "twins"}), model


def test_an_experiment_in_python_loads_neither(tmp_path: Path) -> None:
    (loaded,) = modules_after(RUN, tmp_path / "run")
    assert "fastglt.training.loop" in loaded
    assert loaded.isdisjoint(SLOW)


def test_help_does_not_even_load_torch() -> None:
    (loaded,) = modules_after(COMMANDS, "find --help")
    assert loaded.isdisjoint({"torch", "numba", *SLOW})
    assert loaded.isdisjoint({"yaml", "sqlite3", "fastglt.runs.store", "rich.progress"}), "for runs alone"
