"""A real process: where it listens, and how it stops."""

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from fastglt.errors import InputError
from fastglt.serve.server import address, listen, run
from tests.processes import Process

from .servers import ENOUGH, NEW, connect, wait_until, wait_until_refused

ROOT = Path(__file__).parents[2]


NOHUP = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
FEW_FILES = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))"


@contextmanager
def slow_process(first: str = "") -> Iterator[tuple[Process, str]]:
    """The slow server, which does something else first, and its address."""
    code = f"import runpy\n{first}\nrunpy.run_module('tests.serve.slow_server', run_name='__main__')"
    with Process("-c", code, folder=ROOT) as process:
        try:
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_was_accepted_is_answered_and_nothing_else_before_it_ends(number: signal.Signals) -> None:
    with slow_process() as (process, base), ThreadPoolExecutor(4) as threads:
        questions = ask(base, threads, 4)
        process.send_signal(number)
        wait_until_refused(base)
        assert process.poll() is None
        assert not all(question.done() for question in questions)  # two seconds for all of them
        answers = [question.result() for question in questions]
        assert [(answer.status_code, answer.json()["nodes"]) for answer in answers] == [
            (200, [i, 7]) for i in range(4)
        ]
        assert process.wait(ENOUGH) == 0
        assert process.stderr.read() == ""


def test_under_nohup_a_hangup_changes_nothing() -> None:
    with slow_process(NOHUP) as (process, base):
        process.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        assert httpx.get(f"{base}/healthz").status_code == 200


def test_without_descriptors_it_says_so_in_one_line_and_recovers() -> None:
    with slow_process(FEW_FILES) as (process, base):
        kept = [connect(base) for _ in range(60)]
        time.sleep(2.5)  # it has tried again meanwhile
        for one in kept:
            one.close()
        assert httpx.get(f"{base}/healthz", timeout=ENOUGH).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENOUGH) == 0
        (line,) = process.stderr.read().splitlines()
        assert line.endswith(
            "connections wait until others end: Too many open files; allow the process more open files (ulimit -n)"
        )


def test_other_names_are_refused() -> None:
    with slow_process() as (_, base):
        assert httpx.get(f"{base}/healthz", headers={"Host": "evil.example"}).status_code == 400


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
