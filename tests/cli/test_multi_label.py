"""A folder in OGB's layout with many labels a node, on the command line: by its path alone, all the way."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from fastglt.methods import Targets
from fastglt.runs.experiment import Experiment
from fastglt.studies.shared import Study
from fastglt.tasks import MultiLabel
from tests.cli.conftest import Cli
from tests.data.ogb_folders import random_tables, write

SHORT = ("--hidden", "8", "--oneshot-epochs", "2", "--denoise-epochs", "4", "--interval", "2", "--threads", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sixty nodes, 150 edges with two features each, and five labels."""
    tables = random_tables(60, 150, columns=4, labels=5)
    del tables["raw/node-feat"]
    tables["raw/edge-feat"] = np.random.default_rng(1).uniform(size=(150, 2)).round(2)
    return write(tmp_path / "packages", tables)


def test_it_is_found_and_taken_all_the_way(folder: Path, cli: Cli, tmp_path: Path) -> None:
    run, same = tmp_path / "run", ("--dataset", folder, *SHORT)
    found = cli("find", *same, "--out", run, "--quiet", "--json").document
    assert (found["dataset"], found["task"], found["metric"]) == ("packages", "multi-label", "roc_auc")
    again = cli("find", *same, "--out", run, "--quiet", "--json").document
    assert again == found
    plan = cli("find", *same, "--dry-run", "--json").document
    assert (plan["nodes"], plan["edges"], plan["features"], plan["labels"]) == (60, 150, 2, 5)
    verdict = cli("evaluate", run, "--seeds", "0-1", "--quiet", "--json").document
    assert (verdict["metric"], verdict["n"]) == ("roc_auc", 2)
    shown = cli("show", run, "--analysis", "--json")
    assert (shown.code, shown.document["analysis"]["graph"]["homophily"]) == (0, None), shown.err
    rows = cli("predict", run, "--nodes", "0,3", "--json").document
    assert rows["labels"] == 5
    for row in rows["predictions"]:
        assert row["labels"] == [label for label in range(5) if row["probabilities"][label] > 0.5]
    assert cli("predict", run, "--out", tmp_path / "p.csv").code == 0
    lines = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert lines[3]["labels"] == " ".join(map(str, rows["predictions"][1]["labels"]))
    assert list(lines[0]) == ["node", "labels", "p0", "p1", "p2", "p3", "p4"]
    assert cli("export", run, "--to", "pyg", "--out", tmp_path / "pyg").code == 0


def test_a_process_of_a_comparison_finds_the_task_as_well(folder: Path) -> None:
    study = Study(command="compare", dataset=folder, methods="oneshot", hidden=8)
    asked = study.experiment(study.variants["oneshot"], Targets(graph_sparsity=0.2, weight_sparsity=0.5), 0, 0)
    again = Experiment.from_json(json.loads(json.dumps(asked.to_json())))
    assert type(again.prepare().task) is MultiLabel


def test_a_npz_file_may_have_many_labels(cli: Cli, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = np.stack([np.arange(40), (np.arange(40) + 1) % 40])
    np.savez(tmp_path / "g.npz", edge_index=edges, x=rng.normal(size=(40, 3)), y=rng.integers(0, 2, (40, 3)))
    found = cli("find", "--dataset", tmp_path / "g.npz", *SHORT, "--out", tmp_path / "run", "--quiet", "--json")
    assert (found.document["task"], found.document["metric"]) == ("multi-label", "roc_auc")


def test_another_task_is_refused_with_the_reason(folder: Path, cli: Cli) -> None:
    refused = cli("find", "--dataset", folder, "--task", "node-classification", *SHORT)
    assert refused.code == 2
    assert "data.y must hold one integer label per node (got torch.float32)" in refused.err
