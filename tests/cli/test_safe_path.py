"""No command runs what lies in the current folder: a file there can have the name of any module."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastglt.bench import memory
from fastglt.system.process import safe_path
from tests.bench.conftest import tiny_experiment
from tests.cli.conftest import SHORT, TINY, Cli

HOSTILE = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\nraise SystemExit('hostile')\n"


@pytest.fixture
def hostile_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files for modules that we import, that these import, and that nobody has."""
    for name in ("torch", "numpy", "random", "json", "numba", "socket", "signal", "typer", "pandas", "triton"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return tmp_path


def test_compare_runs_nothing_of_the_current_folder(hostile_folder: Path) -> None:
    """Neither the command nor the server of its processes nor these."""
    choices = ("--methods", "oneshot", "--seeds", "0", "--jobs", "1", "--out", "runs", "--quiet", "--json")
    command = [sys.executable, "-m", "fastglt", "compare", "--dataset", TINY, *SHORT, *choices]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(hostile_folder.glob("*.ran"))


@pytest.mark.usefixtures("hostile_folder")
def test_neither_do_processes_that_are_measured() -> None:
    job = memory.pyg_job(tiny_experiment().prepare(), "edge_index")
    assert memory.in_own_process({"side": "pyg", **job}) > 0
    assert not list(Path().glob("*.ran"))


@pytest.mark.parametrize("before", [None, "0", "yes"])
def test_the_variable_is_put_back(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    if before is None:
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with safe_path():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ.get("PYTHONSAFEPATH") == before


def test_settings_by_which_numba_loads_code_from_elsewhere_are_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".numba_config.yaml").write_text("cache_dir: here\n")
    refused = cli("methods")
    assert refused.code == 2
    assert f"(got '{tmp_path}/.numba_config.yaml'); set NUMBA_" in refused.err
