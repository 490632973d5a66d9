"""Clients that mean harm against `fastglt serve`, on loopback only and for a bounded time.

    python benchmarks/serve_attacks.py            # a small drawn network; or: runs/a, a ticket

starts the service, then lets one kind of client after the other loose on it, in a process of their own, while this
one asks for /healthz, asks an honest question and looks at the service's memory. It prints what the clients got,
how long /healthz took at most, how many honest questions were answered, and the most memory above the idle
service's.
Exit code 1: /healthz took a second or more, or the memory was more than docs/serve.md promises.
"""

import argparse
import asyncio
import functools
import http.client
import json
import multiprocessing
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

LATENCY, MEMORY = 1.0, 512.0  # seconds, and MB above the idle service: what is asked
AFTER = 0.5  # seconds that the service is watched after an attack
BODY = 4 * 2**20 - 64
SMALL = """
import torch
from fastglt import set_threads
from fastglt.deploy.compiling import compile_network
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models import GCN
from fastglt.serve import make_app, run
set_threads(1)
nodes = torch.arange(2000)
graph = Graph.from_edge_index(torch.stack([nodes, nodes.roll(1)]), num_nodes=2000)
network = GCN(500, 16, 7, seed=1).eval().requires_grad_(False)
x = Features(torch.ones(2000, 500))
served = compile_network(network, graph, x, layout="dense")
run(make_app(served), port=0)
"""
Place = tuple[str, int]
Client = Callable[[Place, float], Awaitable[str]]


@dataclass(frozen=True)
class Seen:
    """What an attack did."""

    attack: str
    clients: int
    statuses: dict[str, int]
    seconds: float
    healthz: float  # seconds, at most
    honest: tuple[int, int]  # questions answered, of those asked
    memory: float  # MB above the idle service, at most


def head(length: int) -> bytes:
    return (
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n\r\n"
    ).encode()


