"""`fastglt tune`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastglt.kernels import Table, tune
from tests.cli.conftest import Cli


@pytest.fixture(autouse=True)
def small_and_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Small matrices, and a cache of the test's own."""
    for name, small in (("_ROWS", 60), ("_FEATURES", 20), ("_WIDTH", 32), ("_REPEATS", 1)):
        monkeypatch.setattr(tune, name, small)
    monkeypatch.setenv("FASTGLT_CACHE", str(tmp_path / "cache"))
    Table.of_machine.cache_clear()
    yield
    Table.of_machine.cache_clear()


def test_keeps_what_it_measured_until_it_is_told_to_forget(cli: Cli, tmp_path: Path) -> None:
    answer = cli("tune", "--threads", "1", "--json")
    kept = json.loads((tmp_path / "cache" / "kernels.json").read_text())
    assert answer.document["table"] == kept
    assert {result["kernel"] for result in answer.document["measured"]} == set(kept)
    assert Table.of_machine().to_dict() == kept
    assert cli("tune", "--show", "--json").document == {"table": kept, "measured": []}
    assert "removed" in cli("tune", "--reset").err
    assert Table.of_machine() == Table()
    assert "nothing to forget" in cli("tune", "--reset").err


def test_a_forced_back_end_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTGLT_BACKEND", "plain")
    assert "FASTGLT_BACKEND=plain serves every kernel" in cli("tune", "--show").err
    monkeypatch.setenv("FASTGLT_BACKEND", "plane")
    result = cli("tune", "--show")
    assert (result.code, "did you mean 'plain'" in result.err) == (2, True)


def test_prints_times_and_the_table(cli: Cli) -> None:
    out = cli("tune", "--threads", "1").out
    for part in ("kernel", "chosen", "numba", "features:"):
        assert part in out


def test_a_busy_machine_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (3.04, 0.0, 0.0))
    busy = cli("tune", "--threads", 1)
    assert "warning: the machine is busy (load average 3.0 on 4 cores)" in busy.err
    monkeypatch.setattr(os, "getloadavg", lambda: (0.9, 9.0, 9.0))
    assert "warning" not in cli("tune", "--threads", 1).err
