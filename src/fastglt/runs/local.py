"""Runs in processes of this machine: so many at a time, stopped cleanly; one that dies takes no other with it."""

import contextlib
import multiprocessing
import signal
import sys
import time
import types
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError, MachineError
from fastglt.runs.engine import Outcome, refuse_what_only_this_process_has
from fastglt.runs.logs import begin_log, remove_logs, warnings_in
from fastglt.runs.plan import STOPPED, Run
from fastglt.system.process import safe_path
from fastglt.system.terminal import WARNING, safe, warn

_LOOK_EVERY = 0.05  # seconds
_IMPORTED = ["fastglt.runs.worker", "fastglt.kernels._ahead"]  # once for all runs
_GO_ON = "try fewer --jobs; the same command goes on from where it was"


class LocalEngine:
    """Runs in processes of their own, each of which records its run; what it prints is kept if it fails."""

    def __init__(self, jobs: int, *, logs: Path, store: Path, command: str, checkpoint_every: float = 10.0) -> None:
        self.jobs, self.logs = jobs, logs
        self._job_settings = {"store": str(store), "command": command, "checkpoint_every": checkpoint_every}
        self.stop = False  # set it, and every run stops after its epoch, with a checkpoint

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        """Outcomes as they come in; KeyboardInterrupt if runs were stopped."""
        refuse_what_only_this_process_has(runs)
        remove_logs(self.logs, "*", all_of_them=False)
        waiting, running, ended = deque(runs), list[_Process](), 0
        try:
            while running or (waiting and not self.stop):
                while waiting and len(running) < self.jobs and not self.stop:
                    running.append(_Process(waiting.popleft(), self.logs, self._job_settings))
                if self.stop:
                    for process in running:
                        process.ask_to_stop()
                for process in [process for process in running if process.has_ended]:
                    running.remove(process)
                    outcome = process.outcome()
                    if outcome is not None:
                        ended += 1
                        yield outcome
                time.sleep(_LOOK_EVERY if running else 0)
        finally:
            for process in running:
                process.kill()
            with contextlib.suppress(OSError):
                self.logs.rmdir()  # if nothing has failed
        if self.stop or ended < len(runs):  # a stop that came too late for these still ends what would follow
            raise KeyboardInterrupt(f"{ended} of {len(runs)} runs")


class _Process:
    """One run's process, forked from a server that has imported all that is needed: it starts without delay."""

    def __init__(self, run: Run, logs: Path, job_settings: Mapping[str, Any]) -> None:
        self._run, self._log = run, begin_log(logs, run.folder.name)
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(_IMPORTED)
        theirs, self._ours = server.Pipe(duplex=False)
        self._process = server.Process(target=_start, args=(run.job(**job_settings), theirs, str(self._log)))
        try:
            with _main_module_hidden(), safe_path():
                self._process.start()
        except (OSError, EOFError) as error:  # no process may be started, or the server was killed
            self._log.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or "the process that starts others is gone"
            raise MachineError(f"no process for a run could be started ({reason}); {_GO_ON}") from None
        finally:
            theirs.close()

    @property
    def has_ended(self) -> bool:
        return self._process.exitcode is not None

    def ask_to_stop(self) -> None:
        self._ours.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.ask_to_stop()
        self._log.unlink(missing_ok=True)

    def outcome(self) -> Outcome | None:
        """How the run ended; None if it was stopped, to go on another time."""
        self.ask_to_stop()  # closes the pipe
        code, warnings = self._process.exitcode or 0, warnings_in(self._log)
        if code not in (0, STOPPED):
            return Outcome(run=self._run, reason=_reason(code, self._log), warnings=warnings)
        self._log.unlink(missing_ok=True)
        if code == STOPPED:
            for message in warnings:  # the run that goes on from here will not see it again
                warn(f"{self._run.name}: {message}")
            return None
        try:
            return Outcome(run=self._run, metrics=self._run.result(), warnings=warnings)
        except FastGLTError as error:
            return Outcome(run=self._run, reason=safe(error), warnings=warnings)


@contextlib.contextmanager
def _main_module_hidden() -> Iterator[None]:
    """Let a process start that does not run the caller's script first.

    multiprocessing imports the main module in every process. A script without ``if __name__ == "__main__"`` would
    begin there all over again, and a run has no use for it.
    """
    before, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = before


def _start(job: Mapping[str, Any], stop_pipe: Connection, log: str) -> None:
    from fastglt.runs.worker import main

    main(job, stop_pipe, log)


def _reason(code: int, log: Path) -> str:
    """Why a process failed: the signal that ended it, or the last thing it said."""
    if code < 0:
        log.unlink(missing_ok=True)
    if code == -signal.SIGKILL:
        return "it was killed, as it is when memory runs out; try fewer --jobs or a smaller --hidden"
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    text = log.read_text(errors="replace") if log.exists() else ""
    lines = [line for line in text.strip().splitlines() if not line.startswith(WARNING)]
    if len(lines) > 1:
        return f"{safe(lines[-1])} (see '{log}')"
    log.unlink(missing_ok=True)
    return safe(lines[0]) if lines else f"it ended with exit code {code}"
