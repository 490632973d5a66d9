"""One run of a series: the job that every engine has done, and what a process of its own does around it.

A process stops after the epoch that is running, with a checkpoint, once the other end of its pipe is closed: that
is how the process that started it says so, and what happens when that process dies.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError
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
    experiment = Experiment.from_json(job["experiment"])
    experiment.use_machine()
    prepared = experiment.prepare()
    settings = settings_of(prepared, job["twin"])
    every, origin = job["checkpoint_every"], prepared.origin
    folder = RunFolder(Path(job["folder"]), settings, checkpoint_every=every, origin=origin)
    if stop_pipe is not None:
        threading.Thread(target=_stop_when_asked, args=(folder, stop_pipe), daemon=True).start()
    with folder.open(wait=True) as finished:  # another command may be at the same run
        metrics = _run(prepared, folder, job["twin"]) if finished is None else finished
        keep = store.record if finished is None else store.ensure
        keep(entry_of(settings, metrics, command=job["command"], folder=folder.path))


def _run(prepared: Prepared, folder: RunFolder, twin: str | None) -> dict[str, Any]:
    prepared.warm_up(dense=twin is not None)
    if twin is None:
        return prepared.run(folder, dense=False)
    return prepared.run_dense(folder, twin)


def _stop_when_asked(folder: RunFolder, stop_pipe: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        stop_pipe.recv_bytes()
    folder.stop = True


def main(job: Job, stop_pipe: Connection, log: str) -> None:
    """Do the work; what goes wrong becomes the last line of the log, and an exit code."""
    try:
        _speak_into(log)
    except FileNotFoundError:  # who asked for this has given it up, and taken the log away
        sys.exit(STOPPED)
    _live_in(job["environment"])
    try:
        work(job, stop_pipe)
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except FastGLTError as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        lacks = what_ran_out(error)
        if lacks is None:
            raise
        print(lacks.format(_LESS), file=sys.stderr)
        sys.exit(1)


def _live_in(environment: Mapping[str, str]) -> None:
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
