"""What the process of one run does, in this process."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from fastglt import Ticket
from fastglt.batch import Run, worker
from fastglt.batch.plan import STOPPED
from fastglt.experiment import Experiment
from fastglt.methods import Budget
from fastglt.run_folder import RunFolder
from fastglt.store import Store

from .runs import experiment, runs_of


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[IO[bytes]]:
    """The other end of the worker's standard input: it ends when this is closed."""
    inside, outside = os.pipe()
    with os.fdopen(inside, "rb") as stdin, os.fdopen(outside, "wb") as other:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield other
        other.close()
        time.sleep(0.05)  # for threads that read from it


def job(run: Run, **changes: Any) -> dict[str, Any]:
    told = {"checkpoint_every": 10.0, "store": str(store_of(run).path), "command": "compare"}
    return dict(json.loads(json.dumps({**run.job(**told), **changes})))


def store_of(run: Run) -> Store:
    return Store(run.folder.parent / "store.sqlite")


def test_a_ticket_and_its_twin_are_those_of_find(tmp_path: Path) -> None:
    """Equal scores: sharing the dense twin changes nothing."""
    dense, ticket = runs_of(tmp_path, experiment("fastglt"))
    for run in (dense, ticket):
        worker.work(job(run))
    prepared = experiment("fastglt").prepare()
    folder = RunFolder(tmp_path / "find", prepared.settings)
    with folder.open():
        expected = prepared.run(folder)
    apart = {**(dense.result() or {}), **(ticket.result() or {})}
    scores = {key: value for key, value in expected.items() if key.endswith(("_val", "_test", "_kept", "_total"))}
    assert len(scores) == 12
    assert scores.items() <= apart.items()
    assert not {"winning_search", "dense_test"} & set(ticket.result() or {})
    found = Ticket.load(ticket.folder / "ticket.safetensors")
    assert found.masks == Ticket.load(tmp_path / "find" / "ticket.safetensors").masks


def test_a_finished_run_is_left_as_it_is(tmp_path: Path) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    worker.work(job(dense))
    before = {path: path.stat().st_mtime_ns for path in dense.folder.iterdir() if path.name != ".lock"}
    worker.work(job(dense))
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_it_records_its_run(tmp_path: Path) -> None:
    dense, ticket = runs_of(tmp_path, experiment())
    for run in (dense, ticket):
        worker.work(job(run))
    kept = [store_of(run).find(run.key) for run in (dense, ticket)]
    assert kept == [run.entry(run.result() or {}, command="compare") for run in (dense, ticket)]
    assert [entry.kind for entry in kept if entry] == ["dense", "ticket"]
    assert [entry.ticket for entry in kept if entry] == [None, f"{ticket.folder}/ticket.safetensors"]
    assert Ticket.load(ticket.folder / "ticket.safetensors").config["method"] == "random"


def test_a_run_that_was_killed_before_it_was_recorded_is_recorded_later(tmp_path: Path) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    worker.work(job(dense, store=str(tmp_path / "lost.sqlite")))
    for _ in range(2):
        worker.work(job(dense))
    (row,) = store_of(dense).rows()
    assert (row["key"], row["metrics"]) == (dense.key, dense.result())


def test_a_store_it_cannot_use_is_told_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    monkeypatch.setattr(sys, "argv", ["worker", json.dumps(job(dense, store="/dev/null/results.sqlite"))])
    with pytest.raises(SystemExit) as stopped:
        worker.main()
    assert stopped.value.code == 1
    assert "cannot write '/dev/null/results.sqlite'" in capsys.readouterr().err
    assert not dense.folder.exists()


def test_it_stops_with_a_checkpoint_when_its_input_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: IO[bytes]
) -> None:
    _, ticket = runs_of(tmp_path, experiment(budget=LONG))
    told.close()
    monkeypatch.setattr(sys, "argv", ["worker", json.dumps(job(ticket))])
    with pytest.raises(SystemExit) as stopped:
        worker.main()
    assert stopped.value.code == STOPPED
    assert (ticket.folder / "checkpoint" / "search.part").exists()
    assert ticket.result() is None


LONG = Budget(oneshot_epochs=10, denoise_epochs=5000)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"folder": "/dev/null"}, 2, "the run's folder must be a folder"),
        ({"folder": "/dev/null/run"}, 1, "a part of the path is a file, not a folder"),
    ],
)
def test_what_is_wrong_is_one_line_and_an_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    code: int,
    message: str,
) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    monkeypatch.setattr(sys, "argv", ["worker", json.dumps(job(dense, **changes))])
    with pytest.raises(SystemExit) as stopped:
        worker.main()
    assert stopped.value.code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fail(job: Any) -> None:
        raise error

    monkeypatch.setattr(worker, "work", fail)
    monkeypatch.setattr(sys, "argv", ["worker", "{}"])
    with pytest.raises(SystemExit):
        worker.main()
    assert capsys.readouterr().err.startswith("not enough memory; try fewer --jobs")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["worker", "{}"])
    with pytest.raises(KeyError):
        worker.main()


def test_an_experiment_survives_json() -> None:
    given = experiment("fastglt", options={"ramp": 1.0}, data_root=Path("/data"))
    assert Experiment.from_json(json.loads(json.dumps(given.to_json()))) == given
