"""Which commands are killed, how often, and what is counted."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tests.kills import GRAPH
from tests.kills.commands import Command
from tests.kills.picture import STORE
from tests.kills.service import Service

_SHORT = "--hidden 32 --oneshot-epochs 5 --denoise-epochs 25 --interval 5 --checkpoint-every 0 --quiet --json"
_COMMON = ("--dataset", GRAPH, *_SHORT.split(), "--threads", "1", "--store", STORE, "--out", "run")
_COMPARE = ("compare", "--methods", "fastglt,random", "--seeds", "0-3", "--jobs", "2")
_EXTREME = ("extreme", "--weight-sparsity", "0.5,0.9", "--seeds", "0-1", "--fresh-seeds", "2", "--rule", "plain")
# ResGCN has norms, whose buffers have to go on too.
_FIND = {"gcn": (), "gin": (), "gat": (), "resgcn": ("--model-option", "num_layers=3")}
_PLAIN = ("gin", "gat")  # without compiled kernels, which take longer to load than all the rest
SHARES = {  # of all kills
    "find gcn": 0.14,
    "find gin": 0.12,
    "find gat": 0.12,
    "find resgcn": 0.12,
    "own PyG model": 0.12,
    "compare": 0.14,
    "extreme": 0.10,
    "serve": 0.14,
}


class Subject(Protocol):
    """Something that is killed and started again."""

    def chain(self, name: str, kills: int, rng: Random) -> tuple[int, list[str]]:
        """Bring it to its end with at most so many kills; gives how many, and what is wrong."""


@dataclass
class Tally:
    """What has been done to one subject."""

    kills: int = 0
    chains: int = 0
    seconds: float = 0.0
    flaws: list[str] = field(default_factory=list)


def subjects(folder: Path) -> dict[str, Subject]:
    """All of them, each with a folder of its own."""
    found: dict[str, Subject] = {}
    for model, more in _FIND.items():
        words = ("-m", "fastglt", "find", "--model", model, *more, *_COMMON)
        variables = {"FASTGLT_BACKEND": "plain"} if model in _PLAIN else {}
        found[f"find {model}"] = Command(words, folder / model, variables=variables)
    found["own PyG model"] = Command(("-m", "tests.kills.user_model", "run"), folder / "own")
    for words in (_COMPARE, _EXTREME):
        found[words[0]] = Command(("-m", "fastglt", *words, *_COMMON), folder / words[0], spread=1, helpers=True)
    ticket = folder / "gcn" / "undisturbed" / "here" / "run" / "ticket.safetensors"
    found["serve"] = Service(ticket, folder / "serve")
    return found


def kill_all(kills: int, folder: Path, *, jobs: int, seed: int, tell: Callable[[str], None]) -> dict[str, Tally]:
    """Kill every subject as often as its share says, so many at a time; each chain is told of as it ends."""
    made, began, lock = subjects(folder), time.monotonic(), threading.Lock()
    tallies = {name: Tally() for name in made}
    gcn = made["find gcn"]
    assert isinstance(gcn, Command)
    assert gcn.undisturbed  # whose ticket is served

    def work(name: str) -> None:
        tally, wanted = tallies[name], max(1, round(kills * SHARES[name]))
        while tally.kills < wanted and len(tally.flaws) < 3:
            since, number = time.monotonic(), tally.chains
            done, flaws = made[name].chain(str(number), wanted - tally.kills, Random(f"{seed} {name} {number}"))
            with lock:
                tally.kills, tally.chains = tally.kills + done, number + 1
                tally.seconds += time.monotonic() - since
                tally.flaws += flaws
                total = sum(tally.kills for tally in tallies.values())
                result = "; ".join(flaws) or "as if undisturbed"
                tell(f"{name}: {done} kills, {result}  ({total} of {kills} after {time.monotonic() - began:.0f} s)")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, sorted(made, key=lambda name: name not in ("compare", "extreme"))))
    return tallies
