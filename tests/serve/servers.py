"""Small predictors, and real servers for them in a thread of the test's process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, ClassVar
from urllib.parse import urlsplit

import httpx2 as httpx
import torch
from starlette.types import ASGIApp
from torch import Tensor

from fastglt.deploy import Predictor
from fastglt.graphs.features import Features
from fastglt.models import GCN
from fastglt.serve.server import address, listen, make_server
from tests.helpers import house, randn

NODES, FEATURES, CLASSES = 7, 4, 3
NEW = {"new_nodes": {"features": [[1.0, 0.0, 0.0, 2.0]], "edges": [[7, 0]]}}  # a question that is computed
ENOUGH = 20.0  # seconds that no test should need


def small_predictor() -> Predictor:
    """A GCN with drawn weights on the house."""
    network = GCN(FEATURES, 5, CLASSES, seed=1).eval().requires_grad_(False)
    program = network.program()
    assert program is not None
    x = Features(randn(NODES, FEATURES, seed=2))
    return Predictor(network=network, graph=house(), x=x, score=None, program=program, layouts=("dense",))


class Slow(Predictor):
    """Takes its time for new nodes, and notes what it was asked."""

    pause: ClassVar[float] = 0.2
    asked: ClassVar[list[list[int]]] = []

    def logits(self, nodes: Any = None) -> Tensor:
        if nodes is not None:
            self.asked.append(torch.as_tensor(nodes).tolist())
            time.sleep(self.pause)
        return super().logits(nodes)


def slow_predictor(seconds: float) -> Slow:
    """A predictor with its own pause and its own notes."""
    small = small_predictor()
    kind: type[Slow] = type("OwnSlow", (Slow,), {"pause": seconds, "asked": []})
    return kind(**{field.name: getattr(small, field.name) for field in fields(small)})


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of a real server on loopback."""
    listening, started = listen("127.0.0.1", 0), threading.Event()
    server = make_server(app, started.set, log_level="critical")
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        assert started.wait(ENOUGH)
        yield address(listening)
    finally:
        server.should_exit = True
        thread.join(ENOUGH)
        listening.close()
    assert not thread.is_alive()


def connect(base: str) -> socket.socket:
    """A connection of one's own."""
    place = urlsplit(base)
    return socket.create_connection((place.hostname, place.port), timeout=ENOUGH)


def read_all(connection: socket.socket) -> str:
    """Until the server closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts).decode()


def metric(base: str, name: str) -> float:
    """One number from the service's metrics; 0 if it is not there yet."""
    for line in httpx.get(f"{base}/metrics").text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[-1])
    return 0.0


def wait_until(base: str, name: str, value: float) -> None:
    """Until a metric has reached a value."""
    end = time.monotonic() + ENOUGH
    while metric(base, name) < value:
        assert time.monotonic() < end, f"{name} never reached {value}"
        time.sleep(0.01)


def wait_until_refused(base: str) -> None:
    """Until nobody listens there any more."""
    end = time.monotonic() + ENOUGH
    while True:
        try:
            connect(base).close()
        except ConnectionRefusedError:
            return
        assert time.monotonic() < end, f"{base} still takes connections"
        time.sleep(0.01)
