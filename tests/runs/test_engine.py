"""An engine is whoever executes runs: one that works in this process comes to the same."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import fastglt
from fastglt.errors import FastGLTError
from fastglt.runs.engine import MakeEngine, Outcome
from fastglt.runs.plan import Run
from fastglt.runs.series import ENGINES
from fastglt.runs.worker import work

from .examples import TINY

SHORT = {"hidden": 8, "budget": {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2}}


class InThisProcess:
    """All that somebody has to write."""

    made: ClassVar[list["InThisProcess"]] = []

    def __init__(self, jobs: int, *, logs: Path, store: Path, command: str, checkpoint_every: float) -> None:
        self.stop, self.jobs, self.ran = False, jobs, 0
        self._job_settings = {"store": str(store), "command": command, "checkpoint_every": checkpoint_every}
        self.made.append(self)

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        for run in runs:
            self.ran += 1
            try:
                work(run.job(**self._job_settings))
            except FastGLTError as error:
                yield Outcome(run=run, reason=str(error))
            else:
                yield Outcome(run=run, metrics=run.result())


def scores(found: fastglt.Comparison) -> list[dict[str, Any]]:
    """Rows without times and places."""
    return [
        {name: value for name, value in row.items() if not name.endswith(("seconds", "time", "folder"))}
        for row in found.rows
    ]


@pytest.fixture(scope="module")
def by_processes(tmp_path_factory: pytest.TempPathFactory) -> fastglt.Comparison:
    return compare(tmp_path_factory.mktemp("processes"), "local")


def compare(folder: Path, engine: str | MakeEngine) -> fastglt.Comparison:
    return fastglt.compare(
        TINY,
        methods="random,fastglt",
        seeds=[0, 1],
        **SHORT,  # type: ignore[arg-type]
        jobs=2,
        out=folder / "out",
        store=folder / "store.sqlite",
        engine=engine,
    )


@pytest.mark.parametrize("named", [False, True])
def test_another_engine_gives_the_same_comparison(
    by_processes: fastglt.Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setitem(ENGINES, "here", InThisProcess)
    found = compare(tmp_path, "here" if named else InThisProcess)
    assert (InThisProcess.made[-1].ran, InThisProcess.made[-1].jobs) == (6, 2)
    assert found.failures == []
    assert scores(found) == scores(by_processes)
    assert [row["isolated_test"] is not None for row in found.rows] == [True] * 4


def test_what_one_engine_has_finished_another_does_not_run_again(tmp_path: Path) -> None:
    first = compare(tmp_path, InThisProcess)
    again = compare(tmp_path, "local")
    assert again.document() == first.document()
    assert InThisProcess.made[-1].ran == 6
    compare(tmp_path, InThisProcess)
    assert InThisProcess.made[-1].ran == 0


def test_an_engine_nobody_knows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fastglt.InputError, match=r"unknown engine \(got 'locl'\); did you mean 'local'\?"):
        compare(tmp_path, "locl")
    assert not list(tmp_path.iterdir())
