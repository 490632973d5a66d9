"""Processes of runs: side by side, failing, killed, stopped."""

import os
import subprocess
import threading
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from fastglt.errors import MachineError
from fastglt.methods import Budget
from fastglt.runs.local import LocalEngine
from fastglt.runs.run_folder import RunFolder
from tests.conftest import OwnModule
from tests.processes import Process

from .examples import experiment, runs_of

# Each run waits for the other one to begin: it takes two at a time to get through.
TOGETHER = """
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from fastglt.methods.random import RandomPruning

class Together(RandomPruning):
    name = "together"
    summary = "for tests"

    def begin(self, training):
        Path(f"began-{os.getpid()}").touch()
        deadline = time.monotonic() + 60
        while len(list(Path().glob("began-*"))) < 2:
            if time.monotonic() > deadline:
                raise TimeoutError("the other one did not begin")
            time.sleep(0.01)
        super().begin(training)
"""
# Each seed fails in a way of its own.
FAILS = """
import os, signal
from fastglt.methods.random import RandomPruning

class Fails(RandomPruning):
    name = "fails"
    summary = "for tests"

    def after_epoch(self, training):
        if training.epoch == 2 and training.seed == 0:
            raise ValueError("boom")
        if training.epoch == 2 and training.seed == 1:
            raise MemoryError
        if training.epoch == 2 and training.seed == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if training.epoch == 2 and training.seed == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        if training.epoch == 2 and training.seed == 4:
            os._exit(3)
"""
REASONS = [
    "ValueError: boom (see '{log}')",
    "not enough memory; try fewer --jobs, a smaller --hidden or a smaller graph",
    "it was killed, as it is when memory runs out; try fewer --jobs or a smaller --hidden",
    "it was ended by SIGTERM",
    "it ended with exit code 3",
]


def engine_of(folder: Path, jobs: int, **choices: Any) -> LocalEngine:
    given = {"logs": folder / "logs", "store": folder / "store.sqlite", "command": "compare"}
    return LocalEngine(jobs, **{**given, **choices})


def test_as_many_at_a_time_as_asked_for(tmp_path: Path, own_module: OwnModule) -> None:
    own_module("together", TOGETHER)
    runs = runs_of(tmp_path / "out", *(experiment("together:Together", seed) for seed in (0, 1)))
    tickets = [run for run in runs if not run.is_dense]
    outcomes = list(engine_of(tmp_path, 2).run(tickets))
    assert [outcome.reason for outcome in outcomes] == ["", ""]
    assert {outcome.run.folder for outcome in outcomes} == {run.folder for run in tickets}
    assert all(outcome.metrics == outcome.run.result() is not None for outcome in outcomes)
    assert not (tmp_path / "logs").exists()


def test_what_a_command_that_was_killed_has_left_goes(tmp_path: Path) -> None:
    run = next(run for run in runs_of(tmp_path / "out", experiment("fastglt", 0)) if run.is_dense)
    gone = subprocess.Popen(["true"])
    gone.wait()
    names = (run.folder.name, "empty", "finished", "other", "running")
    processes = (*[gone.pid] * 4, os.getpid())
    logs = [tmp_path / "logs" / f"{name}-{process}.txt" for name, process in zip(names, processes, strict=True)]
    logs[0].parent.mkdir()
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "metrics.json").touch()
    for log in logs:
        log.write_text("" if log.stem.startswith(("empty", "running")) else "boom")
    assert [outcome.reason for outcome in engine_of(tmp_path, 1).run([run])] == [""]
    left = "what another run has said may still be wanted, and the log of one that is running is"
    assert sorted(logs[0].parent.iterdir()) == logs[3:], left


def test_every_failure_has_its_reason_and_takes_no_other_run_with_it(tmp_path: Path, own_module: OwnModule) -> None:
    own_module("fails", FAILS)
    seeds = range(len(REASONS) + 1)
    runs = runs_of(tmp_path / "out", *(experiment("fails:Fails", seed) for seed in seeds))
    tickets = [run for run in runs if not run.is_dense]
    outcomes = {outcome.run.folder: outcome for outcome in engine_of(tmp_path, 2).run(tickets)}
    log = tmp_path / "logs" / f"{tickets[0].folder.name}-{os.getpid()}.txt"
    assert [outcomes[run.folder].reason for run in tickets] == [*(text.format(log=log) for text in REASONS), ""]
    assert [outcomes[run.folder].metrics is None for run in tickets] == [True] * len(REASONS) + [False]
    assert "in after_epoch" in log.read_text()
    assert list(log.parent.iterdir()) == [log], "where one line says it all, there is no log"


