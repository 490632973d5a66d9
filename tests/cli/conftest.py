"""Run the command line in this process, as a user would call it."""

import json
import sys
from collections.abc import Callable
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
