"""Load on `fastglt serve` from a second process on loopback, for a bounded time.

    python benchmarks/serve_load.py runs/a --seconds 5 --clients 8

starts the service with the ticket, then keeps so many clients busy, each with one connection and one question at a
time, and prints for each kind of question requests per second, p50 and p99 of their latency, and how often each
status came. The last row has more clients than the service takes at a time (--queue): whoever is too many gets 503.
Afterwards SIGTERM must end the service with exit code 0.
"""

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

QUEUE = 32
Ask = Callable[[random.Random], dict[str, Any]]


@dataclass(frozen=True)
class Load:
    """What clients did and what they got."""

    kind: str
    clients: int
    rate: float  # answers with 200 a second
    p50_ms: float  # of these
    p99_ms: float
    statuses: dict[str, int]  # "lost" is a connection without an answer


def few_nodes(about: dict[str, Any]) -> Ask:
    """Ten nodes of the graph."""
    return lambda draw: {"nodes": [draw.randrange(about["nodes"]) for _ in range(10)], "probabilities": True}


def new_node(about: dict[str, Any]) -> Ask:
    """A new node with twenty features and three edges."""

    def ask(draw: random.Random) -> dict[str, Any]:
        width, nodes = about["features"], about["nodes"]
        indices = draw.sample(range(width), min(20, width))
        edges = [[nodes, draw.randrange(nodes)] for _ in range(3)]
        features = {"indices": [indices], "values": [[1 / len(indices)] * len(indices)]}
        return {"new_nodes": {"features": features, "edges": edges}}

    return ask


async def get(host: str, port: int, path: str) -> Any:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return json.loads(answer.partition(b"\r\n\r\n")[2])


async def client(host: str, port: int, ask: Ask, seed: int, end: float, seen: list[tuple[str, float]]) -> None:
    """One question after the other on one connection; a new one if it was closed."""
    draw, streams = random.Random(seed), None
    while time.perf_counter() < end:
        body = json.dumps(ask(draw)).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        began = time.perf_counter()
        try:
            streams = streams or await asyncio.open_connection(host, port)
            streams[1].write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            status, closes = await read_answer(streams[0])
        except (OSError, asyncio.IncompleteReadError):
            status, closes = "lost", True
        seen.append((status, time.perf_counter() - began))
        if closes and streams:
            streams[1].close()
            streams = None
        if status == "503":
            await asyncio.sleep(0.05)  # sooner than Retry-After asks for: it is load
    if streams:
        streams[1].close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[str, bool]:
    """Its status, and whether it ends the connection."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length:")[2].split()[0])
    await reader.readexactly(length)
    return head.split()[1], "connection: close" in head


async def load(host: str, port: int, kind: str, ask: Ask, clients: int, seconds: float) -> Load:
    seen: list[tuple[str, float]] = []
    began = time.perf_counter()
    end = began + seconds
    await asyncio.gather(*(client(host, port, ask, seed, end, seen) for seed in range(clients)))
    took = time.perf_counter() - began
    spent = [1000 * value for status, value in seen if status == "200"]
    cuts = quantiles(spent, n=100) if len(spent) > 1 else [float("nan")] * 99
    statuses = dict(sorted(Counter(status for status, _ in seen).items()))
    return Load(kind, clients, len(spent) / took, cuts[49], cuts[98], statuses)


async def measure(address: str, clients: int, seconds: float) -> list[Load]:
    place = urlsplit(address)
    host, port = str(place.hostname), int(place.port or 80)
    about = await get(host, port, "/")
    await load(host, port, "warm-up", few_nodes(about), 2, 0.5)
    await load(host, port, "warm-up", new_node(about), 2, 0.5)
    return [
        await load(host, port, "10 nodes", few_nodes(about), 1, seconds),
        await load(host, port, "10 nodes", few_nodes(about), clients, seconds),
        await load(host, port, "a new node", new_node(about), 1, seconds),
        await load(host, port, "a new node", new_node(about), clients, seconds),
        await load(host, port, "a new node", new_node(about), 4 * QUEUE, seconds),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ticket")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each of five rows")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    command = [sys.executable, "-m", "fastglt", "serve", given.ticket, "--port", "0"]
    command += ["--threads", str(given.threads), "--queue", str(QUEUE)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        try:
            line = service.stdout.readline()
            if " at " not in line:
                sys.exit("the service has not started")
            found = asyncio.run(measure(line.split(" at ")[1].split()[0], given.clients, given.seconds))
            service.send_signal(signal.SIGTERM)
            code = service.wait(30)
        finally:
            service.kill()
    if given.json:
        print(json.dumps({"loads": [vars(one) for one in found], "queue": QUEUE, "exit_code": code}))
    else:
        show(found, code)


def show(found: list[Load], code: int) -> None:
    table = Table("question", "clients", "requests/s", "p50 ms", "p99 ms", "statuses")
    for one in found:
        statuses = ", ".join(f"{status}: {count}" for status, count in one.statuses.items())
        numbers = (f"{one.rate:.0f}", f"{one.p50_ms:.2f}", f"{one.p99_ms:.2f}")
        table.add_row(one.kind, str(one.clients), *numbers, statuses)
    Console().print(table)
    print(f"at most {QUEUE} requests under way; exit code after SIGTERM: {code}")


if __name__ == "__main__":
    main()
