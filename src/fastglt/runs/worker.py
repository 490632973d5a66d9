"""One run of a series: the job that every engine has done, and what a process of its own does around it.

A process stops after the epoch that is running, with a checkpoint, once the other end of its pipe is closed: that
is how the process that started it says so, and what happens when that process dies.
"""

import contextlib
import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError, InputError
from fastglt.runs.differences import told
from fastglt.runs.entries import entry_of
from fastglt.runs.experiment import Experiment, Prepared
from fastglt.runs.plan import OURS, STOPPED, settings_of
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.store import Store
from fastglt.system.process import what_ran_out

_LESS = "fewer --jobs, a smaller --hidden"
Job = Mapping[str, Any]


def work(job: Job, stop_pipe: Connection | None = None) -> None:
    """Find a ticket, or train a dense twin, unless that has been done already; it is in the store then.

    Where there is a pipe, KeyboardInterrupt follows its other end's closing.
    """
    store = Store(Path(job["store"]))
    with performed(job, None if stop_pipe is None else stop_pipe.recv_bytes) as (folder, metrics, is_new):
        keep = store.record if is_new else store.ensure
        keep(entry_of(folder.settings, metrics, command=job["command"], folder=folder.path))


@contextlib.contextmanager
def performed(
    job: Job, wait_for_stop: Callable[[], object] | None = None
) -> Iterator[tuple[RunFolder, dict[str, Any], bool]]:
    """The job's run, complete in its folder, which is open: with its metrics, and whether it was made just now.

    Once `wait_for_stop` returns or fails, in a thread of its own, the run stops after its epoch: KeyboardInterrupt.
    """
    experiment = Experiment.from_json(job["experiment"])
    experiment.use_machine()
    prepared = experiment.prepare()
    settings = settings_of(prepared, job["twin"])
    _check_equal(settings, job.get("settings"))
    every, origin = job["checkpoint_every"], prepared.origin
    folder = RunFolder(Path(job["folder"]), settings, checkpoint_every=every, origin=origin)
    if wait_for_stop is not None:
        threading.Thread(target=_stop_when_asked, args=(folder, wait_for_stop), daemon=True).start()
    with folder.open(wait=True) as finished:  # another command may be at the same run
        metrics = _run(prepared, folder, job["twin"]) if finished is None else finished
        yield folder, metrics, finished is None


def _check_equal(here: Mapping[str, Any], asked: Mapping[str, Any] | None) -> None:
    """Refuse to make another run than was planned: on another machine data and versions may be others."""
    if asked is not None and json.loads(json.dumps(here)) != json.loads(json.dumps(asked)):
        place, remedy = platform.node(), "give all machines the same files and the same fastglt"
        raise InputError(f"the run is not what was planned, on {place} ({told(asked, here)}); {remedy}")


def _run(prepared: Prepared, folder: RunFolder, twin: str | None) -> dict[str, Any]:
    prepared.warm_up(dense=twin is not None)
    if twin is None:
        return prepared.run(folder, dense=False)
    return prepared.run_dense(folder, twin)


def _stop_when_asked(folder: RunFolder, wait_for_stop: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):  # whoever could ask is gone
        wait_for_stop()
    folder.stop = True


def main(job: Job, stop_pipe: Connection, log: str) -> None:
    """Do the work; what goes wrong becomes the last line of the log, and an exit code."""
    try:
        _speak_into(log)
    except FileNotFoundError:  # who asked for this has given it up, and taken the log away
        sys.exit(STOPPED)
    live_in(job["environment"])
    try:
        work(job, stop_pipe)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Exception as error:
        reason = known_reason(error)
        if reason is None:
            raise
        print(reason, file=sys.stderr)
        sys.exit(error.exit_code if isinstance(error, FastGLTError) else 1)


def known_reason(error: Exception) -> str | None:
    """In one line why a run has failed, where that says it all."""
    if isinstance(error, FastGLTError):
        return " ".join(str(error).split())
    lacks = what_ran_out(error)
    return None if lacks is None else lacks.format(_LESS)


def live_in(environment: Mapping[str, str]) -> None:
    """Take over fastglt's variables as they are now: this process was forked from one that may be older."""
    for name in [name for name in os.environ if name.startswith(OURS)]:
        del os.environ[name]
    os.environ.update(environment)


def _speak_into(log: str) -> None:
    """Whatever this process prints goes into a file; Ctrl-C is for the process that started it."""
    handle = os.open(log, os.O_WRONLY)
    os.setsid()
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.close(handle)
