"""Processes that are started to be killed, with all that they start themselves."""

import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Protocol

ENOUGH = 600.0  # seconds that nothing here should need, on however busy a machine
_MARK = "KILLED_ON_PURPOSE"
# What takes time to import:
_MODULES = ["fastglt.runs.worker", "fastglt.cli", "fastglt.kernels._ahead", "torch_geometric.nn"]


class Process(Protocol):
    """What is asked of a process here."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""

    def wait(self, timeout: float | None = None) -> int: ...


class Forked:
    """A Python process that begins as a copy of one that has imported everything, and computed nothing.

    What it does to files is what a new process does, without two seconds of imports for each kill.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], files: list[str]
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_MODULES)
        words = (list(command), folder, dict(variables), files)
        self._process: BaseProcess = context.Process(target=_become, args=words)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"it has not ended after {timeout} seconds")
        return self._process.exitcode


def _become(command: Sequence[str], folder: Path, variables: Mapping[str, str], files: Sequence[str]) -> None:
    """`python -m module words`, in its folder, with its variables and files."""
    for number, name in enumerate(files, start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.update(variables)
    for server in (forkserver._forkserver, resource_tracker._resource_tracker):  # it starts others by its own
        server.__init__()  # type: ignore[misc]
    sys.argv = list(command[1:])
    runpy.run_module(command[1], run_name="__main__", alter_sys=True)


class Victim:
    """A Python process in a folder, and whatever it starts: known by a variable of their environment."""

    process: Process

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        variables: Mapping[str, str] | None = None,
        forked: bool = False,
    ) -> None:
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **(variables or {}), name: value, "PYTHONPATH": os.pathsep.join(paths)}
        self._files = [(folder.parent / f"{folder.name}.{end}").open("w+") for end in ("out", "err")]
        if forked:
            self.process = Forked(command, folder, environment, [file.name for file in self._files])
            return
        self.process = subprocess.Popen(
            [sys.executable, *command], cwd=folder, env=environment, stdout=self._files[0], stderr=self._files[1]
        )

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def said(self) -> tuple[str, str]:
        """Standard output and standard error so far."""
        return _content(self._files[0]), _content(self._files[1])

    @property
    def alive(self) -> list[int]:
        """Its own process, and those that it started, as far as they are running."""
        return [int(place.name) for place in Path("/proc").iterdir() if place.name.isdecimal() and self._has(place)]

    def _has(self, place: Path) -> bool:
        with contextlib.suppress(OSError):
            marked = self._mark.encode() in (place / "environ").read_bytes().split(b"\0")
            own = int(place.name) == self.process.pid and not self.has_ended
            return (marked or own) and b"\nState:\tZ" not in (place / "status").read_bytes()
        return False

    def kill(self, processes: Sequence[int] | None = None) -> None:
        """`kill -9` of its own process, or of these."""
        for number in [self.process.pid] if processes is None else processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if processes is None or self.process.pid in processes:
            self.process.wait()

    def survivors(self) -> list[int]:
        """What is still running some time after it has ended, where nothing should; it is killed then."""
        deadline = time.monotonic() + 30  # one that is still importing does not notice before
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        left = self.alive
        self.kill(left)
        return left

    def close(self) -> None:
        """Kill what is left, and forget what it said."""
        self.kill(self.alive if self.has_ended else [*self.alive, self.process.pid])
        deadline = time.monotonic() + ENOUGH
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.01)  # a killed process takes a moment to go
        for file in self._files:
            file.close()


def _content(file: IO[str]) -> str:
    return Path(file.name).read_text(errors="replace")
