"""Run the command line in this process, as a user would call it."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

TINY = "synthetic:nodes=80,edges=200,features=16,classes=3"
SHORT = ("--hidden", "16", "--oneshot-epochs", "4", "--denoise-epochs", "12", "--interval", "3", "--threads", "1")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]
_made_once = cache(get_command)  # out of the signatures of all commands, whichever one is called


@pytest.fixture(autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results store of the test's own: nothing is taken from another's."""
    path = tmp_path_factory.mktemp("store") / "results.sqlite"
    monkeypatch.setenv("FASTGLT_STORE", str(path))
    return path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Cli:
    from fastglt.cli import main

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("typer.main.get_command", _made_once)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["fastglt", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capfd.readouterr()
        return Result(int(stopped.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture
def find(cli: Cli) -> Cli:
    """`fastglt find` on a tiny graph with a short budget."""

    def run(*arguments: object) -> Result:
        return cli("find", "--dataset", TINY, *SHORT, *arguments)

    return run


@pytest.fixture
def weighted(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A finished search of a network that reads edge weights, on A/w.npz; B/w.npz has other weights."""
    from fastglt.models import BACKBONES
    from tests.toy_data import per_edge, toy_file

    place, known = "torch_geometric.nn.models:GCN", set(BACKBONES)
    monkeypatch.chdir(tmp_path)
    for folder, weight in (("A", per_edge()), ("B", 0.01 * per_edge(seed=6))):
        toy_file(tmp_path / folder / "w.npz", edge_weight=weight)
    found = cli("find", "--dataset", "A/w.npz", "--model", place, *SHORT, "--quiet", "--out", "found")
    assert found.code == 0, found.err
    yield tmp_path / "found"
    for name in set(BACKBONES) - known:
        del BACKBONES[name]
