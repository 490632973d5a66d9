"""`--dry-run` of every command that trains: what would run, what is reused; nothing is written."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SHORT, TINY, Cli

TRAIN = (*SHORT[2:6], "--threads", "1", "--quiet")
STUDY = ("--dataset", TINY, *SHORT, "--seeds", "0-1", "--jobs", "1", "--quiet")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_evaluate_and_transfer_say_what_is_left(find: Cli, cli: Cli, here: Path) -> None:
    assert find("--quiet", "--out", "a").code == 0
    before = files(here)
    evaluate = ("evaluate", "a", "--seeds", "0-2", "--threads", "1", "--quiet")
    plan = cli(*evaluate, "--dry-run", "--json").document
    counts = [plan[name] for name in ("trainings", "reused", "left", "epochs")]
    assert counts == [6, 2, 4, 64], "the ticket's own run has seed 0"
    assert plan["seconds"] > 0
    told = cli(*evaluate, "--dry-run")
    assert "4 of 6 (dense, ticket; 3 seeds)" in told.out
    assert "2 reused from the store or the ticket's own run" in told.out
    transfer = ("transfer", "a", "--model", "gin", "--seeds", "0-1", *TRAIN)
    assert cli(*transfer, "--dry-run", "--json").document["left"] == 5
    assert files(here) == before
    assert cli(*evaluate).code == 0
    plan = cli(*evaluate, "--dry-run", "--json").document
    assert (plan["left"], plan["reused"], plan["seconds"]) == (0, 6, 0.0)
    assert cli(*transfer).code == 0
    assert cli(*transfer, "--dry-run", "--json").document["left"] == 0


def test_the_name_of_a_graph_is_not_cut(find: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = find("--dry-run").out
    assert "…" not in told
    assert "seed=0" in "".join(line.strip("│ ") for line in told.splitlines())


def test_an_engine_that_is_not_installed_is_told_at_once(
    cli: Cli, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    told = cli("compare", *STUDY, "--engine", "ray", "--dry-run")
    assert (told.code, told.out, told.err.count("\n")) == (1, "", 1)
    assert "--engine ray needs Ray, which is not there; pip install 'fastglt[ray]'" in told.err


def test_equal_trainings_of_two_tickets_count_once(find: Cli, cli: Cli, here: Path) -> None:
    for name, sparsity in (("a", 0.5), ("b", 0.9)):
        assert find("--quiet", "--weight-sparsity", sparsity, "--out", name).code == 0
    plan = cli("evaluate", "a", "b", "--seeds", "1-2", "--threads", 1, "--dry-run", "--json").document
    assert (plan["trainings"], plan["left"]) == (8, 6), "a dense network for each seed, and two tickets"


def test_a_remembered_teacher_is_trained_once_more(find: Cli, cli: Cli, here: Path) -> None:
    assert find("--quiet", "--distill", "--out", "a").code == 0
    evaluate = ("evaluate", "a", "--seeds", "1", "--threads", 1, "--quiet")
    assert cli(*evaluate, "--dry-run", "--json").document["left"] == 4
    assert find("--quiet", "--out", "plain").code == 0
    assert cli("evaluate", "plain", *evaluate[2:]).code == 0
    plan = cli(*evaluate, "--dry-run", "--json").document
    assert plan["left"] == 4, "the dense score is known, but its outputs teach the ticket and dense distilled"


def test_compare_says_what_is_left(cli: Cli, here: Path, store: Path) -> None:
    compare = ("compare", "--methods", "fastglt,random", *STUDY)
    plan = cli(*compare, "--dry-run", "--json").document
    assert files(here) == []
    assert not store.exists()
    assert plan["left"] == {"dense": 2, "fastglt g20 w90": 2, "random g20 w90": 2}
    assert (plan["runs"], plan["finished"], plan["reused"]) == (6, 0, 0)
    assert plan["epochs"] == 2 * 16 + 4 * 32
    assert plan["seconds"] > 0
    assert cli("find", "--dataset", TINY, *SHORT, "--seed", "1", "--quiet").code == 0
    plan = cli(*compare, "--dry-run", "--json").document
    assert plan["left"] == {"dense": 1, "fastglt g20 w90": 1, "random g20 w90": 2}
    assert plan["reused"] == 2


def test_extreme_says_how_long_it_may_go_on(cli: Cli, here: Path) -> None:
    plan = cli("extreme", "--weight-sparsity", "0.5,0.7,0.9", *STUDY, "--dry-run", "--json").document
    assert plan["left"] == {"dense": 2, "fastglt g0 w50": 2}
    assert (plan["at_most_more_sparsities"], plan["fresh_seeds"]) == (2, 2)
    assert plan["at_most_seconds"] == pytest.approx(4 * plan["seconds"])
    told = cli("extreme", *STUDY, "--dry-run").out
    assert "at most 12 more sparsities" in told
    assert files(here) == []
