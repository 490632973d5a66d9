"""Processes that are started to be killed, with all that they start themselves."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ENOUGH = 180.0  # seconds that nothing here should need
_MARK = "KILLED_ON_PURPOSE"


class Victim:
    """A Python process in a folder, and whatever it starts: known by a variable of their environment."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, name: value, "PYTHONPATH": os.pathsep.join(paths)}
        self._files = [(folder.parent / f"{folder.name}.{end}").open("w+") for end in ("out", "err")]
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
            return marked and b"\nState:\tZ" not in (place / "status").read_bytes()
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
        deadline = time.monotonic() + ENOUGH / 6
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        left = self.alive
        self.kill(left)
        return left

    def close(self) -> None:
        """Kill what is left, and forget what it said."""
        self.kill([*self.alive, self.process.pid])
        for file in self._files:
            file.close()


def _content(file: IO[str]) -> str:
    return Path(file.name).read_text(errors="replace")
