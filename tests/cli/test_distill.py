"""Distilled tickets on the command line: found, shown, compared, judged, with both opponents everywhere."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from fastglt import Ticket
from fastglt.runs.store import Store
from tests.cli.conftest import SHORT, TINY, Cli

MANY = ("--dataset", TINY, *SHORT, "--methods", "random", "--jobs", "2", "--quiet", "--distill")


def scores(metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metrics.items() if name.endswith(("_val", "_test"))}


def test_found_and_shown(find: Cli, cli: Cli, tmp_path: Path, store: Path) -> None:
    plain = find("--quiet", "--json", "--out", tmp_path / "plain").document
    told = find("--distill", "--distill-weight", "0.5", "--out", tmp_path / "run")
    assert told.code == 0, told.err
    assert "fastglt, distilled · seed 0" in " ".join(told.out.split())
    assert "dense distilled" in told.out
    assert "distilled dense (" in " ".join(told.out.split())
    assert "teacher: epoch 16/16" in told.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["distill"], metrics["dense_test"]) == (0.5, plain["dense_test"])
    assert {"dense_distilled_test", "dense_distilled_seconds", "winning_isolated_distilled"} <= set(metrics)
    rows = list(csv.DictReader((tmp_path / "run" / "history.csv").read_text().splitlines()))
    assert [row["phase"] for row in rows].count("dense_distilled") == 16
    assert Ticket.load(tmp_path / "run" / "ticket.safetensors").config["budget"]["distill"] == 0.5
    assert cli("show", tmp_path / "run", "--json").document["distill"] == 0.5
    assert "taught by the dense network, weight 0.5" in cli("show", tmp_path / "run").out
    assert cli("show", tmp_path / "plain", "--json").document["distill"] == 0
    assert "taught" not in cli("show", tmp_path / "plain").out
    recorded = Store(store).rows()
    assert [row["kind"] for row in recorded] == ["ticket", "dense", "ticket", "dense", "dense", "dense"]
    assert recorded[1]["key"] == recorded[3]["key"], "the plain twin is the same"
    text = cli("runs").out
    assert "ticket, distilled" in text
    assert "dense, distilled" in text


def test_the_default_folder_says_so(find: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find("--quiet", "--distill").code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("synthetic-gcn-fastglt-g20-w90-distilled-s0-")


def test_a_dry_run_counts_all_trainings(find: Cli, tmp_path: Path) -> None:
    plain, distilled = (find("--dry-run", "--json", *more).document for more in ((), ("--distill",)))
    assert (plain["epochs"], distilled["epochs"]) == (3 * 16, 5 * 16)
    told = " ".join(find("--dry-run", "--distill", "--distill-lr", "0").out.replace("│", "").split())
    assert "64 (search, ticket retrained, dense as the teacher, dense distilled)" in told


def test_a_teacher_as_in_0_1(find: Cli, tmp_path: Path) -> None:
    """Weight 1 at the learning rate of all others: settings, and so keys, as they were."""
    old = ("--distill", "--distill-weight", "1", "--distill-search", "1", "--distill-lr", "0")
    metrics = find(*old, "--quiet", "--json", "--out", tmp_path / "run").document
    assert [name for name in metrics if name.startswith("distill")] == ["distill"]
    assert not any("same_lr" in name for name in metrics)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert [name for name in settings if "distill" in name or "decay" in name] == ["weight_decay", "distill"]


def test_every_part_of_a_teacher_is_recorded(find: Cli, cli: Cli, tmp_path: Path) -> None:
    said = {"weight": "5", "temperature": "2", "labels": "0.5", "lr": "0.02", "nodes": "unlabelled"}
    flags = [text for name, value in said.items() for text in (f"--distill-{name}", value)]
    found = find("--distill", *flags, "--isolated-decay", "density", "--json", "--quiet", "--out", tmp_path / "run")
    assert found.code == 0, found.err
    metrics, budget = found.document, Ticket.load(tmp_path / "run" / "ticket.safetensors").config["budget"]
    for values in (metrics, budget):
        assert [values[name] for name in ("distill", "distill_temperature", "distill_labels")] == [5, 2, 0.5]
        assert (values["distill_lr"], values["distill_nodes"], values["isolated_decay"]) == (
            0.02,
            "unlabelled",
            "density",
        )
    assert {"dense_same_lr_test", "winning_isolated_same_lr"} <= set(metrics)
    shown = cli("show", tmp_path / "run").out
    assert "temperature 2" in shown
    assert "nodes unlabelled" in shown
    judged = cli("evaluate", tmp_path / "run", "--seeds", "0,1", "--threads", "1", "--json").document
    first, third = judged["ticket_scores"][0], judged["same_lr"]["dense_scores"][0]
    assert (first, third) == (metrics["isolated_test"], metrics["dense_same_lr_test"]), "taken from the run"
    assert "… against dense same lr" in cli("evaluate", tmp_path / "run", "--seeds", "0,1", "--threads", "1").out


def test_compared(cli: Cli, find: Cli, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ("compare", *MANY, "--seeds", "0,1")
    found = cli(*ask, "--out", tmp_path / "out", "--json", "--csv", tmp_path / "runs.csv")
    assert found.code == 0, found.err
    document = found.document
    assert document["budget"]["distill"] == 100
    (cell,) = document["cells"]
    assert (cell["n"], cell["n_dense"], cell["n_dense_distilled"]) == (2, 2, 2)
    for score in ("search", "isolated"):
        plain, distilled = cell["verdicts"][score], cell["verdicts_distilled"][score]
        assert plain.keys() == distilled.keys()
        assert plain["dense_scores"] == [row["dense_test"] for row in cell["runs"]]
        assert distilled["dense_scores"] == [row["dense_distilled_test"] for row in cell["runs"]]
        assert plain["ticket_scores"] == distilled["ticket_scores"]
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert float(rows[0]["dense_distilled_test"]) == cell["runs"][0]["dense_distilled_test"]
    folders = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "out").iterdir())
    kinds = ("dense", "dense_distilled", "dense_same_lr", "random-g20-w90-distilled")
    assert folders == sorted(f"{kind}-s{seed}" for kind in kinds for seed in (0, 1))
    whole = find("--method", "random", "--distill", "--json", "--quiet", "--out", tmp_path / "find").document
    row = cell["runs"][0]
    assert {name: row[name] for name in scores(whole) if name in row} == {
        name: value for name, value in scores(whole).items() if name in row
    }
    assert "verdict distilled" in cli(*ask, "--out", tmp_path / "out").out
    monkeypatch.setattr("fastglt.runs.local._Process", None)  # nothing may run
    again = cli(*ask, "--out", tmp_path / "other", "--json")
    assert again.document["cells"][0]["verdicts_distilled"] == cell["verdicts_distilled"]


def test_taken_from_the_store_of_find(
    cli: Cli, find: Cli, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command makes a ticket and its twins in one folder, the other in three: the same entries."""
    whole = find("--method", "random", "--distill", "--json", "--quiet", "--out", tmp_path / "find").document
    ask = ("compare", *MANY, "--seeds", "0", "--json")
    with monkeypatch.context() as patch:
        patch.setattr("fastglt.runs.local._Process", None)
        reused = cli(*ask, "--out", tmp_path / "out").document
    assert reused["cells"][0]["runs"][0]["dense_distilled_test"] == whole["dense_distilled_test"]
    computed = cli(*ask, "--out", tmp_path / "out", "--store", tmp_path / "other.sqlite")
    assert computed.code == 0, computed.err
    entries = [
        {row["key"]: set(row["metrics"]) for row in Store(path).rows()}
        for path in (store, tmp_path / "other.sqlite")
    ]
    assert entries[0] == entries[1]
    assert len(entries[0]) == 4


