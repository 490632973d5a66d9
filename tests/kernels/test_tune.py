"""What measurements amount to, and measurements themselves."""

import pytest

from fastglt.kernels import tune
from fastglt.kernels.table import Table
from fastglt.kernels.tune import Measured, measure, to_table


def measured(kernel: str, size: float, chosen: str) -> Measured:
    return Measured(kernel=kernel, size=size, milliseconds={chosen: 1.0}, chosen=chosen)


def test_neighbouring_sizes_with_one_server_become_one_step() -> None:
    results = [
        measured("spmm", 8, "torch"),
        measured("spmm", 64, "numba"),
        measured("spmm", 512, "numba"),
        measured("features", 0.1, "sparse"),
        measured("features", 0.3, "sparse"),
        measured("features", 1.0, "dense"),
    ]
    steps = {"spmm": [[8, "torch"], [None, "numba"]], "features": [[0.3, "sparse"], [None, "dense"]]}
    assert to_table(results).to_dict() == {**Table().to_dict(), **steps}  # what was not measured is as it comes


def test_another_server_must_be_clearly_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([{"numba": 1.0, "torch": 0.95, "plain": 5.0}, {"numba": 1.0, "torch": 0.5, "plain": 5.0}])
    monkeypatch.setattr(tune, "_cases", lambda: iter([("spmm", 8, {}), ("spmm", 512, {})]))
    monkeypatch.setattr(tune, "_interleaved", lambda _: next(times))
    assert [result.chosen for result in measure()] == ["numba", "torch"]


def test_every_decision_is_measured_with_every_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("_ROWS", 60), ("_FEATURES", 20), ("_WIDTH", 32), ("_REPEATS", 1)):
        monkeypatch.setattr(tune, name, small)
    results = list(measure())
    servers = {result.kernel: set(result.milliseconds) for result in results}
    assert servers == {
        "spmm": {"numba", "torch", "plain"},
        "sddmm": {"numba", "torch", "plain"},
        "matmul": {"numba", "torch"},
        "features": {"sparse", "dense"},
    }
    assert all(taken > 0 for result in results for taken in result.milliseconds.values())
    to_table(results)  # is a table
