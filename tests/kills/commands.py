"""Commands that compute: killed again and again on their way, they come to the same end."""

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from tests.kills.picture import differences, picture
from tests.kills.processes import ENOUGH, Victim

_STARTS = 60  # of one chain, at most
_NEW = 0.1  # of all starts are processes of their own; the others have imported everything before
# What a kill may wait for: a phase that ends, the ticket, the metrics, the store; and not to wait for anything.
_EVENTS = ("*.done", "*/ticket.safetensors", "*/metrics.json", "*/history.csv", "*.sqlite*", "*.part")


@dataclass
class Command:
    """A command with a folder for each time that it is brought to its end, and kills on the way there."""

    words: tuple[str, ...]
    folder: Path  # of all its folders
    spread: float = 0.4  # seconds, at most, from the first file that is written to the kill
    helpers: bool = False  # it starts processes, which are killed as well
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment

    @cached_property
    def undisturbed(self) -> dict[str, Any]:
        """What it leaves if nobody kills it."""
        place = self._place("undisturbed")
        victim = Victim(self.words, place, variables=self.variables)
        try:
            code = victim.process.wait(ENOUGH)
            assert code == 0, victim.said[1]
            return picture(place, victim.said[0])
        finally:
            victim.close()

    def chain(self, name: str, kills: int, rng: Random) -> tuple[int, list[str]]:
        """Start it until it ends, with at most so many kills; how many there were, and what was wrong then."""
        place, done = self._place(name), 0
        for _ in range(_STARTS):
            forked = self.words[0] == "-m" and rng.random() > _NEW
            victim = Victim(self.words, place, variables=self.variables, forked=forked)
            try:
                now = self._disturb(victim, place, kills - done, rng)
                done += now
                code, survivors = victim.process.wait(ENOUGH), victim.survivors()
                printed, said = victim.said
            finally:
                victim.close()
            if survivors:
                return done, [f"{len(survivors)} processes outlived the command"]
            if code == 0:
                flaws = differences(self.undisturbed, picture(place, printed))
                if not flaws:
                    shutil.rmtree(place)
                return done, flaws
            told = any(line.startswith(("failed: ", "error: ")) for line in said.splitlines())
            if not now or "Traceback" in said or (code > 0 and not told):
                return done, [f"it failed with exit code {code} after {now} kills: {said[-2000:]}"]
        return done, [f"it did not end after {_STARTS} starts"]

    def _disturb(self, victim: Victim, place: Path, kills: int, rng: Random) -> int:
        """Kill it, or at first some of its processes, at moments of which some are of interest."""
        done = 0
        while done < kills and self._wait(victim, place, rng):
            whom = self._whom(victim, rng)
            victim.kill(whom)
            done += 1
            if victim.has_ended:
                break
        return done

    def _whom(self, victim: Victim, rng: Random) -> list[int]:
        """The command, all of its processes, or one of those that it has started."""
        alive, own = victim.alive, victim.process.pid
        others = [number for number in alive if number != own]
        deed = rng.random()
        return [own] if not others or deed < 0.2 else alive if deed < 0.35 else [rng.choice(others)]

    def _wait(self, victim: Victim, place: Path, rng: Random) -> bool:
        """Until it is time for a kill; whether there is still somebody to be killed."""
        before, event = _files(place), rng.choice((*_EVENTS, *[None] * 2 * len(_EVENTS)))
        deadline = time.monotonic() + (rng.uniform(0, 3) if rng.random() < 0.1 else ENOUGH)
        while time.monotonic() < deadline:
            if victim.has_ended:
                return False
            now = _files(place)
            if any(fnmatch(name, event) for name in now.keys() - before) if event else now != before:
                time.sleep(rng.uniform(0, 0.02 if event else self.spread))
                return not victim.has_ended
            time.sleep(0.004)
        return True

    def _place(self, name: str) -> Path:
        place = self.folder / name / "here"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place


def _files(folder: Path) -> dict[str, int]:
    """Which files there are, and when they were written."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with contextlib.suppress(FileNotFoundError):
                found[path] = os.stat(path).st_mtime_ns
    return found