def test_stopped_runs_go_on_another_time(tmp_path: Path) -> None:
    """Also within a run: from its last checkpoint."""
    budget = Budget(oneshot_epochs=50, denoise_epochs=250)
    runs = [run for run in runs_of(tmp_path, experiment(budget=budget), experiment(seed=1)) if not run.is_dense]
    engine = engine_of(tmp_path, 1, checkpoint_every=0)
    part = runs[0].folder / "checkpoint" / "search.part"

    def stop_once_it_is_on_its_way() -> None:
        while not part.exists():
            time.sleep(0.01)
        engine.stop = True

    watcher = threading.Thread(target=stop_once_it_is_on_its_way)
    watcher.start()
    with pytest.raises(KeyboardInterrupt, match="0 of 2 runs"):
        list(engine.run(runs))
    watcher.join()
    assert part.exists()
    assert not runs[1].folder.exists()
    assert not (tmp_path / "logs").exists()
    outcomes = list(engine_of(tmp_path, 1).run(runs))
    assert [outcome.metrics is not None for outcome in outcomes] == [True, True]


def test_what_a_run_warns_of_is_not_lost(tmp_path: Path) -> None:
    """A damaged checkpoint, in a process whose log goes when it is through."""
    run = next(run for run in runs_of(tmp_path / "out", experiment()) if run.is_dense)
    with RunFolder(run.folder, run.settings).open():
        pass
    (run.folder / "checkpoint").mkdir()
    (run.folder / "checkpoint" / "dense.part").write_bytes(b"damaged")
    (outcome,) = engine_of(tmp_path, 1).run([run])
    assert (outcome.reason, outcome.metrics) == ("", run.result())
    (warning,) = outcome.warnings
    assert warning.startswith(f"'{run.folder}/checkpoint/dense.part' is damaged (")
    assert warning.endswith("; the dense phase is done again from its beginning")
    assert not (tmp_path / "logs").exists()


WARNS = """
import sys
from fastglt.methods.random import RandomPruning
from fastglt.system.terminal import warn

class Warns(RandomPruning):
    name = "warns"
    summary = "for tests"

    def begin(self, training):
        warn("first\\x1b[2J")
        sys.exit("\\x1b[31m[red]boom")
"""


def test_reasons_are_text_and_warnings_are_no_part_of_them(tmp_path: Path, own_module: OwnModule) -> None:
    own_module("warns", WARNS)
    runs = [run for run in runs_of(tmp_path / "out", experiment("warns:Warns")) if not run.is_dense]
    (outcome,) = engine_of(tmp_path, 1).run(runs)
    assert (outcome.reason, outcome.warnings) == (r"\x1b[31m[red]boom", [r"first\x1b[2J"])


def test_a_stop_that_comes_with_the_last_run_still_stops(tmp_path: Path) -> None:
    engine = engine_of(tmp_path, 1)
    outcomes = engine.run(runs_of(tmp_path, experiment())[:1])
    assert next(outcomes).metrics is not None
    engine.stop = True  # what would have followed must not start
    with pytest.raises(KeyboardInterrupt, match="1 of 1 runs"):
        next(outcomes)


def test_leaving_early_kills_what_runs(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment(), experiment(seed=1, budget=Budget(denoise_epochs=100_000)))
    outcomes = engine_of(tmp_path, 2).run([runs[0], runs[-1]])
    assert next(outcomes).run == runs[0]
    outcomes.close()  # type: ignore[attr-defined]
    with RunFolder(runs[-1].folder, runs[-1].settings).open() as finished:  # its lock is free again
        assert finished is None


def test_a_server_of_processes_that_is_gone_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = runs_of(tmp_path / "out", experiment())[:1]
    assert [outcome.reason for outcome in engine_of(tmp_path, 1).run([run])] == [""], "it is running now"
    monkeypatch.setattr(forkserver._forkserver, "_forkserver_address", str(tmp_path / "gone"))
    with pytest.raises(MachineError, match=r"no process for a run could be started .*the same command goes on"):
        list(engine_of(tmp_path, 1).run([run]))
    assert not (tmp_path / "logs").exists()


# A command that has the same runs, at the same time.
OTHER = """
import json, sys
from pathlib import Path
from fastglt.runs.local import LocalEngine
from tests.runs.examples import experiment, runs_of

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    engine = LocalEngine(1, logs=folder / "logs", store=folder / "store.sqlite", command="compare")
    runs = runs_of(folder / "out", *(experiment(seed=seed) for seed in range(3)))
    print(json.dumps([outcome.reason for outcome in engine.run(runs)]))
"""


def test_commands_that_share_runs_wait_for_each_other(tmp_path: Path) -> None:
    others = [Process("-c", OTHER, tmp_path) for _ in range(2)]
    reasons = [other.communicate()[0] for other in others]
    assert [other.returncode for other in others] == [0, 0]
    assert reasons == ['["", "", "", "", "", ""]\n'] * 2
    assert not (tmp_path / "logs").exists()


THREADS = """
import torch
from pathlib import Path
from fastglt.methods.random import RandomPruning

class Threads(RandomPruning):
    name = "threads"
    summary = "for tests"

    def after_epoch(self, training):
        super().after_epoch(training)
        Path("threads").write_text(str(torch.get_num_threads()))
"""


def test_a_run_has_the_threads_it_was_given(tmp_path: Path, own_module: OwnModule) -> None:
    own_module("threads", THREADS)
    runs = [run for run in runs_of(tmp_path, experiment("threads:Threads", threads=1)) if not run.is_dense]
    assert [outcome.reason for outcome in engine_of(tmp_path, 1).run(runs)] == [""]
    assert Path("threads").read_text() == "1"