def test_judged(cli: Cli, find: Cli, tmp_path: Path, store: Path) -> None:
    metrics = find("--distill", "--json", "--quiet", "--out", tmp_path / "run").document
    ask = ("evaluate", tmp_path / "run", "--seeds", "0,1", "--threads", "1")
    result = cli(*ask, "--json")
    assert result.code == 0, result.err
    found = result.document
    assert found["distill"] == 100
    assert (found["dense_scores"][0], found["ticket_scores"][0]) == (
        metrics["dense_test"],
        metrics["isolated_test"],
    )
    second = found["distilled"]
    assert second["dense_scores"][0] == metrics["dense_distilled_test"]
    assert second["ticket_scores"] == found["ticket_scores"]
    assert set(second) <= set(found)
    again = cli(*ask)
    assert again.err == f"8 of 8 trainings were in '{store}' or the ticket already\n"
    assert "fastglt, distilled" in again.out
    assert "… against dense distilled" in again.out
    for sentence in (found["sentence"], second["sentence"]):
        assert sentence in " ".join(again.out.split())
    kept = [row["metrics"] for row in Store(store).rows() if row["kind"] == "evaluation"]
    assert sum("dense_distilled_test" in row for row in kept) == 1  # of seed 1; the run itself has those of seed 0
    assert sum("dense_test" in row for row in kept) == 1


def test_the_extreme_is_confirmed_against_both(cli: Cli, tmp_path: Path) -> None:
    grid = ("--graph-sparsity", "0", "--weight-sparsity", "0.1,0.2", "--rule", "plain", "--score", "search")
    seeds = ("--seeds", "0", "--fresh-seeds", "5,6", "--out", tmp_path / "out")
    found = cli("extreme", *MANY, *grid, *seeds, "--json")
    assert found.code == 0, found.err
    (answer,) = found.document["answers"]
    first, second = answer["confirmation_on_test"], answer["confirmation_on_test_distilled"]
    assert {"confirmed", "confirmed_distilled"} <= set(answer)
    if answer["weight_sparsity"] is not None:
        assert first["ticket_scores"] == second["ticket_scores"]
        assert answer["confirmed_distilled"] == second["plain_winning"]
    assert "confirmed too" in cli("extreme", *MANY, *grid, *seeds).out


@pytest.mark.parametrize("command", ["find", "compare", "extreme"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--distill-weight", "2"), "--distill-weight must come with --distill (got 2.0 without)"),
        (("--distill", "--distill-weight", "0"), "distill_weight must be positive (got 0.0)"),
        (("--distill", "--distill-weight", "-1"), "distill_weight must be positive (got -1.0)"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: Cli, tmp_path: Path, command: str, arguments: tuple[str, ...], message: str
) -> None:
    result = cli(command, "--dataset", TINY, *arguments, "--out", tmp_path / "out")
    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["find", "compare", "extreme"])
def test_help_says_what_it_is_and_who_the_opponents_are(cli: Cli, command: str) -> None:
    text = " ".join(cli(command, "--help").out.replace("│", " ").split())
    assert "Distilled tickets: the dense network's outputs for all nodes teach" in text
    assert "two opponents" in text
