"""Processes of their own that start without delay: copies of one that has imported everything (`process_server`).

Use them as `subprocess.Popen` and `subprocess.run`, for commands and scripts whose start is not what is tested.
"""

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.process_server import LENGTH, STATUS

FOLDER = "FASTGLT_TESTS"  # names the folder that all processes of the tests share, and its owner's number
ROOT = Path(__file__).parents[1]
_ENOUGH = 120.0  # seconds


class Process:
    """`python WORDS` as a process of its own, whose output and errors are text."""

    returncode: int | None = None
    _said: tuple[str, str] | None = None

    def __init__(
        self, *words: object, folder: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> None:
        job = {
            "words": [str(word) for word in words],
            "folder": str(folder or Path.cwd()),
            "variables": {**os.environ, **(variables or {})},
        }
        request = json.dumps(job).encode()
        self._connection = _connected()
        with _pipe() as (out, out_end), _pipe() as (err, err_end), Path(os.devnull).open() as nothing:
            head = LENGTH.pack(len(request))
            socket.send_fds(self._connection, [head], [nothing.fileno(), out_end, err_end])
            self._connection.sendall(request)
            self.stdout: IO[str] = os.fdopen(os.dup(out))
            self.stderr: IO[str] = os.fdopen(os.dup(err))
        (self.pid,) = STATUS.unpack(self._told())

    def _told(self) -> bytes:
        told = self._connection.recv(STATUS.size, socket.MSG_WAITALL)
        assert len(told) == STATUS.size, "the process that makes copies is gone"
        return told

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, when it has ended."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("python", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(*STATUS.unpack(self._told()))
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """The rest of what it says, when it has ended, and later the same; what takes too long is killed."""
        if self._said is None:
            with ThreadPoolExecutor(2) as threads:
                out, err = threads.submit(self.stdout.read), threads.submit(self.stderr.read)
                try:
                    self.wait(timeout)
                except subprocess.TimeoutExpired:
                    self.kill()
                    raise
                self._said = out.result(), err.result()
            self.close()
        return self._said

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wait()
        self.close()

    def close(self) -> None:
        """Listen no longer."""
        for stream in (self.stdout, self.stderr, self._connection):
            stream.close()


def run(
    *words: object, folder: Path | None = None, variables: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """`python WORDS`, to its end."""
    with Process(*words, folder=folder, variables=variables) as process:
        out, err = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess([str(word) for word in words], process.returncode, out, err)


def start_ranks(size: int, *words: object) -> list[Process]:
    """So many processes of one run, with the variables that torchrun gives them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(size)}
    ranks = ({"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"} for rank in range(size))
    return [Process(*words, folder=ROOT, variables={**place, **rank}) for rank in ranks]


def run_ranks(size: int, *words: object) -> list[str]:
    """What so many processes of one run say, all of which must end well."""
    started = start_ranks(size, *words)
    try:
        said = [one.communicate(timeout=_ENOUGH) for one in started]
    finally:
        for one in started:
            one.kill()
            one.communicate()
    assert [one.returncode for one in started] == [0] * size, said
    return [out for out, _ in said]


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _connected() -> socket.socket:
    """A connection to the one server for all processes of the tests, which is started when it is wanted first."""
    folder, _, owner = os.environ[FOLDER].rpartition(":")
    place, until = Path(folder) / "processes", time.monotonic() + _ENOUGH
    with (Path(folder) / "processes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (connection := _connection(place)) is None:
            place.unlink(missing_ok=True)  # of one that is gone
            words = [sys.executable, "-m", "tests.process_server", str(place), owner]
            subprocess.run(["sh", "-c", '"$@" >/dev/null &', "sh", *words], cwd=ROOT, check=True)
        while connection is None:
            assert time.monotonic() < until, "the process that makes copies did not start"
            time.sleep(0.01)
            connection = _connection(place)
    return connection


def _connection(place: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(place))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection
