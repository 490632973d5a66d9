"""`fastglt suspects`, `fastglt attack` and `find --robust`: on a graph that was poisoned here."""

import csv
from pathlib import Path

import numpy as np
import pytest

from fastglt.data import load
from fastglt.graphs.graph import Graph
from tests.cli.conftest import SHORT, TINY, Cli

FAST = ("--epochs", "8", "--threads", "1", "--quiet")
ATTACK = ("--rate", "0.1", "--steps", "4", "--fresh", "2", "--block", "500", "--width", "8", *FAST)


def edges(path: Path) -> set[tuple[int, int]]:
    tensors = load(str(path)).tensors
    graph = Graph.from_edge_index(tensors["edge_index"], len(tensors["y"]))
    return {(a, b) for a, b in graph.edges.T.tolist()}


@pytest.fixture
def poisoned(cli: Cli, tmp_path: Path) -> Path:
    """The tiny graph with a tenth of its edges changed."""
    path = tmp_path / "poisoned.npz"
    found = cli("attack", "--dataset", TINY, "--out", path, *ATTACK, "--json").document
    assert found["added"] + found["removed"] == 20
    assert found["edges_after"] == 200 + found["added"] - found["removed"] == len(edges(path))
    return path


def test_every_edge_is_in_the_csv_and_the_clean_graph_lacks_the_worst(
    cli: Cli, poisoned: Path, tmp_path: Path
) -> None:
    table, clean = tmp_path / "all.csv", tmp_path / "clean.npz"
    outputs = ("--csv", table, "--clean", clean, "--share", "0.1")
    found = cli("suspects", "--dataset", poisoned, *FAST, *outputs, "--json").document
    rows = list(csv.DictReader(table.read_text().splitlines()))
    before, after = edges(poisoned), edges(clean)
    assert len(rows) == found["edges"] == len(before)
    suspicion = [float(row["suspicion"]) for row in rows]
    assert suspicion == sorted(suspicion, reverse=True)
    assert sum(suspicion) == pytest.approx(found["expected"], rel=1e-3)
    worst = {(int(row["source"]), int(row["target"])) for row in rows[: found["suspects"]]}
    assert found["suspects"] == round(0.1 * len(before))
    assert before - after == worst
    same, kept = load(str(poisoned)).tensors, load(str(clean)).tensors
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        np.testing.assert_array_equal(same[name].to_dense().numpy(), kept[name].to_dense().numpy())
    assert [row["source"] for row in found["worst"]] == [int(row["source"]) for row in rows[:10]]


def test_an_attack_keeps_self_loops(cli: Cli, tmp_path: Path) -> None:
    before, after = tmp_path / "before.npz", tmp_path / "after.npz"
    index = np.array([(i, (i + 1) % 30) for i in range(30)] + [(2, 2), (7, 7)]).T
    np.savez(before, edge_index=index, x=np.eye(30, 4, dtype=np.float32), y=np.arange(30) % 2)
    assert cli("attack", "--dataset", before, "--out", after, *ATTACK).code == 0
    with np.load(after) as written:
        source, target = written["edge_index"]
    assert sorted(source[source == target]) == [2, 7]


def test_a_robust_ticket_removes_suspects_and_is_asked_what_it_keeps(
    cli: Cli, poisoned: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    targets = ("--method", "forest", "--robust", "--graph-sparsity", "0.05", "--weight-sparsity", "0.5")
    assert cli("find", "--dataset", poisoned, *targets, *SHORT, "--quiet", "--out", run).code == 0
    found = cli("suspects", "--ticket", run, *FAST, "--count", "9", "--json").document
    assert found["suspects"] == 9
    assert found["suspects_in_ticket"] <= 9
    told = cli("suspects", "--ticket", run, *FAST, "--rows", "3").out
    assert "probably added" in told
    assert "The ticket keeps" in told
    assert f"\nfastglt find --dataset {poisoned} --method forest --robust --graph-sparsity " in told


def test_the_table_fits_a_terminal(cli: Cli, poisoned: Path) -> None:
    text = cli("suspects", "--dataset", poisoned, *FAST).out
    rows = [line for line in text.splitlines() if " – " in line]
    assert len(rows) == 10
    assert max(map(len, rows)) <= 80


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("suspects",), "a graph must be named"),
        (("suspects", "--dataset", TINY, "--count", "3", "--share", "0.1"), "say the same"),
        (("suspects", "--ticket", "x", "--rounds", "9"), "--rounds must come without --ticket"),
        (("suspects", "--dataset", TINY, "--share", "5"), "share must lie in [0, 1]"),
        (("suspects", "--dataset", TINY, "--clean", "x.csv"), "--clean must end in .npz"),
        (("suspects", "--dataset", TINY, "--csv", "x.npz"), "--csv must end in .csv"),
        (("suspects", "--dataset", TINY, "--count", "999", *FAST), "must not exceed the graph's 200 edges"),
        (("attack", "--dataset", TINY, "--rate", "0", "--out", "x.npz"), "rate must lie in (0, 1]"),
        (("attack", "--dataset", TINY, "--rate", "0.1", "--out", "x.csv"), "--out must end in .npz"),
        (
            ("attack", "--dataset", TINY, "--rate", "0.1", "--out", "x.npz", "--block", "0"),
            "block must be at least 1",
        ),
        (("find", "--dataset", TINY, "--robust"), "robust"),
    ],
)
def test_bad_input_is_one_line(cli: Cli, arguments: tuple[str, ...], rule: str) -> None:
    found = cli(*arguments)
    assert found.code == 2
    assert rule in found.err
    assert len(found.err.strip().splitlines()) == 1
