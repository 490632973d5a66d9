"""`fastglt.compare` does what `fastglt compare` does."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fastglt
from fastglt.cli import main
from fastglt.runs.store import Store
from tests.conftest import OwnModule
from tests.processes import Process, run
from tests.runs.examples import TINY

SHORT: dict[str, Any] = {
    "hidden": 8,
    "budget": {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2},
    "jobs": 2,
}
FLAGS = ("--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4", "--interval", "2", "--jobs", "2")
METHODS = "fastglt,fastglt[swap_fraction=0.1],fastglt[start=random,ramp=1]"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and store by default are below the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FASTGLT_STORE", raising=False)


def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: object
) -> tuple[str, str]:
    monkeypatch.setattr(sys, "argv", ["fastglt", *map(str, arguments)])
    capfd.readouterr()
    with pytest.raises(SystemExit):
        main()
    captured = capfd.readouterr()
    return captured.out, captured.err


def test_the_command_finds_all_finished_and_prints_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Three variants of one method and another one; nothing is printed unless somebody asks."""
    found = fastglt.compare(TINY, methods=[*_variants(), "random"], seeds=range(2), **SHORT)
    assert capfd.readouterr() == ("", "")
    assert (found.failures, len(found.rows)) == ([], 8)
    ask = ("compare", "--dataset", TINY, *FLAGS, "--methods", METHODS + ",random", "--seeds", "0,1")
    out, err = command(monkeypatch, capfd, *ask)
    assert (out, err) == (f"{found}\n", "10 of 10 runs are finished already\n")
    out, _ = command(monkeypatch, capfd, *ask, "--json", "--csv", "runs.csv")
    assert json.loads(out) == found.document()
    assert Path("runs.csv").read_text() == found.csv()
    assert sorted(path.name for path in Path("runs").iterdir()) == ["compare-synthetic-gcn", "results.sqlite"]


def _variants() -> list[str]:
    return ["fastglt", "fastglt[swap_fraction=0.1]", "fastglt[start=random,ramp=1]"]


def test_a_variant_has_its_label_everywhere_and_shares_dense_twins() -> None:
    found = fastglt.compare(TINY, methods=METHODS, options={"fastglt": {"ramp": 0.5}}, seeds=[0, 1], **SHORT)
    assert [cell["method"] for cell in found.cells()] == _variants()
    assert [cell["options"]["ramp"] for cell in found.cells()] == [0.5, 0.5, 1.0]
    assert [cell["options"]["swap_fraction"] for cell in found.cells()] == [0.3, 0.1, 0.3]
    assert [cell["options"]["start"] for cell in found.cells()] == ["oneshot", "oneshot", "random"]
    assert [row["method"] for row in found.rows] == _variants() * 2
    assert all(f"\n{label} " in str(found) for label in _variants())
    assert '"fastglt[start=random,ramp=1]",0.2' in found.csv()
    folders = sorted(path.name.rpartition("-")[0] for path in Path("runs/compare-synthetic-gcn").iterdir())
    assert folders == ["dense-s0", "dense-s1", *3 * ["fastglt-g20-w90-s0"], *3 * ["fastglt-g20-w90-s1"]]
    methods = {row["method"] for row in Store(Path("runs/results.sqlite")).rows()}
    assert methods == {"fastglt", None}, "the store knows methods and their options"


