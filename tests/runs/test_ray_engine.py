"""Runs as tasks of Ray: a real cluster of two workers on this machine, one of which is killed on the way."""

import importlib.util
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastglt.errors import InputError, MachineError
from fastglt.runs import ray_engine
from fastglt.runs.local import LocalEngine
from fastglt.runs.ray_cluster import connect
from fastglt.runs.ray_engine import TRIES, RayEngine
from fastglt.runs.store import Store
from tests.conftest import OwnModule

from .examples import experiment, runs_of

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="ray is not installed (fastglt[ray])"
)
# Seed 1 takes its worker with it the first time, seed 2 every time; seed 3 fails without that.
UNLUCKY = """
import os, signal
from pathlib import Path
from fastglt.methods.random import RandomPruning

class Unlucky(RandomPruning):
    name = "unlucky"
    summary = "for tests"

    def after_epoch(self, training):
        marks = Path(os.environ["FASTGLT_TEST_MARKS"])
        before = len(list(marks.glob(f"{training.seed}-*")))
        if training.epoch == 2 and (training.seed == 2 or (training.seed == 1 and not before)):
            (marks / f"{training.seed}-{before}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if training.epoch == 2 and training.seed == 3:
            raise ValueError("boom")
"""


@pytest.fixture
def ray_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster that is gone after the test; workers keep what they are at in a folder of the test."""
    monkeypatch.setenv("FASTGLT_SCRATCH", str(tmp_path / "scratch"))
    monkeypatch.setenv("FASTGLT_TEST_MARKS", str(tmp_path))
    yield
    import ray

    ray.shutdown()


def engine_of(kind: Any, folder: Path) -> Any:
    given = {"logs": folder / "logs", "store": folder / "store.sqlite", "command": "compare"}
    return kind(2, checkpoint_every=0.0, **given)


def scores(store: Path) -> dict[str, dict[str, Any]]:
    """Of each run in a store, refused if it is there twice; without times."""
    rows = Store(store).rows()
    assert len({row["key"] for row in rows}) == len(rows)
    kept = [{k: v for k, v in row["metrics"].items() if not k.endswith("seconds")} for row in rows]
    return {row["key"]: metrics for row, metrics in zip(rows, kept, strict=True)}


@needs_ray
@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.usefixtures("ray_workers")
def test_ray_gives_what_local_processes_give_and_survives_lost_workers(
    tmp_path: Path, own_module: OwnModule, capsys: pytest.CaptureFixture[str]
) -> None:
    own_module("unlucky", UNLUCKY)
    made = [experiment("random", seed) for seed in range(4)] + [experiment("unlucky:Unlucky", s) for s in range(4)]
    here, there = tmp_path / "local", tmp_path / "ray"
    local = list(engine_of(LocalEngine, here).run(runs_of(here / "out", *made[:4])))
    engine = engine_of(RayEngine, there)
    outcomes = list(engine.run(runs_of(there / "out", *made)))
    assert (len(local), len(outcomes)) == (8, 12)
    found, failed = scores(there / "store.sqlite"), [outcome for outcome in outcomes if outcome.metrics is None]
    assert scores(here / "store.sqlite").items() <= found.items()
    assert len(found) == 10, "no run is lost, and none is twice there"
    assert sorted(outcome.run.experiment.seed for outcome in failed) == [2, 3]
    lost, broken = sorted(failed, key=lambda outcome: outcome.run.experiment.seed)
    assert lost.reason.startswith(f"its worker was lost {TRIES} times")
    log = there / "logs" / f"{broken.run.folder.name}-{os.getpid()}.txt"
    assert broken.reason == f"ValueError: boom (see '{log}')"
    assert "in after_epoch" in log.read_text()
    again = [outcome for outcome in outcomes if outcome.warnings and outcome.metrics is not None]
    assert [outcome.run.experiment.seed for outcome in again] == [1]
    assert all("worker was lost" in outcome.warnings[0] for outcome in again)
    assert capsys.readouterr().out == "", "standard output is the command's own"

    engine = engine_of(RayEngine, tmp_path / "stopped")
    runs = runs_of(tmp_path / "stopped" / "out", experiment("random", 7))
    engine.stop = True
    with pytest.raises(KeyboardInterrupt, match="0 of 2 runs"):
        list(engine.run(runs))


@needs_ray
@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.usefixtures("ray_workers")
def test_the_process_that_runs_ask_whether_to_stop_may_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = ray_engine._Cluster.submit

    def submit_and_kill(cluster: Any, *given: Any) -> None:
        import ray

        submit(cluster, *given)
        ray.kill(cluster._stop, no_restart=False)

    monkeypatch.setattr(ray_engine._Cluster, "submit", submit_and_kill)
    runs = runs_of(tmp_path / "out", *(experiment("random", seed) for seed in range(2)))
    outcomes = list(engine_of(RayEngine, tmp_path).run(runs))
    assert all(outcome.metrics is not None for outcome in outcomes)
    assert len(outcomes) == len(scores(tmp_path / "store.sqlite")) == 4


@needs_ray
@pytest.mark.parametrize("address", ["head", "head:", ":1", "head:99999"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match=r"must be HOST:PORT \(got"):
        connect(address)


@needs_ray
def test_an_address_where_nobody_is() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MachineError, match=rf"no Ray cluster answers at '127.0.0.1:{port}' \(Connection refused"):
        connect(f"127.0.0.1:{port}")
