"""Experiments and runs that take no time."""

from pathlib import Path
from typing import Any

from fastglt.methods import Budget, Targets
from fastglt.runs.experiment import Experiment
from fastglt.runs.plan import Run, plan

TINY = "synthetic:nodes=80,edges=200,features=16,classes=3"


def experiment(method: str = "random", seed: int = 0, **choices: Any) -> Experiment:
    """Eighty nodes, a narrow network, six epochs; 20 % of 200 edges and half of 152 weights removed."""
    given = {
        "dataset": TINY,
        "targets": Targets(graph_sparsity=0.2, weight_sparsity=0.5),
        "budget": Budget(oneshot_epochs=2, denoise_epochs=4, interval=2, lr=0.01),
        "hidden": 8,
        "threads": 1,
    }
    return Experiment(method=method, seed=seed, **{**given, **choices})


def runs_of(out: Path, *experiments: Experiment) -> list[Run]:
    """The plan of a few experiments."""
    return plan(experiments, out)
