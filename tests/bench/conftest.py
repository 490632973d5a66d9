"""Experiments that take no time."""

from collections.abc import Callable
from typing import Any

import pytest

from fastglt.methods import Budget, Targets
from fastglt.runs.experiment import Experiment

TINY = "synthetic:nodes=80,edges=200,features=16,classes=3"
PEAKS = {"peak_mb_ours": 1.0, "peak_mb_pyg_edge_index": 3.0, "peak_mb_pyg_csr": 2.0}


def tiny_experiment(**choices: Any) -> Experiment:
    """Eighty nodes, a narrow network, sixteen epochs."""
    given = {
        "dataset": TINY,
        "targets": Targets(graph_sparsity=0.2, weight_sparsity=0.9),
        "budget": Budget(oneshot_epochs=4, denoise_epochs=12, interval=3, lr=0.01),
        "hidden": 8,
        "threads": 1,
    }
    return Experiment(**{**given, **choices})


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Peak memory that needs no process; gives what was noted before it was asked for."""
    noted: list[str] = []

    def peaks(prepared: object, note: Callable[[str], object]) -> dict[str, float]:
        noted.append("memory")
        return PEAKS

    for command in ("train", "search"):
        monkeypatch.setattr(f"fastglt.bench.{command}.peaks", peaks)
    return noted
