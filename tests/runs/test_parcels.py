"""A run's folder as bytes."""

from pathlib import Path

from fastglt.runs.parcels import pack, unpack
from fastglt.runs.ray_task import FAILED, FINISHED, STOPPED, perform, receive
from fastglt.runs.run_folder import RunFolder

from .examples import experiment, runs_of


def test_a_folder_is_the_same_elsewhere_but_for_its_lock(tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "checkpoint").mkdir(parents=True)
    content = {"run.json": b"1", "checkpoint/search.part": b"2", ".digests.json": b"3", "metrics.json": b"4"}
    for name, value in {**content, ".lock": b"", ".metrics.json.abcdefgh": b"torn"}.items():
        (here / name).write_bytes(value)
    sent = pack(here)
    assert sent == content
    unpack(sent, tmp_path / "there")
    assert pack(tmp_path / "there") == content


def test_a_task_stops_goes_on_elsewhere_and_fails_with_a_reason(tmp_path: Path) -> None:
    """As a worker does it, without Ray: a folder goes out, comes back stopped, goes out and comes back finished."""
    dense, _ = runs_of(tmp_path / "out", experiment())
    folder = RunFolder(dense.folder, dense.settings)
    job = dense.job(settings=dict(dense.settings), command="compare", checkpoint_every=0.0)

    def sent() -> dict[str, bytes]:
        with folder.open():
            return pack(folder.path)

    other = perform({**job, "settings": {**dense.settings, "graph": "another"}}, sent(), _never)
    assert other["ended"] == FAILED
    assert "the run is not what was planned" in other["reason"]
    stopped = perform(job, sent(), _at_once)
    assert stopped["ended"] == STOPPED
    assert receive(stopped["files"], folder) is None
    assert (folder.path / "checkpoint").is_dir()
    finished = perform(job, sent(), _never)
    assert finished["ended"] == FINISHED
    metrics = receive(finished["files"], folder)
    assert metrics is not None
    assert metrics == dense.result()
    assert not (folder.path / "checkpoint").exists()


def _at_once() -> None:
    """Somebody has asked already."""


def _never() -> None:
    import threading

    threading.Event().wait()
