"""`fastglt serve`: killed while it answers and started again at once, it gives the same answers."""

import contextlib
import http.client
import json
import threading
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from tests.kills.processes import ENOUGH, Victim

_NEW = {"new_nodes": {"features": {"indices": [[3, 9]], "values": [[1.0, 0.5]]}, "edges": [[300, 4]]}}
_QUESTIONS: tuple[Any, ...] = ({"nodes": [0, 1, 299]}, {"nodes": list(range(0, 300, 7))}, _NEW)
_LOST = (OSError, http.client.HTTPException)  # what a client sees of a kill


@dataclass
class Service:
    """A ticket that is served on one port, over and over."""

    ticket: Path
    folder: Path

    @cached_property
    def undisturbed(self) -> list[Any]:
        """Its answers if nobody kills it."""
        with self._started(0, forked=False) as (_, port):
            return [_ask(port, question) for question in _QUESTIONS]

    def chain(self, name: str, kills: int, rng: Random) -> tuple[int, list[str]]:
        """Kill it so many times, on the same port; how many there were, and which answers were other ones."""
        expected, port, flaws = self.undisturbed, 0, list[str]()
        for done in range(min(kills, 10)):
            with self._started(port, forked=done > 0) as (victim, port):
                first = [_ask(port, question) for question in _QUESTIONS]
                threads = [threading.Thread(target=_insist, args=(port, expected, flaws)) for _ in range(3)]
                for thread in threads:
                    thread.start()
                time.sleep(rng.uniform(0, 0.3))
                victim.kill()
                for thread in threads:
                    thread.join()
                if first != expected or flaws or _complaints(victim.said[1]):
                    return done + 1, [*flaws, f"{first!r:.600} {victim.said[1][-600:]}"]
        with self._started(port, forked=False) as (_, port):
            same = [_ask(port, question) for question in _QUESTIONS] == expected
        return min(kills, 10), [] if same else ["the last answers differ"]

    @contextlib.contextmanager
    def _started(self, port: int, *, forked: bool) -> Any:
        self.folder.mkdir(parents=True, exist_ok=True)
        words = ("-m", "fastglt", "serve", str(self.ticket), "--port", str(port), "--threads", "1")
        victim = Victim(words, self.folder, forked=forked)
        try:
            deadline = time.monotonic() + ENOUGH
            while " at http://" not in victim.said[0]:
                assert not victim.has_ended, victim.said[1]
                assert time.monotonic() < deadline, "it never served"
                time.sleep(0.02)
            yield victim, urlsplit(victim.said[0].split(" at ")[1].split()[0]).port
        finally:
            victim.close()


def _complaints(said: str) -> list[str]:
    """What it said itself; Python's tracker of semaphores warns of every process that was killed."""
    theirs = ("resource_tracker", "warnings.warn(")
    return [line for line in said.splitlines() if not any(word in line for word in theirs)]


def _ask(port: int, question: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", "/predict", json.dumps(question), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def _insist(port: int, expected: list[Any], flaws: list[str]) -> None:
    """Ask until nobody answers; whatever is answered has to be right."""
    with contextlib.suppress(*_LOST):
        while True:
            for question, answer in zip(_QUESTIONS, expected, strict=True):
                found = _ask(port, question)
                if found != answer:
                    flaws.append(f"{question!r:.100} got {found!r:.300}")
                    return
