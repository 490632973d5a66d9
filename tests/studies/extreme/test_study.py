"""`fastglt.extreme` does what `fastglt extreme` does."""

import json
import sys
from pathlib import Path

import pytest

import fastglt
from fastglt.cli import main
from fastglt.methods import Targets
from fastglt.studies.extreme.study import walk_of
from fastglt.studies.lists import Numbers
from tests.runs.examples import TINY

FLAGS = ("--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4", "--interval", "2", "--jobs", "2")
BUDGET = {"oneshot_epochs": 2, "denoise_epochs": 4, "interval": 2}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders and store by default are below the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FASTGLT_STORE", raising=False)


def test_the_command_finds_all_finished_and_says_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = fastglt.extreme(
        TINY,
        methods=["random", "fastglt[ramp=1]"],
        graph_sparsity=0,
        weight_sparsity=[0.5, 0.98],
        rules=["plain"],
        seeds=range(2),
        fresh_seeds=[5, 6],
        margin=0.3,
        hidden=8,
        budget=BUDGET,
        jobs=2,
    )
    assert capfd.readouterr() == ("", "")
    words = ["fastglt", "extreme", "--dataset", TINY, *FLAGS, "--methods", "random,fastglt[ramp=1]"]
    words += ["--graph-sparsity", "0", "--weight-sparsity", "0.5,0.98", "--rule", "plain", "--seeds", "0-1"]
    words += ["--fresh-seeds", "5,6", "--margin", "0.3"]
    monkeypatch.setattr(sys, "argv", [*words, "--json"])
    with pytest.raises(SystemExit):
        main()
    captured = capfd.readouterr()
    assert json.loads(captured.out) == json.loads(json.dumps(found.document()))
    assert "at a time" not in captured.err, "nothing ran"
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        main()
    assert capfd.readouterr().out == f"{found}\n"
    asked = [(row["method"], row["rule"], row["score"]) for row in found.rows]
    labels = ("random", "fastglt[ramp=1]")
    assert list(dict.fromkeys(asked)) == [
        (label, "plain", score) for label in labels for score in ("search", "isolated")
    ]
    assert (found.document()["out"], found.failures) == ("runs/extreme-synthetic-gcn", [])


def test_nothing_is_confirmed_where_nobody_asks() -> None:
    found = fastglt.extreme(
        TINY,
        methods="random",
        graph_sparsity=0,
        weight_sparsity="0.5:0.6:0.1",
        seeds=[0, 1],
        fresh_seeds=(),
        hidden=8,
        budget=BUDGET,
        jobs=2,
    )
    assert found.document()["fresh_seeds"] == ()
    assert {answer.confirmation for answer in found.answers} <= {None}
    assert "not confirmed" in str(found)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(fastglt.InputError, match="must not be among those that chose"):
        fastglt.extreme(TINY, seeds=range(3), fresh_seeds=range(2, 5))
    with pytest.raises(fastglt.InputError, match="weight_sparsity must rise from one value to the next"):
        fastglt.extreme(TINY, weight_sparsity=[0.9, 0.5])
    assert not Path("runs").exists()


def walk(graph: Numbers | None = None, weight: Numbers | None = None) -> list[Targets]:
    """The first two points that are tried if the first loses."""
    made = walk_of(graph, weight)()
    return [next(made), made.send(False)]


def test_what_is_not_said_varies_if_the_other_does_not() -> None:
    def at(graph: float, weight: float) -> Targets:
        return Targets(graph_sparsity=graph, weight_sparsity=weight)

    assert walk() == walk(graph="0") == walk(weight="bisect") == walk(graph=0) == [at(0, 0.99), at(0, 0.98)]
    assert walk(weight="0") == walk(graph="bisect") == [at(0.5, 0), at(0.25, 0)]
    assert walk(weight="0.9") == walk(weight=0.9) == [at(0.5, 0.9), at(0.25, 0.9)]
    both = [at(0.3, 0.9), at(0.1, 0.9)]
    assert walk(graph="0.1,0.3", weight="0.9,0.95") == walk(graph=[0.1, 0.3], weight=(0.9, 0.95)) == both
