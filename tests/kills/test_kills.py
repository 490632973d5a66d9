"""The long run can fail: what is lost, twice there or other than it was is noticed. Kills of quick scripts.

Real commands are killed in tests/cli/test_faults.py, and 500 times by `make kills`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from fastglt.runs.store import Entry, Store, key_of
from tests.kills.commands import Command
from tests.kills.picture import STORE, differences, picture
from tests.kills.processes import Victim

# Ten steps, each of which is kept in a file before the next begins; {} keeps the number of a step.
STEPS = """
import os, time
from pathlib import Path
place = Path("steps")
for step in range(int(place.read_text() or 0) if place.exists() else 0, 10):
    time.sleep(0.01)
    {}
Path("metrics.json").write_text('{{"seed": 0, "search_seconds": %f}}' % time.time())
print("{{}}")
"""
KEEPS = "Path('new').write_text(str(step + 1)); os.replace('new', 'steps')"
COUNTS_TWICE = f"open('history.csv', 'a').write(f'{{step}},'); time.sleep(0.05); {KEEPS}"
HELPERS = """
import subprocess, sys, time
from pathlib import Path
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(HOW_LONG)"])
Path("helped").touch()
sys.exit("failed: the helper" if helper.wait() else 0)
"""


def test_what_goes_on_where_it_was_is_found_equal(tmp_path: Path) -> None:
    command = Command(("-S", "-c", STEPS.format(KEEPS)), tmp_path, spread=0.05)
    results = [command.chain(str(number), 3, Random(number)) for number in range(4)]
    assert [flaws for _, flaws in results] == [[]] * 4
    assert sum(kills for kills, _ in results) > 4
    assert not (tmp_path / "0" / "here").exists(), "what is in order is removed"


def test_what_is_done_twice_is_noticed(tmp_path: Path) -> None:
    command = Command(("-S", "-c", STEPS.format(COUNTS_TWICE)), tmp_path, spread=0.05)
    chains = (command.chain(str(number), 5, Random(number))[1] for number in range(20))
    assert any("history.csv" in flaw for flaws in chains for flaw in flaws)


def test_one_of_the_processes_that_a_command_starts_is_killed_too(tmp_path: Path) -> None:
    command = Command(("-S", "-c", HELPERS.replace("HOW_LONG", "0.1")), tmp_path, spread=0.01, helpers=True)
    results = [command.chain(str(number), 2, Random(number)) for number in range(3)]
    assert [flaws for _, flaws in results] == [[]] * 3
    assert sum(kills for kills, _ in results) > 1


def test_a_command_that_fails_though_nobody_kills_it_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    kills, flaws = Command(("-S", "-c", "import sys; sys.exit('error: no')"), tmp_path).chain("0", 0, Random(0))
    assert (kills, flaws) == (0, ["it failed with exit code 1 after 0 kills: error: no\n"])


def test_processes_that_outlive_their_command_are_found(tmp_path: Path) -> None:
    victim = Victim(("-S", "-c", HELPERS.replace("HOW_LONG", "60").replace("helper.wait()", "0")), tmp_path)
    try:
        assert victim.process.wait(30) == 0
        (helper,) = victim.alive
        assert helper != victim.process.pid
    finally:
        victim.close()
    assert not victim.alive


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a command might leave."""
    place = tmp_path / "left"
    place.mkdir()
    (place / "ticket.safetensors").write_bytes(b"ticket")
    (place / "metrics.json").write_text('{"seed": 0, "dense_seconds": 1.5, "val": 0.5}')
    store = Store(place / STORE)
    for seed in (0, 1):
        settings = {"dataset": "cora", "seed": seed}
        store.record(Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics={}))
    return place


def twice(place: Path) -> None:
    settings = {"dataset": "cora", "seed": 1}
    entry = Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics={})
    Store(place / STORE).record(entry)


def lost(place: Path) -> None:
    (place / STORE).unlink()
    Store(place / STORE)


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a ticket": (lambda place: (place / "ticket.safetensors").write_bytes(b"other"), "ticket.safetensors: "),
    "metrics": (lambda place: (place / "metrics.json").write_text('{"val": 0.25}'), "metrics.json: "),
    "a file more": (lambda place: (place / ".ticket.part").touch(), "files: "),
    "a row twice": (twice, "rows: "),
    "rows lost": (lost, "rows: "),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_seen(left: Path, change: str) -> None:
    before = picture(left, '{"a": {"search_seconds": 1}}')
    deed, told = CHANGES[change]
    deed(left)
    (flaw,) = differences(before, picture(left, '{"a": {"search_seconds": 2}}'))
    assert flaw.startswith(told)


def test_times_and_places_do_not_count(left: Path, tmp_path: Path) -> None:
    before = picture(left, "")
    shutil.copytree(left, tmp_path / "copy")
    (tmp_path / "copy" / "metrics.json").write_text('{"seed": 0, "dense_seconds": 99, "val": 0.5}')
    assert differences(before, picture(tmp_path / "copy", "")) == []
