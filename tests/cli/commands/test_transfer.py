"""`fastglt transfer`, end to end on a tiny graph."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Cli
from tests.toy_data import USER_MODELS, quick_ticket, seeded, toy_file

SHORT = ("--oneshot-epochs", "2", "--denoise-epochs", "4", "--threads", "1", "--seeds", "0,1")


@pytest.fixture
def ticket(find: Cli, tmp_path: Path) -> Path:
    assert find("--quiet", "--out", tmp_path / "found").code == 0
    return tmp_path / "found"


def test_a_graph_mask_under_another_backbone_is_judged_and_kept(cli: Cli, ticket: Path, tmp_path: Path) -> None:
    command = ("transfer", ticket, "--model", "gat", *SHORT, "--out", tmp_path / "moved")
    result = cli(*command, "--json")
    assert result.code == 0, result.err
    found = result.document
    assert found["taken"]["edges"] is True
    assert found["taken"]["matrices"] == []
    assert (found["model"], found["method"], found["n"]) == ("gat", "transfer", 2)
    assert found["graph_sparsity"] == 0.2
    assert found["ticket_scores"][0] == found["search_test"]  # the seed it was trained with
    rows = cli("runs", "--command", "transfer", "--json").document
    assert [row["kind"] for row in rows] == ["ticket", *["evaluation"] * 3]  # the ticket's own run is not repeated
    own = rows[0]
    assert (own["method"], own["graph_sparsity"], own["search_test"]) == ("transfer", 0.2, None)
    assert own["isolated_test"] == found["ticket_scores"][0]
    assert Path(own["ticket"]) == tmp_path / "moved" / "ticket.safetensors"
    assert len((tmp_path / "moved" / "history.csv").read_text().splitlines()) == 1 + 6
    again = cli(*command)
    assert again.code == 0, again.err
    assert "Taken over: the edge mask." in again.out
    assert "4 of 4 trainings were in" in again.err
    assert cli("runs", "--command", "transfer", "--json").document == rows
    judged = cli("evaluate", tmp_path / "moved", "--seeds", "0,1", "--threads", "1", "--json")
    assert judged.document["ticket_scores"] == found["ticket_scores"]


def test_the_metric_is_the_tickets(cli: Cli, find: Cli, tmp_path: Path) -> None:
    assert find("--metric", "macro-f1", "--quiet", "--out", tmp_path / "found").code == 0
    out = tmp_path / "moved"
    moved = cli("transfer", tmp_path / "found", "--seed", "1", *SHORT, "--quiet", "--json", "--out", out)
    assert moved.document["metric"] == "macro_f1"
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["metric"] == "macro_f1", "by accuracy it would be another run"


def test_links_go_to_other_initial_weights_with_their_decoder(cli: Cli, find: Cli, tmp_path: Path) -> None:
    assert find("--task", "link", "--metric", "roc-auc", "--quiet", "--out", tmp_path / "found").code == 0
    out = tmp_path / "moved"
    moved = cli("transfer", tmp_path / "found", "--seed", "3", *SHORT, "--quiet", "--json", "--out", out)
    assert moved.code == 0, moved.err
    assert moved.document["metric"] == "roc_auc"
    matrices = ["encoder.layer1.weight", "encoder.layer2.weight", *(f"decoder.weights.{i}" for i in range(3))]
    assert moved.document["taken"]["matrices"] == matrices


def test_a_users_model_has_to_be_replaced_by_one_that_is_named(cli: Cli, tmp_path: Path) -> None:
    quick_ticket(seeded(USER_MODELS["GCN"]), isolated=False).save(tmp_path / "ticket.safetensors")
    command = ("transfer", tmp_path, "--dataset", toy_file(tmp_path / "g.npz"), *SHORT, "--out", tmp_path / "moved")
    refused = cli(*command)
    assert (refused.code, "--model must name the network that the masks go to" in refused.err) == (2, True)
    moved = cli(*command, "--model", "gcn", "--hidden", "8", "--quiet", "--json")
    assert moved.code == 0, moved.err
    assert moved.document["taken"]["edges"] is True


def test_weight_masks_go_to_another_graph(cli: Cli, ticket: Path, tmp_path: Path) -> None:
    other = TINY.replace("edges=200", "edges=150")
    result = cli("transfer", ticket, "--dataset", other, *SHORT, "--out", tmp_path / "moved")
    assert result.code == 0, result.err
    assert "Taken over: the mask of layer1.weight, the mask of layer2.weight." in result.out


def test_what_does_not_fit_is_refused_before_anything_is_written(cli: Cli, ticket: Path, tmp_path: Path) -> None:
    other = TINY.replace("edges=200", "edges=150")
    result = cli("transfer", ticket, "--dataset", other, *SHORT, "--hidden", "9", "--out", tmp_path / "moved")
    assert result.code == 2
    assert "nothing of the ticket fits" in result.err
    assert not (tmp_path / "moved").exists()


def test_a_split_seed_of_0_is_not_the_tickets(cli: Cli, find: Cli, tmp_path: Path) -> None:
    assert find("--quiet", "--split-seed", "3", "--out", tmp_path / "found").code == 0
    for given, kept in (((), 3), (("--split-seed", "0"), 0)):
        out = tmp_path / f"moved-{kept}"
        assert cli("transfer", tmp_path / "found", *given, *SHORT, "--quiet", "--out", out).code == 0
        assert json.loads((out / "run.json").read_text())["settings"]["split_seed"] == kept


def test_a_graph_with_other_edge_weights_is_another_transfer(cli: Cli, weighted: Path) -> None:
    command = ("transfer", weighted, "--seed", "1", *SHORT, "--quiet", "--json")
    one, other = (cli(*command, "--dataset", f"{folder}/w.npz").document for folder in "AB")
    assert one["ticket"] != other["ticket"]
    alone = cli(*command, "--dataset", "B/w.npz", "--out", "alone", "--store", "alone.sqlite").document
    assert {**alone, "ticket": other["ticket"]} == other
