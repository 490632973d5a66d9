"""What `fastglt find` tells before and after."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from fastglt.cli.shared.guide import hint, outcome_lines, tell_next
from tests.cli.conftest import SHORT, Cli

LOST = {
    "method": "fastglt",
    "graph_sparsity": 0.2,
    "weight_sparsity": 0.9,
    "dense_test": 0.8,
    "search_test": 0.81,
    "isolated_test": 0.79,
}


def test_the_outcome_is_said_as_evaluate_says_it() -> None:
    (line,) = outcome_lines(LOST)
    assert line == (
        "Undecided, as one seed proves nothing: the ticket is at least dense (+1.00 points) at the end of the "
        "search and below dense (−1.00 points) retrained from initial weights."
    )
    both = list(outcome_lines({**LOST, "dense_distilled_test": 0.85}))
    assert len(both) == 2
    assert "below distilled dense (−4.00 points) at the end" in both[1]
    (nothing,) = outcome_lines({**LOST, "dense_test": None, "search_test": None, "isolated_test": None})
    assert "without test nodes" in nothing


@pytest.mark.parametrize(
    ("changes", "there", "absent"),
    [
        ({}, "(--graph-sparsity 0.1 --weight-sparsity 0.8), or let", "?"),
        ({"distill": 1.0}, "--method forest", "--distill"),
        ({"method": "forest"}, "--distill", "--method forest"),
        ({"graph_sparsity": 0.0}, "prune less (--weight-sparsity 0.8)", "--method forest"),
        ({"weight_sparsity": 0.0}, "prune less (--graph-sparsity 0.1)", "--weight-sparsity"),
    ],
)
def test_a_ticket_below_dense_gets_a_hint(changes: dict[str, Any], there: str, absent: str) -> None:
    found = hint({**LOST, **changes})
    assert there in found
    assert absent not in found


def test_a_ticket_that_is_not_below_dense_gets_none() -> None:
    assert hint({**LOST, "isolated_test": 0.8}) == ""
    assert hint({**LOST, "dense_test": None}) == ""


@pytest.mark.parametrize("use", [[], ["mine:Net"]])
def test_a_ticket_for_links_is_asked_about_pairs(use: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tell_next({**LOST, "task": "link"}, Path("runs/a"), Console(width=200), use=use)
    fastglt = " ".join(["fastglt", *(["--use", *use] if use else [])])
    printed = capsys.readouterr().out
    assert f"  {fastglt} predict runs/a --pairs pairs.csv  # how likely" in printed
    assert printed.count(" predict ") == 1


def test_find_sums_up_the_graph_and_says_what_to_run_next(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(60), (np.arange(60) + 1) % 60])
    both_ways = np.concatenate([edges, edges[::-1, :10]], axis=1)
    np.savez(tmp_path / "g.npz", edge_index=both_ways, x=rng.normal(size=(60, 5)), y=np.arange(60) % 3)
    place = tmp_path / "my runs" / "a"
    result = cli("find", "--dataset", tmp_path / "g.npz", *SHORT, "--out", place)
    assert result.code == 0, result.err
    first, second, *_ = result.err.splitlines()
    kind = "undirected, 50 of them listed one way in the file"
    assert first == f"g.npz: 60 nodes, 60 edges ({kind}), 5 features, 3 classes"
    assert second == "split: 18 training, 21 validation, 21 test nodes"
    assert f"Written to {place}/: ticket.safetensors, metrics.json, history.csv" in result.out
    assert f"fastglt evaluate '{place}'" in result.out, "as a shell takes it"
    directed = cli("find", "--dataset", tmp_path / "g.npz", *SHORT, "--directed", "--out", tmp_path / "b")
    assert "60 nodes, 70 edges (directed), 5 features" in directed.err
    quiet = cli("find", "--dataset", tmp_path / "g.npz", *SHORT, "--out", place, "--quiet", "--json")
    assert (quiet.err, quiet.out.count("\n")) == ("", 1)
