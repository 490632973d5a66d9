"""A real process: where it listens, and how it stops."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from fastglt.errors import InputError
from fastglt.serve.server import address, listen, run

from .servers import ENOUGH, NEW, wait_until

ROOT = Path(__file__).parents[2]


@contextmanager
def slow_process() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The slow server, and its address."""
    command = [sys.executable, "-m", "tests.serve.slow_server"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def ask(base: str, threads: ThreadPoolExecutor, count: int) -> list["Future[httpx.Response]"]:
    """So many questions at once, all of them accepted when this returns."""
    found = [
        threads.submit(httpx.post, f"{base}/predict", json={"nodes": [i], **NEW}, timeout=60) for i in range(count)
    ]
    wait_until(base, "fastglt_requests_under_way", count)
    return found


def test_what_was_accepted_is_answered_and_nothing_else_before_it_ends() -> None:
    with slow_process() as (process, base), ThreadPoolExecutor(4) as threads:
        questions = ask(base, threads, 4)
        process.send_signal(signal.SIGTERM)
        next(as_completed(questions))  # half a second or more has passed, and others wait for their answer
        with pytest.raises(httpx.ConnectError):
            httpx.post(f"{base}/predict", json={"nodes": [0]})
        assert process.poll() is None
        answers = [question.result() for question in questions]
        assert [(answer.status_code, answer.json()["nodes"]) for answer in answers] == [
            (200, [i, 7]) for i in range(4)
        ]
        assert process.wait(ENOUGH) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_an_interrupt_in_earnest_does_not_wait() -> None:
    with slow_process() as (process, base), ThreadPoolExecutor(4) as threads:
        questions = ask(base, threads, 4)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENOUGH) != 0
        assert any(question.exception() or question.result().status_code != 200 for question in questions)


def test_addresses() -> None:
    with listen("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert address(bound) == f"http://127.0.0.1:{port}"
        with pytest.raises(
            InputError, match=rf"must be free .*127\.0\.0\.1:{port}: Address already in use.*--port"
        ):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match=r"host must be an address of this machine \(got 'no such host'"):
        listen("no such host", 0)
    with pytest.raises(InputError, match=r"port must lie in 0 … 65535 \(got 65536\)"):
        listen("127.0.0.1", 65536)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_an_ipv6_address_is_bracketed() -> None:
    try:
        bound = listen("::1", 0)
    except InputError:
        pytest.skip("no IPv6 loopback here")
    with bound:
        assert address(bound) == f"http://[::1]:{bound.getsockname()[1]}"


def test_log_levels_are_checked() -> None:
    with pytest.raises(InputError, match=r"must be one of critical, error, .* \(got 'loud'\)"):
        run(None, log_level="loud")  # type: ignore[arg-type]
