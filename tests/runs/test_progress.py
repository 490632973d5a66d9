"""Runs that are not finished, as another process sees them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastglt.runs.progress import Agenda, Notes, note, under_way
from fastglt.runs.run_folder import RunFolder
from fastglt.training.records import EpochRecord
from tests.runs.examples import experiment, runs_of

RECORD = EpochRecord(
    epoch=3, stage="denoise", loss=1.0, val=0.5, val_loss=1.0, test=0.4, graph_sparsity=0.2, weight_sparsity=0.5
)


def test_a_run_tells_its_epoch_while_it_goes_on_and_after_it_was_stopped(tmp_path: Path) -> None:
    prepared = experiment("fastglt").prepare()
    folder = RunFolder(tmp_path / "series" / "a", prepared.settings)
    seen = []

    def look(phase: str, training: object, epochs: int) -> None:
        seen.append(under_way(tmp_path)[0])
        if phase == "search":
            folder.stop = True

    with pytest.raises(KeyboardInterrupt), folder.open():
        prepared.run(folder, look)
    (now,) = under_way(tmp_path)
    assert (seen[0].state, seen[0].phase, seen[0].epoch, seen[0].epochs) == ("running", "search", 1, 6)
    assert seen[0].val is not None
    note(folder.path / "checkpoint" / "progress.json", {"phase": "search", "epoch": 2, "at": 0})
    (now,) = under_way(tmp_path)
    assert (now.state, now.name, now.epoch, now.epochs) == ("stopped", "a", 2, 6)


def test_a_finished_run_is_not_under_way(finished: Path) -> None:
    assert under_way(finished.parent.parent) == []


def test_a_ticket_whose_command_leaves_no_metrics_is_not_under_way(finished: Path) -> None:
    (finished / "metrics.json").unlink()
    assert under_way(finished.parent.parent) == []
    (finished / "checkpoint").mkdir(exist_ok=True)
    assert [one.state for one in under_way(finished.parent.parent)] == ["stopped"]


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    prepared = experiment("random").prepare()
    folder = RunFolder(tmp_path / "series" / "a", prepared.settings)
    with folder.open():
        prepared.run(folder, dense=False)
    return folder.path


def test_epochs_of_rounds_are_those_of_the_method(tmp_path: Path) -> None:
    chosen = experiment("ugs", options={"round_epochs": 3})
    prepared = chosen.prepare()
    folder = RunFolder(tmp_path / "a", prepared.settings)
    with folder.open():
        Notes(folder.path / "checkpoint").after_epoch("search", RECORD, 1.0)
    (one,) = under_way(tmp_path)
    assert (one.epoch, one.epochs) == (3, prepared.method.epochs)


def test_who_waits_and_who_failed(tmp_path: Path) -> None:
    waiting, failing, done = (tmp_path / "series" / name for name in ("waits", "fails", "done"))
    logs = tmp_path / "series" / "logs"
    with Agenda(logs, [waiting, failing, done]) as agenda:
        agenda.ended(done, "")
        agenda.ended(failing, "no <b>memory</b>")
        found = under_way(tmp_path)
        assert [(one.name, one.state, one.reason) for one in found] == [
            ("fails", "failed", "no <b>memory</b>"),
            ("waits", "queued", ""),
        ]
    assert [one.name for one in under_way(tmp_path)] == ["fails"]  # until it is tried again
    with Agenda(logs, [failing]) as agenda:
        agenda.ended(failing, "")
    assert not logs.exists()


def test_what_a_dead_process_left_is_stopped_and_goes_with_the_next(tmp_path: Path) -> None:
    logs = tmp_path / "series" / "logs"
    note(logs / "series-999999999.json", {"left": [str(tmp_path / "series" / "a")], "failed": {}})
    assert [one.state for one in under_way(tmp_path)] == ["stopped"]
    Agenda(logs, [])
    assert under_way(tmp_path) == []


def test_what_cannot_be_read_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "s" / "logs").mkdir(parents=True)
    (tmp_path / "s" / "logs" / f"series-{os.getpid()}.json").write_text('{"left": 3, "failed": [')
    (tmp_path / "s" / "a").mkdir()
    (tmp_path / "s" / "a" / "run.json").write_text("{}")
    (one,) = under_way(tmp_path)
    assert one.state == "failed"
    assert "is damaged" in one.reason
    Notes(tmp_path / "s" / "a" / "run.json").after_epoch("search", SimpleNamespace(**vars_of(RECORD)), 1.0)


def vars_of(record: EpochRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_a_series_leaves_no_trace_of_what_waited(tmp_path: Path) -> None:
    from fastglt.runs.series import Series

    first = experiment(seed=0)
    Series(command="compare", out=tmp_path / "runs", store=tmp_path / "s.sqlite").run([first])
    assert not (tmp_path / "runs" / "logs").exists()
    assert len(runs_of(tmp_path / "runs", first)) == 2
