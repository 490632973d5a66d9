"""`fastglt show`, `fastglt data list` and `fastglt --version`."""

import pickle
from pathlib import Path

import torch

import fastglt
from tests.toy_data import quick_ticket, toy_data

from .conftest import Cli


def test_describes_a_ticket_or_a_runs_folder(find: Cli, cli: Cli, tmp_path: Path) -> None:
    metrics = find("--json", "--quiet", "--out", tmp_path / "run").document
    facts = cli("show", tmp_path / "run", "--json").document
    assert facts["edges_kept"] == metrics["edges_kept"]
    assert facts["scores"]["isolated_test"] == metrics["isolated_test"]
    assert facts["matrices"]["layer1.weight"][1] == 16 * 16
    text = cli("show", tmp_path / "run" / "ticket.safetensors").out
    for part in ("160 of 200", "checksum verified", "fastglt, seed 0", "from the model's seed"):
        assert part in text


def test_refuses_what_is_no_ticket(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pickle").write_bytes(pickle.dumps({"a": 1}))
    (tmp_path / "text").write_text("hello")
    for name, message in (("pickle", "never read"), ("text", "not a fastglt ticket"), ("none", "not there")):
        result = cli("show", tmp_path / name)
        assert (result.code, message in result.err) == (2, True), result.err


def test_refuses_a_damaged_ticket(find: Cli, cli: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    path = tmp_path / "run" / "ticket.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = cli("show", path)
    assert (result.code, "damaged" in result.err) == (2, True)


def test_lists_datasets_and_where_they_are(cli: Cli) -> None:
    entries = {entry["name"]: entry for entry in cli("data", "list", "--json").document}
    assert entries["digits"]["where"] == "built in"
    assert {"cora", "citeseer", "pubmed", "tolokers", "synthetic"} <= set(entries)
    assert "digits" in cli("data", "list").out


def test_version(cli: Cli) -> None:
    assert cli("--version").out.strip() == f"fastglt {fastglt.__version__}"


def test_no_command_shows_help(cli: Cli) -> None:
    result = cli()
    assert "Usage" in result.out + result.err


def test_a_score_without_test_nodes_is_null(cli: Cli, tmp_path: Path) -> None:
    data = toy_data()
    data.test_mask = torch.zeros_like(data.test_mask)
    quick_ticket(data=data).save(tmp_path / "ticket.safetensors")
    result = cli("show", tmp_path / "ticket.safetensors", "--json")
    assert result.document["scores"]["search_test"] is None
    assert "NaN" not in result.out
    assert "–" in cli("show", tmp_path / "ticket.safetensors").out