def test_a_variant_has_the_key_of_the_method_with_that_option(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fastglt.compare(TINY, methods="fastglt[ramp=1]", seeds=[0], **SHORT)
    ask = (
        "compare",
        "--dataset",
        TINY,
        *FLAGS,
        "--methods",
        "fastglt",
        "--option",
        "fastglt.ramp=1",
        "--seeds",
        "0",
    )
    assert command(monkeypatch, capfd, *ask)[1] == "2 of 2 runs are finished already\n"


def test_several_splits_take_what_comparisons_of_one_have_made(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the store, whichever folder it is in."""
    ones = [
        fastglt.compare(
            TINY, methods="random", seeds=[0], split_seed=split, out=Path(f"one-{split}").absolute(), **SHORT
        )
        for split in (0, 2)
    ]
    ask = ("compare", "--dataset", TINY, *FLAGS, "--methods", "random", "--seeds", "0", "--split-seeds", "0,2")
    out, err = command(monkeypatch, capfd, *ask, "--json")
    assert err.startswith("4 of 4 runs are reused from the store 'runs/results.sqlite'")
    (cell,) = json.loads(out)["cells"]
    for row, one in zip(cell["runs"], ones, strict=True):
        assert row.pop("split_seed") == one.document()["split_seed"]
        assert row == one.rows[0]
    assert cell["verdicts"]["isolated"]["split_seeds"] == [0, 2]
    assert cell["runs"][0]["dense_test"] != cell["runs"][1]["dense_test"], "each split has its own dense network"


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"split_seeds": [0, 1], "split_seed": 3}, r"split_seeds must come without split_seed \(got 3\)"),
        ({"split_seeds": "0-"}, r"split_seeds must be as in 0-4 or 0,2,5 \(got '0-'\)"),
        ({"split_seeds": []}, r"split_seeds must name at least one \(got \[\]\)"),
    ],
)
def test_split_seeds_that_are_none_are_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(fastglt.InputError, match=message):
        fastglt.compare(TINY, methods="random", seeds=[0], **choices, **SHORT)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "methods", ["fastglt,fastglt[ramp=0.8]", "fastglt[ramp=1,decay=2],fastglt[decay=2.0,ramp=1.0]"]
)
def test_two_variants_with_equal_options_are_refused(methods: str) -> None:
    with pytest.raises(fastglt.InputError, match="methods must differ in name or options"):
        fastglt.compare(TINY, methods=methods, seeds=[0], **SHORT)
    assert not Path("runs").exists()


BREAKS = """
from fastglt.methods.random import RandomPruning

class Breaks(RandomPruning):
    name = "breaks"
    summary = "for tests"

    def after_epoch(self, training):
        if training.seed == 1:
            raise ValueError("boom")
"""


def test_failures_do_not_raise(own_module: OwnModule) -> None:
    own_module("breaks_in_python", BREAKS)
    lines: list[str] = []
    found = fastglt.compare(TINY, methods=["breaks_in_python:Breaks"], seeds=[0, 1], **SHORT, progress=lines.append)
    (failure,) = found.failures
    assert (failure["run"], failure["method"], failure["seed"]) == ("breaks g20 w90 seed 1", "breaks", 1)
    assert failure["reason"].startswith("ValueError: boom (see ")
    assert [row["reason"] == "" for row in found.rows] == [True, False]
    assert sum("failed: ValueError: boom" in line for line in lines) == 1


SCRIPT = """
import json, sys
import fastglt

found = fastglt.compare(
    {dataset!r},
    methods=["random"],
    seeds=range(2),
    hidden=8,
    budget={{"oneshot_epochs": 2, "denoise_epochs": {epochs}}},
    checkpoint_every={every},
    jobs=1,
    progress=True,
)
print(json.dumps(found.document()))
"""


def script(epochs: int = 4, before: str = "", every: int = 0) -> list[str]:
    """A user's script, without ``if __name__ == "__main__"``."""
    Path("script.py").write_text(before + SCRIPT.format(dataset=TINY, epochs=epochs, every=every))
    return ["script.py"]


def test_a_script_needs_no_guard() -> None:
    done = subprocess.run([sys.executable, *script()], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["failures"], document["cells"][0]["n"]) == ([], 2)
    assert len(done.stderr.splitlines()) == 5, "the script ran once: one line for each run, after a first one"


OWN = """
from fastglt import register
from fastglt.methods.random import RandomPruning

@register
class Mine(RandomPruning):
    name = "mine"
    summary = "for tests"
"""


def test_a_method_of_the_script_itself_is_refused_in_one_line() -> None:
    words = script(before=OWN)
    Path("script.py").write_text(Path("script.py").read_text().replace('"random"', '"mine"'))
    done = run(*words)
    last = done.stderr.splitlines()[-1]
    assert "method 'mine' must be in a module that other processes can import (got one from __main__)" in last
    assert not list(Path("runs/compare-synthetic-gcn").glob("*/run.json"))


def test_a_method_that_an_imported_module_registers_is_found() -> None:
    Path("mine_elsewhere.py").write_text(OWN)
    words = script(before="import mine_elsewhere\n")
    Path("script.py").write_text(Path("script.py").read_text().replace('"random"', '"mine"'))
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failures"] == []


def test_an_interrupted_call_goes_on() -> None:
    """Ctrl-C stops the run that is under way with a checkpoint; the same call takes what there is."""
    words = script(epochs=200)
    process = Process(*words)
    runs, deadline = Path("runs/compare-synthetic-gcn"), time.monotonic() + 120
    while not list(runs.glob("random-*/checkpoint/search.part")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode != 0
    assert err.splitlines()[-1] == "fastglt.runs.series.Stopped: 1 of 4 runs"
    (part,) = runs.glob("random-*/checkpoint/*.part")
    assert len(list(runs.glob("*/metrics.json"))) == 1
    done = run(*script(epochs=200, every=600))
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "1 of 4 runs are finished already"
    assert (json.loads(done.stdout)["cells"][0]["n"], part.exists()) == (2, False)
