from pathlib import Path

import pytest

from fastglt import InputError
from fastglt.studies.compare import Comparison
from fastglt.studies.compare.showing import as_latex
from tests.runs.examples import experiment, runs_of
from tests.studies.compare.test_results import finished


@pytest.fixture
def comparison(tmp_path: Path) -> Comparison:
    """Two methods, two seeds."""
    runs = runs_of(tmp_path, *(experiment(name, seed=seed) for name in ("random", "oneshot") for seed in (0, 1)))
    return Comparison(runs, finished(runs, macs_dense=100, macs_ticket=50))


def test_a_comparison_shows_the_commands_table(comparison: Comparison) -> None:
    shown = comparison._repr_html_()
    assert "20 % of edges and 50 % of weights removed" in shown
    assert shown.count("<tr>") == 3
    assert "80.50 ± 0.71" in shown


def test_a_comparison_is_drawn(comparison: Comparison) -> None:
    picture = comparison.plot()
    rows = picture.spec["data"]["values"]
    assert [(row["method"], row["score"]) for row in rows[:2]] == [("random", "dense"), ("random", "end of search")]
    assert rows[0]["mean"] == pytest.approx(80.5)
    assert "ticket against dense" in comparison.plot("verdicts").title
    with pytest.raises(InputError, match="unknown picture"):
        comparison.plot("curves")
    with pytest.raises(InputError, match="'sparsity' needs more to show"):
        comparison.plot("sparsity")


def test_a_comparison_in_latex(comparison: Comparison) -> None:
    text = as_latex(comparison.document())
    assert r"20 \% of edges and 50 \% of weights removed" in text
    assert r"random & 2 & 80.50 $\pm$ 0.71" in text
