"""`fastglt show`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import fastglt
from tests.cli.conftest import Cli
from tests.toy_data import USER_MODELS, quick_ticket, toy_data


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


def test_a_graph_is_named_for_what_looks_at_it(find: Cli, cli: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    for given, message in (
        (("--dataset", "nonsense"), "--dataset must come with --cost or --analysis (got 'nonsense' without)"),
        (("--split-seed", 0), "--split-seed must come with --cost or --analysis (got 0 without)"),
        (("--directed",), "--directed must come with --cost or --analysis (got True without)"),
    ):
        result = cli("show", tmp_path / "run", *given)
        assert (result.code, result.out, message in result.err) == (2, "", True), result.err


def test_refuses_a_damaged_ticket(find: Cli, cli: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    path = tmp_path / "run" / "ticket.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    result = cli("show", path)
    assert (result.code, "damaged" in result.err) == (2, True)


def test_a_score_without_test_nodes_is_null(cli: Cli, tmp_path: Path) -> None:
    data = toy_data()
    data.test_mask = torch.zeros_like(data.test_mask)
    quick_ticket(data=data).save(tmp_path / "ticket.safetensors")
    result = cli("show", tmp_path / "ticket.safetensors", "--json")
    assert result.document["scores"]["search_test"] is None
    assert "NaN" not in result.out
    assert "–" in cli("show", tmp_path / "ticket.safetensors").out


class TestCost:
    def test_rows_add_up_to_what_the_run_reported(self, find: Cli, cli: Cli, tmp_path: Path) -> None:
        metrics = find("--json", "--quiet", "--out", tmp_path / "run").document
        facts = cli("show", tmp_path / "run", "--cost", "--json").document
        for side in ("dense", "ticket"):
            cost = facts["cost"][side]
            assert cost["macs"] == metrics[f"macs_{side}"]
            assert cost["macs_paper"] == metrics[f"macs_paper_{side}"]
            assert [row["kind"] for row in cost["rows"]] == ["linear", "aggregation"] * 2
            for name in ("parameters", "macs", "macs_paper", "bytes"):
                assert sum(row[name] for row in cost["rows"]) == cost[name]
        dense, ticket = facts["cost"]["dense"], facts["cost"]["ticket"]
        assert (dense["edges"], ticket["edges"]) == (200, 160)
        assert dense["parameters"] == 16 * 16 + 16 + 16 * 3 + 3
        assert facts["cost"]["disk_ticket"] == (tmp_path / "run" / "ticket.safetensors").stat().st_size
        assert facts["cost"]["disk_dense"] > 4 * dense["parameters"]
        assert "analysis" not in facts

    def test_as_a_table(self, find: Cli, cli: Cli, tmp_path: Path) -> None:
        find("--quiet", "--out", tmp_path / "run")
        text = cli("show", tmp_path / "run", "--cost").out
        for part in ("checksum verified", "MACs as papers count", "bytes moved", "in all", "200 → 160 edges"):
            assert part in text

    def test_a_users_model_is_told_where_to_go(self, cli: Cli, tmp_path: Path) -> None:
        data = toy_data()
        quick_ticket(USER_MODELS["GCN"](), data, isolated=False).save(tmp_path / "ticket.safetensors")
        arrays: dict[str, Any] = {name: np.asarray(value) for name, value in data.to_dict().items()}
        np.savez(tmp_path / "toy.npz", **arrays)
        result = cli("show", tmp_path, "--cost", "--dataset", tmp_path / "toy.npz")
        assert (result.code, "use fastglt.analysis.count_macs in Python" in result.err) == (2, True), result.err
        analysis = cli("show", tmp_path, "--analysis", "--dataset", tmp_path / "toy.npz", "--json").document[
            "analysis"
        ]
        assert analysis["weights"]["units"] == []
        assert len(analysis["weights"]["matrices"]) == 2
        assert "empty columns" in cli("show", tmp_path, "--analysis", "--dataset", tmp_path / "toy.npz").out

    def test_needs_the_graph(self, cli: Cli, ticket: fastglt.Ticket, tmp_path: Path) -> None:
        ticket.save(tmp_path / "ticket.safetensors")
        result = cli("show", tmp_path, "--cost")
        assert (result.code, "pass --dataset" in result.err) == (2, True), result.err


class TestAnalysis:
    def test_before_and_after(self, find: Cli, cli: Cli, tmp_path: Path) -> None:
        find("--quiet", "--out", tmp_path / "run")
        found = cli("show", tmp_path / "run", "--analysis", "--json").document["analysis"]
        graph = found["graph"]
        assert (graph["nodes"], graph["edges_before"], graph["edges_after"]) == (80, 200, 160)
        assert graph["degree_before"]["mean"] == 5
        assert graph["degree_after"]["mean"] == 4
        assert sum(graph["degree_after"]["counts"]) == 80
        assert graph["newly_isolated"] == graph["isolated_after"] - graph["isolated_before"]
        shares = graph["homophily"]
        assert 160 * shares["kept"] + 40 * shares["pruned"] == pytest.approx(200 * shares["whole"])
        assert [units["name"] for units in found["weights"]["units"]] == ["features", "hidden", "classes"]
        kept = sum(matrix["kept"] for matrix in found["weights"]["matrices"])
        assert kept == cli("show", tmp_path / "run", "--json").document["weights_kept"]

    def test_as_tables(self, find: Cli, cli: Cli, tmp_path: Path) -> None:
        find("--quiet", "--out", tmp_path / "run")
        text = cli("show", tmp_path / "run", "--analysis").out
        for part in ("connected components", "never pruned by", "degree from", "median", "unreached", "█"):
            assert part in text
