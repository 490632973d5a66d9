"""Tickets before the judge: each with its own task."""

from pathlib import Path

import torch

from tests.cli.conftest import SHORT, Cli
from tests.toy_data import NODES, toy_file

JUDGED = ("--seeds", "0,1", "--threads", "1", "--quiet", "--json")
LABELS = torch.arange(NODES).flip(0) // 2 % 3


def judged_apart(cli: Cli, *runs: Path) -> list[dict[str, object]]:
    """What each run is told when it is judged alone, with a store that has nothing of the others."""
    return [cli("evaluate", run, "--store", run / "own.sqlite", *JUDGED).document for run in runs]


def test_tickets_with_other_metrics_on_one_graph(cli: Cli, tmp_path: Path) -> None:
    graph, runs = toy_file(tmp_path / "g.npz"), [tmp_path / "accuracy", tmp_path / "macro_f1"]
    for run in runs:
        more = ("--metric", run.name.replace("_", "-"), "--out", run)
        assert cli("find", "--dataset", graph, *SHORT, "--quiet", *more).code == 0
    found = cli("evaluate", *runs, *JUDGED).document
    assert [one["metric"] for one in found] == ["accuracy", "macro_f1"]
    assert found == judged_apart(cli, *runs)


def test_files_of_one_name_on_one_graph(cli: Cli, tmp_path: Path) -> None:
    runs = [tmp_path / "a", tmp_path / "b"]
    for run, differing in zip(runs, ({}, {"y": LABELS}), strict=True):
        graph = toy_file(tmp_path / "data" / run.name / "g.npz", **differing)
        assert cli("find", "--dataset", graph, *SHORT, "--quiet", "--out", run).code == 0
    found = cli("evaluate", *runs, *JUDGED).document
    assert [one["same_split"] for one in found] == [True, True]
    assert found == judged_apart(cli, *runs)


def test_hidden_nodes_are_the_tickets_own(cli: Cli, tmp_path: Path) -> None:
    graph, runs = toy_file(tmp_path / "g.npz"), [tmp_path / "all", tmp_path / "seen"]
    for run, more in zip(runs, ((), ("--inductive", "0.2")), strict=True):
        assert cli("find", "--dataset", graph, *SHORT, "--quiet", *more, "--out", run).code == 0
    assert cli("evaluate", *runs, *JUDGED).document == judged_apart(cli, *runs)
