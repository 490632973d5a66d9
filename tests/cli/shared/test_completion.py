"""Tab completion knows every name, and imports nothing slow for it."""

import os
import subprocess
import sys

import pytest

from fastglt import models as model_package
from fastglt.cli.shared.completion import METHODS, MODELS, datasets
from fastglt.data.named import NAMED
from fastglt.methods import METHODS as KNOWN
from tests.cli.conftest import Cli

COMPLETE = """
import sys
from fastglt.__main__ import (main)
sys.argv = ["fastglt"]
try:
    main()
finally:
    assert "torch" not in sys.modules
"""


def test_every_name_is_known() -> None:
    assert {kind.name for kind in KNOWN.values() if kind.__module__.startswith("fastglt.")} == set(METHODS)
    ours = {name for name, kind in model_package.BACKBONES.items() if kind.__module__.startswith("fastglt.")}
    assert ours == set(MODELS)
    assert datasets() == list(NAMED)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fastglt find --dataset co", ["cora", "coauthor-cs", "coauthor-physics"]),
        ("fastglt compare --methods fastglt,or", []),
        ("fastglt compare --methods fastglt,on", ["fastglt,oneshot"]),
        ("fastglt evaluate --graph dig", ["digits"]),
        ("fastglt find --model ga", ["gat"]),
        ("fastglt ev", ["evaluate"]),
    ],
)
def test_a_shell_gets_what_fits(cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, expected: list[str]) -> None:
    monkeypatch.setenv("_FASTGLT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    result = cli()
    assert (result.code, result.out.split()) == (0, expected)


def test_nothing_slow_is_imported() -> None:
    words = {"_FASTGLT_COMPLETE": "complete_bash", "COMP_WORDS": "fastglt find --dataset co", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", COMPLETE]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["cora"]), done.stderr
