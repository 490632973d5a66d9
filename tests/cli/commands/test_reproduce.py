import json
from pathlib import Path

import pytest

from fastglt.studies.paper import ITEMS
from tests.cli.conftest import TINY, Cli


def test_tables_and_figures_are_listed_with_what_they_need(cli: Cli, tmp_path: Path) -> None:
    rows = cli("reproduce", "list", "--data-root", tmp_path, "--json").document
    assert [row["id"] for row in rows] == list(ITEMS)
    assert all(row["at_hand"] == [] and row["about"] and row["epochs"] for row in rows)
    assert all(row["taken"] == ["digits"] and not row["recorded"] for row in rows)
    told = cli("reproduce", "list", "--data-root", tmp_path).out
    assert "About cora (cora not at hand); takes digits. 80 tickets, 0 recorded; " in told
    assert "\\n" not in told


def test_what_nobody_printed_is_refused(cli: Cli) -> None:
    unknown = cli("reproduce", "table9")
    assert (unknown.code, "unknown table or figure (got 'table9')" in unknown.err) == (2, True)
    assert "list must come alone (got list table6)" in cli("reproduce", "list", "table6").err
    assert "--quick must come without --full" in cli("reproduce", "table6", "--quick", "--full").err
    both = cli("reproduce", "table6", "--recorded", "--dry-run")
    assert (both.code, "--recorded must come without --dry-run" in both.err) == (2, True)


def test_of_what_is_not_recorded_nothing_is_begun(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    done = cli("reproduce", "table6", "--quick", "--recorded", "--data-root", tmp_path, "--out", out)
    assert done.code == 0
    assert "at a time" not in done.err
    assert "left out here: 8 runs" in done.out
    assert not out.exists()


def test_a_dry_run_says_what_it_would_take(cli: Cli, tmp_path: Path) -> None:
    short = ("--hidden", 4, "--oneshot-epochs", 1, "--denoise-epochs", 2, "--out", tmp_path / "runs")
    done = cli("reproduce", "table6", "--quick", "--data-root", tmp_path, *short, "--dry-run", "--quiet")
    assert done.code == 0
    assert "8 of 8" in done.out  # two dense twins and six tickets


def test_results_are_written_with_where_they_are_from(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastglt.studies.paper.scope.SUBSTITUTE", TINY)
    short = ("--hidden", 4, "--oneshot-epochs", 1, "--denoise-epochs", 2, "--out", tmp_path / "runs", "--jobs", 1)
    given = ("--seeds", "0-1", "--data-root", tmp_path, "--results", tmp_path / "results")
    done = cli("reproduce", "table6", "--quick", *short, *given, "--quiet", "--json")
    assert done.code == 0
    (one,) = done.document["results"]
    kept = json.loads((tmp_path / "results" / "table6.json").read_text())
    assert kept["lines"] == one["lines"]
    assert kept["seeds"] == [0, 1]
    assert kept["command"].startswith("fastglt reproduce table6 --quick --hidden 4 ")
    assert str(tmp_path) not in kept["command"]
    assert kept["versions"]["fastglt"]
    assert (tmp_path / "results" / "table6.md").read_text().startswith("**table6.** The decay")
    assert (tmp_path / "results" / "table6-1.svg").read_text().startswith("<svg")
    unknown = cli("reproduce", "table6", "--graphs", "coar")
    assert (unknown.code, "did you mean 'cora'" in unknown.err) == (2, True)
