"""What the process of one run does, in this process."""

import json
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from fastglt import Ticket
from fastglt.methods import Budget
from fastglt.runs import worker
from fastglt.runs.experiment import Experiment
from fastglt.runs.plan import STOPPED, Run
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.store import Store

from .examples import experiment, runs_of


@pytest.fixture
def pipe() -> Iterator[tuple[Connection, Connection]]:
    """The worker's end of a pipe, and the other: it stops when that one is closed."""
    theirs, ours = Pipe(duplex=False)
    with theirs, ours:
        yield theirs, ours
        ours.close()
        time.sleep(0.05)  # for threads that wait at it


@pytest.fixture
def stop_pipe(pipe: tuple[Connection, Connection]) -> Connection:
    return pipe[0]


def job(run: Run, **changes: Any) -> dict[str, Any]:
    more = {"checkpoint_every": 10.0, "store": str(store_of(run).path), "command": "compare"}
    return dict(json.loads(json.dumps({**run.job(**more), **changes})))


def store_of(run: Run) -> Store:
    return Store(run.folder.parent / "store.sqlite")


def test_a_ticket_and_its_twin_are_those_of_find(tmp_path: Path, stop_pipe: Connection) -> None:
    """Equal scores: sharing the dense twin changes nothing."""
    dense, ticket = runs_of(tmp_path, experiment("fastglt"))
    for run in (dense, ticket):
        worker.work(job(run), stop_pipe)
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


def test_a_finished_run_is_left_as_it_is(tmp_path: Path, stop_pipe: Connection) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    worker.work(job(dense), stop_pipe)
    before = {path: path.stat().st_mtime_ns for path in dense.folder.iterdir() if path.name != ".lock"}
    worker.work(job(dense), stop_pipe)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_it_records_its_run(tmp_path: Path, stop_pipe: Connection) -> None:
    dense, ticket = runs_of(tmp_path, experiment())
    for run in (dense, ticket):
        worker.work(job(run), stop_pipe)
    kept = [store_of(run).find(run.key) for run in (dense, ticket)]
    assert kept == [run.entry(run.result() or {}, command="compare") for run in (dense, ticket)]
    assert [entry.kind for entry in kept if entry] == ["dense", "ticket"]
    assert [entry.ticket for entry in kept if entry] == [None, f"{ticket.folder}/ticket.safetensors"]
    assert Ticket.load(ticket.folder / "ticket.safetensors").config["method"] == "random"


def test_a_run_that_was_killed_before_it_was_recorded_is_recorded_later(
    tmp_path: Path, stop_pipe: Connection
) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    worker.work(job(dense, store=str(tmp_path / "lost.sqlite")), stop_pipe)
    for _ in range(2):
        worker.work(job(dense), stop_pipe)
    (row,) = store_of(dense).rows()
    assert (row["key"], row["metrics"]) == (dense.key, dense.result())


@pytest.fixture
def main(
    stop_pipe: Connection, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Any], tuple[Any, str]]:
    """The worker's whole life in this process: its exit code, and what it said."""
    monkeypatch.setattr(worker, "_speak_into", lambda log: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))

    def run(given: Any) -> tuple[Any, str]:
        with pytest.raises(SystemExit) as stopped:
            worker.main(given, stop_pipe, "")
        return stopped.value.code, capsys.readouterr().err

    return run


Main = Callable[[Any], tuple[Any, str]]


def test_a_store_it_cannot_use_is_told_before_it_starts(tmp_path: Path, main: Main) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    code, said = main(job(dense, store="/dev/null/results.sqlite"))
    assert code == 1
    assert "cannot write '/dev/null/results.sqlite'" in said
    assert not dense.folder.exists()


def test_it_stops_with_a_checkpoint_when_the_other_end_is_closed(
    tmp_path: Path, main: Main, pipe: tuple[Connection, Connection]
) -> None:
    _, ticket = runs_of(tmp_path, experiment(budget=LONG))
    pipe[1].close()
    assert main(job(ticket))[0] == STOPPED
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
    tmp_path: Path, main: Main, changes: dict[str, Any], code: int, message: str
) -> None:
    dense, _ = runs_of(tmp_path, experiment())
    found, said = main(job(dense, **changes))
    assert found == code
    (line,) = said.splitlines()
    assert message in line


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch, main: Main, error: Exception) -> None:
    def fail(job: Any, stop_pipe: Any) -> None:
        raise error

    monkeypatch.setattr(worker, "work", fail)
    assert main({"environment": {}})[1].startswith("not enough memory; try fewer --jobs")


def test_it_lives_in_the_environment_it_is_given(monkeypatch: pytest.MonkeyPatch, main: Main) -> None:
    seen: dict[str, str] = {}

    def look(job: Any, stop_pipe: Any) -> None:
        seen.update({name: value for name, value in os.environ.items() if name.startswith("FASTGLT_")})
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "work", look)
    os.environ["FASTGLT_OLD"] = "gone since"
    assert main({"environment": {"FASTGLT_BACKEND": "plain"}}) == (STOPPED, "")
    assert seen == {"FASTGLT_BACKEND": "plain"}


def test_an_experiment_survives_json() -> None:
    given = experiment("fastglt", options={"ramp": 1.0}, data_root=Path("/data"))
    assert Experiment.from_json(json.loads(json.dumps(given.to_json()))) == given


def test_a_process_whose_command_has_given_it_up_ends_without_a_word(
    tmp_path: Path, stop_pipe: Connection, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server of processes was killed as it had just started this one: its log is gone by now."""
    (dense, _) = runs_of(tmp_path, experiment("fastglt"))
    with pytest.raises(SystemExit) as ended:
        worker.main(job(dense), stop_pipe, str(tmp_path / "gone.txt"))
    assert ended.value.code == STOPPED
    assert capfd.readouterr() == ("", "")
