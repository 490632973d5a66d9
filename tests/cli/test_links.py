"""Links on the command line: a folder in OGB's layout by itself, any graph with --task link, pairs predicted."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from fastglt import Ticket, compile_ticket
from fastglt.data import load
from tests.cli.conftest import SHORT, TINY, Cli
from tests.link_folders import write_collab


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Path:
    """A run on a tiny folder like ogbl-collab, which says itself that it is for links."""
    folder = write_collab(tmp_path / "collab")
    words = ("--dataset", folder, "--metric", "hits@10", *SHORT, "--task-option", "batch=20")
    found = cli("find", *words, "--quiet", "--json", "--out", tmp_path / "run").document
    assert (found["task"], found["task_options"], found["metric"]) == ("link", {"batch": 20}, "hits@10")
    assert (found["edges_kept"], found["graph_sparsity"]) == (48, 0.2)
    return tmp_path / "run"


def test_pairs_are_predicted(cli: Cli, run: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("source,target\n0,1\n29, 4\n")
    data = load(str(tmp_path / "collab")).data
    predictor = compile_ticket(Ticket.load(run / "ticket.safetensors", data), data, layout="dense")
    expected = predictor.logits(torch.tensor([[0, 1], [29, 4]])).sigmoid().squeeze(1)
    found = cli("predict", run, "--pairs", pairs, "--json").document
    assert [(row["source"], row["target"]) for row in found["predictions"]] == [(0, 1), (29, 4)]
    np.testing.assert_allclose([row["probability"] for row in found["predictions"]], expected, atol=1e-5)
    assert cli("predict", run, "--pairs", pairs, "--out", tmp_path / "p.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert [row["target"] for row in rows] == ["1", "4"]
    assert cli("predict", run, "--pairs", pairs, "--out", tmp_path / "p.npz").code == 0
    with np.load(tmp_path / "p.npz") as file:
        np.testing.assert_allclose(file["probabilities"], expected, atol=1e-5)
    table = cli("predict", run, "--pairs", pairs).out
    assert f"{float(expected[0]):.3f}" in table


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0\n", "two nodes on a line, with a comma between them (got '0' in line 1"),
        ("0,x\n", "(got 'x' in line 1"),
        ("0,-1\n", "(got '-1' in line 1"),
        ("source,target\n0,30\n", "nodes must lie in 0 … 29 (got 30 in line 2"),
        ("\n", "got no line in"),
    ],
)
def test_other_files_are_refused(cli: Cli, run: Path, tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "pairs.csv").write_text(text)
    told = cli("predict", run, "--pairs", tmp_path / "pairs.csv")
    assert (told.code, reason in told.err) == (2, True), told.err


def test_a_run_is_judged_shown_and_described(cli: Cli, run: Path) -> None:
    for words in ((), ("--nodes", "0")):
        assert "a ticket for links predicts pairs" in cli("predict", run, *words).err
    verdict = cli("evaluate", run, "--seeds", "0-1", "--quiet", "--json").document
    assert (verdict["metric"], verdict["n"]) == ("hits@10", 2)
    facts = cli("show", run, "--cost", "--analysis", "--json").document
    assert facts["model"]["link-decoder"]["layers"] == 3
    decoder = [row for row in facts["cost"]["dense"]["rows"] if row["layer"] == "decoder"]
    assert [row["macs"] for row in decoder] == [60 * 16 * 16, 60 * 16 * 16, 60 * 16]  # a row for each of 60 pairs
    assert facts["analysis"]["graph"]["homophily"] is None
    assert "layers 3" in cli("show", run).out


def test_any_graph_has_a_random_split_that_the_ticket_remembers(cli: Cli, tmp_path: Path) -> None:
    same = ("--dataset", TINY, "--task", "link", "--task-option", "decoding=dot", "--split-seed", "1", *SHORT)
    plan = cli("find", *same, "--dry-run", "--json").document
    assert (plan["edges"], plan["val_links"], plan["test_links"]) == (170, 10, 20)
    assert "training 170 edges" in " ".join(cli("find", *same, "--dry-run").out.replace("│", " ").split())
    assert cli("find", *same, "--quiet", "--out", tmp_path / "run").code == 0
    ticket = Ticket.load(tmp_path / "run" / "ticket.safetensors")
    assert ticket.config["task_options"] == {"decoding": "dot", "split_seed": 1}
    told = cli("evaluate", tmp_path / "run", "--seeds", "0", "--threads", "1", "--quiet", "--json")
    assert "split are not the search's" not in told.err
    assert json.loads(told.out)["n"] == 1
    to_gin = ("--model", "gin", "--seeds", "0", "--threads", "1", "--quiet", "--json")
    transferred = cli("transfer", tmp_path / "run", *to_gin)
    assert transferred.code == 0, transferred.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--task", "links"), "unknown task (got 'links')"),
        (("--task", "link", "--task-option", "depth=2"), "task 'link' has no option 'depth'"),
        (("--task-option", "batch=2"), "task 'node-classification' has no option 'batch'"),
        (("--task", "link", "--metric", "accuracy"), "unknown metric (got 'accuracy')"),
        (("--task", "link", "--task-option", "decoding=sum"), "unknown decoder (got 'sum')"),
    ],
)
def test_wrong_words_are_refused(find: Cli, words: tuple[str, ...], reason: str) -> None:
    told = find(*words)
    assert (told.code, reason in told.err) == (2, True), told.err


def test_a_link_set_is_not_for_classes(cli: Cli, tmp_path: Path) -> None:
    folder = write_collab(tmp_path / "collab")
    told = cli("find", "--dataset", folder, "--task", "node-classification", *SHORT)
    assert told.code == 2
    assert "data.y must hold one integer label per node (got none)" in told.err


def test_pairs_are_for_links_alone(find: Cli, cli: Cli, tmp_path: Path) -> None:
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    told = cli("predict", tmp_path / "run", "--pairs", tmp_path / "pairs.csv")
    assert "--pairs is for tickets of links (got one of the task 'node-classification')" in told.err
