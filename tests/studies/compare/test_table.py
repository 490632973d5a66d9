"""Tables for people."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fastglt.runs.engine import Outcome
from fastglt.studies.compare import Comparison
from fastglt.studies.compare.table import print_cells, print_rounds
from tests.runs.examples import experiment, runs_of

from .test_results import distilled_outcomes, finished


def printed(print_table: Any, results: Comparison, width: int = 40, *, terminal: bool = False) -> str:
    text = io.StringIO()
    print_table(results.document(), Console(file=text, width=width, force_terminal=terminal, color_system=None))
    return text.getvalue()


def row(text: str, method: str) -> str:
    return " ".join(next(line for line in text.splitlines() if line.strip().startswith(f"{method} ")).split())


def test_a_row_for_each_method_and_nothing_is_cut_off(tmp_path: Path) -> None:
    experiments = [experiment(method, seed) for seed in (0, 1) for method in ("random", "fastglt")]
    runs = runs_of(tmp_path, *experiments)
    text = printed(print_cells, Comparison(runs, finished(runs)))
    assert "…" not in text
    expected = "2 80.50 ± 0.71 78.50 ± 0.71 70.00 ± 0.00 worse/worse 160 76 6 3.5 1.75×"
    assert row(text, "random") == f"random {expected}"
    assert row(text, "fastglt") == f"fastglt {expected}"
    assert "accuracy of the test nodes in %" in text
    assert "20 % of edges and 50 % of weights removed, of 200 and 152\n" in text
    assert "a loss of 1 point or more, level 5 %" in text
    assert "!" not in text


def test_methods_are_set_against_the_first(tmp_path: Path) -> None:
    """Two points less than random for both seeds at the end of the search; alone 70 and 70.5 % against 70 %."""
    experiments = [experiment(method, seed) for seed in (0, 1) for method in ("random", "fastglt")]
    runs = runs_of(tmp_path, *experiments)
    outcomes = []
    for run in runs:
        seed = run.experiment.seed
        changed = {"search_test": 0.76 + seed / 100, "isolated_test": 0.7 + 0.005 * seed}
        outcomes += finished([run], **(changed if run.method == "fastglt" else {}))
    text = printed(print_cells, Comparison(runs, outcomes), width=80, terminal=True)
    assert "against random\n" in text
    below = text.partition("against random\n")[2]
    assert row(below, "method") == "method n search p retrained p outcome"
    assert row(below, "fastglt") == "fastglt 2 −2.00 < 0.0001 +0.25 0.5000 worse/undecided"
    assert "corrected for their" in text
    assert max(map(len, text.splitlines())) <= 80
    alone = [outcome for outcome in outcomes if outcome.run.method != "fastglt"]
    assert "against random" not in printed(print_cells, Comparison([one.run for one in alone], alone), width=80)


def test_one_seed_a_failed_twin_and_nothing_at_all(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment("random"), experiment("fastglt"))
    outcomes = [Outcome(run=runs[0], reason="boom"), *finished(runs[1:2]), Outcome(run=runs[2], reason="boom")]
    text = printed(print_cells, Comparison(runs, outcomes))
    assert row(text, "random") == "random 1 – (n 0) 78.00 70.00 –/– 160 76 6 3.0 –"
    assert row(text, "fastglt") == "fastglt 0 – – – –/– – – – – –"


def test_counts_that_are_not_exact_are_flagged(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment(seed=0), experiment(seed=1))
    outcomes = [*finished(runs[:3]), *finished(runs[3:], edges_kept=158)]
    text = printed(print_cells, Comparison(runs, outcomes))
    assert "158 to 160 ! 76 6" in row(text, "random")
    assert "! not exactly the count" in text


def test_curves_of_methods_that_have_rounds(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment("random"), experiment("fastglt"))
    point = {"round": 1, "graph_sparsity": 0.1, "weight_sparsity": 0.36, "search_val": 0.5, "search_test": 0.75}
    outcomes = [*finished(runs[:2]), *finished(runs[2:], rounds=[point])]
    text = printed(print_rounds, Comparison(runs, outcomes), width=100)
    assert "fastglt · on the way to 20 % of edges and 50 % of weights removed" in text
    assert row(text, "1") == "1 1 10.00 % 36.00 % 75.00"
    assert "random" not in text


def test_a_comparison_without_rounds_says_so(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, experiment("random"), experiment("fastglt"))
    text = printed(print_rounds, Comparison(runs, finished(runs)), width=100)
    assert text.strip() == "No sparsity curves: no run of random, fastglt has rounds."


def test_marks_for_both_rules_and_both_scores(tmp_path: Path) -> None:
    """Dense scores are 80, 81 and 82 %."""
    runs = runs_of(tmp_path, *(experiment(seed=seed) for seed in range(3)))
    scores = [(0.81, 0.70), (0.81, 0.805), (0.825, 0.93)]  # winning; mean above, but all over the place
    tickets = [
        outcome
        for ticket, (search, isolated) in zip([run for run in runs if not run.is_dense], scores, strict=True)
        for outcome in finished([ticket], search_test=search, isolated_test=isolated)
    ]
    outcomes = [*finished([run for run in runs if run.is_dense]), *tickets]
    assert " winning/undecided " in row(printed(print_cells, Comparison(runs, outcomes)), "random")


def test_a_table_of_real_sizes_fits_terminals(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, *(experiment("fastglt", seed) for seed in range(10)))
    sizes = {"edges_kept": 70_918, "edges_total": 88_648, "weights_kept": 73_728, "weights_total": 1_896_960}
    outcomes = finished(runs, **sizes, search_epochs=12_000, search_seconds=12_345.6)
    for width in (80, 120):
        text = printed(print_cells, Comparison(runs, outcomes), width=width, terminal=True)
        assert max(map(len, text.splitlines())) <= width
        for cell in ("84.50 ± 3.03", "worse/worse", "70,918", "73,728 !", "12,345.6", "6172.80×"):
            assert cell in text


def test_distilled_tickets_have_two_opponents_with_labels(tmp_path: Path) -> None:
    budget = replace(experiment().budget, distill=2.0)
    runs = runs_of(tmp_path, *(experiment(seed=seed, budget=budget) for seed in (0, 1)))
    text = printed(print_cells, Comparison(runs, distilled_outcomes(runs)), width=160)
    expected = (
        "2 80.50 ± 0.71 77.00 ± 0.00 78.50 ± 0.71 70.00 ± 0.00 worse/worse undecided/worse 160 76 6 5.5 2.75×"
    )
    assert row(text, "random") == f"random {expected}"
    heading = next(line for line in text.splitlines() if "method" in line)
    assert "dense distilled" in heading
    assert "verdict distilled" in heading
    assert "verdict distilled: against dense distilled, which was taught in the same way" in text
