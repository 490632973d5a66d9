"""What a series takes, executes and tells."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fastglt.errors import InputError
from fastglt.runs.engine import Outcome
from fastglt.runs.experiment import available_threads
from fastglt.runs.plan import Run
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.series import Series, Stopped, runs_at_a_time
from fastglt.runs.store import Store

from .examples import experiment


class Made:
    """An engine whose runs have these metrics; the second fails, and a third is not begun."""

    def __init__(self, jobs: int, **settings: Any) -> None:
        self.stop = False

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        yield Outcome(run=runs[0], metrics={"dense_test": 0.5, "dense_val": 0.25, "dense_seconds": 2.0})
        yield Outcome(run=runs[1], reason="boom")
        if len(runs) > 2:
            raise KeyboardInterrupt("2 of 4 runs")


def series(folder: Path, **choices: Any) -> Series:
    given = {"command": "compare", "out": folder / "out", "store": folder / "store.sqlite", "jobs": 2}
    return Series(**{**given, **choices})


def test_every_run_is_told_of(tmp_path: Path) -> None:
    lines: list[str] = []
    runs, outcomes = series(tmp_path, engine=Made, tell=lines.append).run([experiment()])
    assert [(outcome.run, outcome.reason) for outcome in outcomes] == [(runs[0], ""), (runs[1], "boom")]
    assert lines == [
        f"2 runs, 2 at a time, in '{tmp_path / 'out'}'",
        "dense seed 0: dense 50.00 %, 2.0 s; 1 left, about 1 s",
        "random g20 w50 seed 0: failed: boom; 0 left",
    ]
    series(tmp_path, engine=Made, tell=lines.append, shown="val").run([experiment()])
    assert lines[4] == "dense seed 0: validation: dense 25.00 %, 2.0 s; 1 left, about 1 s"


def test_warnings_are_told_anyhow_and_nothing_is_obeyed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Warned(Made):
        def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
            yield Outcome(run=runs[0], reason="\x1b[2J", warnings=["one\x1b", "two"])

    lines: list[str] = []
    series(tmp_path, engine=Warned, tell=lines.append).run([experiment()])
    assert lines[1:] == [r"dense seed 0: failed: \x1b[2J; 1 left, about 1 s"]
    assert capfd.readouterr().err == "warning: dense seed 0: one\\x1b\nwarning: dense seed 0: two\n"


def test_nothing_is_told_unless_somebody_asks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    series(tmp_path, engine=Made).run([experiment()])
    assert capfd.readouterr() == ("", "")


def test_an_interruption_says_how_far_it_came(tmp_path: Path) -> None:
    with pytest.raises(Stopped, match="2 of 4 runs"):
        series(tmp_path, engine=Made).run([experiment(), experiment(seed=1)])
    assert issubclass(Stopped, KeyboardInterrupt)


def test_labels_name_tickets_and_not_folders(tmp_path: Path) -> None:
    (_, plain), _ = series(tmp_path, engine=Made).run([experiment()])
    (dense, ticket), _ = series(tmp_path, engine=Made).run([experiment()], ["random[mine]"])
    assert (dense.method, ticket.method, ticket.name) == ("dense", "random[mine]", "random[mine] g20 w50 seed 0")
    assert (ticket.folder, ticket.key, ticket.job()) == (plain.folder, plain.key, plain.job())


def test_checkpoints_that_a_kill_has_left_beside_a_result_go(tmp_path: Path) -> None:
    """Killed after its last file and before that, a run is finished, and nobody opens it again."""
    runs, _ = series(tmp_path).run([experiment()])
    for run in runs:
        (run.folder / "checkpoint").mkdir()
        (run.folder / "checkpoint" / "search.done").touch()
    with RunFolder(runs[0].folder, runs[0].settings).open():  # where somebody is at work nothing is touched
        (runs[0].folder / "checkpoint").mkdir()
        series(tmp_path).run([experiment()])
        assert [(run.folder / "checkpoint").exists() for run in runs] == [True, False]
    series(tmp_path).run([experiment()])
    assert not (runs[0].folder / "checkpoint").exists()


def test_what_is_finished_or_in_the_store_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from the folder of another series, which is told."""
    first, _ = series(tmp_path).run([experiment()])
    rows = len(Store(tmp_path / "store.sqlite").rows())
    lines: list[str] = []
    _, outcomes = series(tmp_path, tell=lines.append).run([experiment()])
    assert [outcome.place for outcome in outcomes] == [None, None]
    _, elsewhere = series(tmp_path, tell=lines.append, out=tmp_path / "other").run([experiment()])
    assert [outcome.place for outcome in elsewhere] == [str(run.folder) for run in first]
    assert [outcome.metrics for outcome in elsewhere] == [outcome.metrics for outcome in outcomes]
    assert lines[0] == "2 of 2 runs are finished already"
    reused = f"2 of 2 runs are reused from the store '{tmp_path / 'store.sqlite'}'"
    assert lines[1] == reused
    assert (len(lines), len(Store(tmp_path / "store.sqlite").rows())) == (2, rows)
    monkeypatch.setattr("fastglt.runs.series.revision", lambda: "another")
    series(tmp_path, tell=lines.append, out=tmp_path / "other").run([experiment()])
    assert lines[2] == f"{reused}, 2 of them made by another, or a changed, revision of fastglt"


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="checkpoint_every must not be negative"):
        series(tmp_path, checkpoint_every=-1)
    with pytest.raises(InputError, match="jobs must not be negative"):
        runs_at_a_time(-1, 1, "cpu")


@pytest.mark.parametrize(
    ("jobs", "threads", "device", "expected"),
    [(3, 1, "cpu", 3), (0, 0, "cpu", 1), (0, 10_000, "cpu", 1), (0, 1, "cuda", 1), (0, 1, "cpu", None)],
)
def test_runs_at_a_time(jobs: int, threads: int, device: str, expected: int | None) -> None:
    assert runs_at_a_time(jobs, threads, device) == (expected or available_threads())