@functools.cache
def unknown_keys() -> bytes:
    return b'{"nodes": [0]' + b"".join(b',"%06d":0' % i for i in range(BODY // 11)) + b"}"


@functools.cache
def numbers() -> bytes:
    return b'{"nodes": [' + b"1.5," * (BODY // 4) + b"0]}"


async def status(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    return line.split()[1].decode() if line else "closed"


async def send_whole(place: Place, body: bytes) -> str:
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(head(len(body)) + body)
        await writer.drain()
        return await status(reader)
    finally:
        writer.close()


async def many_keys(place: Place, seconds: float) -> str:
    return await send_whole(place, unknown_keys())


async def many_numbers(place: Place, seconds: float) -> str:
    return await send_whole(place, numbers())


async def close_early(place: Place, seconds: float) -> str:
    """The whole body, of numbers or of unknown keys, and nobody waits for the answer."""
    _, writer = await asyncio.open_connection(*place)
    body = random.choice((numbers, unknown_keys))()
    writer.write(head(len(body)) + body)
    await writer.drain()
    writer.close()
    return "left"


async def never_finish(place: Place, seconds: float) -> str:
    """A megabyte of four, then nothing."""
    reader, writer = await asyncio.open_connection(*place)
    try:
        writer.write(head(BODY) + numbers()[: 2**20])
        await writer.drain()
        async with asyncio.timeout(seconds):
            return await status(reader)
    finally:
        writer.close()


async def tiny_chunks(place: Place, seconds: float) -> str:
    reader, writer = await asyncio.open_connection(*place)
    try:
        start = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        writer.write(start + b"1\r\n \r\n" * 200_000)
        await writer.drain()
        return await status(reader)
    finally:
        writer.close()


async def never_read(place: Place, seconds: float) -> str:
    """Long answers to many questions on one connection, all left unread."""
    _, writer = await asyncio.open_connection(*place, limit=2**10)
    body = json.dumps({"nodes": [0] * 10_000, "probabilities": True}).encode()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((head(len(body)) + body) * 20)
    await asyncio.sleep(seconds)
    writer.close()
    return "left"


ATTACKS: dict[str, tuple[int, Client]] = {
    "4 MB of unknown keys": (32, many_keys),
    "4 MB, closed early": (200, close_early),
    "unfinished bodies": (100, never_finish),
    "4 MB of numbers": (32, many_numbers),
    "tiny chunks": (32, tiny_chunks),
    "unread answers": (100, never_read),
}


def attack(place: Place, name: str, clients: int, seconds: float, found: "Queue[list[str]]") -> None:
    """All clients of one kind at once; what each got."""
    client = ATTACKS[name][1]

    async def one() -> str:
        try:
            async with asyncio.timeout(2 * seconds):
                return await client(place, seconds)
        except TimeoutError:
            return "waited"
        except OSError:
            return "reset"

    async def everyone() -> list[str]:
        return list(await asyncio.gather(*(one() for _ in range(clients))))

    found.put(asyncio.run(everyone()))


def get(place: Place, path: str, body: str | None = None) -> tuple[int, float]:
    """Status and seconds, on a new connection."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection(*place, timeout=60)
    try:
        kind = {"Content-Type": "application/json"} if body else {}
        connection.request("POST" if body else "GET", path, body, kind)
        answer = connection.getresponse()
        answer.read()
    except OSError:
        return 0, time.perf_counter() - began
    finally:
        connection.close()
    return answer.status, time.perf_counter() - began


def memory(process: int) -> float:
    """MB that it has in RAM."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 2**20


def suffer(place: Place, process: int, name: str, clients: int, seconds: float) -> Seen:
    """One attack, watched until a moment after its end."""
    spawn = multiprocessing.get_context("spawn")
    found: Queue[list[str]] = spawn.Queue()
    idle = most = memory(process)
    slowest, answered, asked = 0.0, 0, 0
    child = spawn.Process(target=attack, args=(place, name, clients, seconds, found))
    child.start()
    began, end = time.perf_counter(), None
    while end is None or time.perf_counter() < end:
        code, took = get(place, "/healthz")
        slowest = max(slowest, took if code == 200 else 60.0)
        answered += get(place, "/predict", '{"nodes": [0, 5]}')[0] == 200
        asked, most = asked + 1, max(most, memory(process))
        time.sleep(0.01)
        if end is None and not found.empty():
            end = time.perf_counter() + AFTER
    statuses = dict(sorted(Counter(found.get()).items()))
    child.join()
    return Seen(name, clients, statuses, end - began - AFTER, slowest, (answered, asked), most - idle)


@contextmanager
def service(ticket: str | None) -> Iterator[tuple[Place, int]]:
    """A service of its own, its address and its process."""
    small = [sys.executable, "-c", SMALL]
    own = [sys.executable, "-m", "fastglt", "serve", str(ticket), "--port", "0", "--threads", "1"]
    with subprocess.Popen(own if ticket else small, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if "http://" not in line:
                sys.exit("the service has not started")
            url = urlsplit("http://" + line.partition("http://")[2].split()[0])
            place = str(url.hostname), int(url.port or 80)
            for _ in range(20):
                get(place, "/predict", '{"nodes": [0, 5]}')
            yield place, process.pid
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ticket", nargs="?")
    parser.add_argument("--seconds", type=float, default=15.0, help="that clients wait at most")
    parser.add_argument("--share", type=float, default=1.0, help="of the clients")
    parser.add_argument("--first", type=int, default=len(ATTACKS), help="attacks")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with service(given.ticket) as (place, process):
        found = [
            suffer(place, process, name, max(1, round(given.share * clients)), given.seconds)
            for name, (clients, _) in list(ATTACKS.items())[: given.first]
        ]
    if given.json:
        print(json.dumps([vars(one) for one in found]))
    else:
        show(found)
    sys.exit(any(one.healthz >= LATENCY or one.memory > MEMORY for one in found))


def show(found: list[Seen]) -> None:
    table = Table("attack", "clients", "they got", "s", "max /healthz", "honest answers", "max memory")
    for one in found:
        statuses = ", ".join(f"{status}: {count}" for status, count in one.statuses.items())
        honest = f"{one.honest[0]} of {one.honest[1]}"
        numbers = (f"{one.seconds:.1f}", f"{one.healthz:.3f} s", honest, f"+{one.memory:.0f} MB")
        table.add_row(one.attack, str(one.clients), statuses, *numbers)
    Console().print(table)


if __name__ == "__main__":
    main()
