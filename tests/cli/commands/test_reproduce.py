from pathlib import Path

from fastglt.studies.paper import ITEMS
from tests.cli.conftest import Cli


def test_tables_and_figures_are_listed_with_what_they_need(cli: Cli, tmp_path: Path) -> None:
    rows = cli("reproduce", "list", "--data-root", tmp_path, "--json").document
    assert [row["id"] for row in rows] == list(ITEMS)
    assert all(row["at_hand"] == [] and row["about"] and row["cost"] for row in rows)
    assert "none at hand, digits instead" in cli("reproduce", "list", "--data-root", tmp_path).out


def test_what_nobody_printed_is_refused(cli: Cli) -> None:
    unknown = cli("reproduce", "table9")
    assert (unknown.code, "unknown table or figure (got 'table9')" in unknown.err) == (2, True)
    assert "--quick must come without --full" in cli("reproduce", "table6", "--quick", "--full").err


def test_a_dry_run_says_what_it_would_take(cli: Cli, tmp_path: Path) -> None:
    short = ("--hidden", 4, "--oneshot-epochs", 1, "--denoise-epochs", 2, "--out", tmp_path / "runs")
    done = cli("reproduce", "table6", "--quick", "--data-root", tmp_path, *short, "--dry-run", "--quiet")
    assert done.code == 0
    assert "8" in done.out  # runs: two dense twins and six tickets
