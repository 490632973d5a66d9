"""`fastglt diff`: two tickets side by side."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import SHORT, TINY, Cli
from tests.toy_data import USER_MODELS, quick_ticket, toy_data

GROUPS = ("edge_degree", "edge_gradient", "weight_gradient")


@pytest.fixture
def runs(find: Cli, tmp_path: Path) -> Path:
    """A run of FastGLT in a/, one of one-shot pruning in b/, from the same Θ0."""
    for name, method in (("a", "fastglt"), ("b", "oneshot")):
        assert find("--method", method, "--quiet", "--out", tmp_path / name).code == 0
    return tmp_path


def counts(groups: dict[str, Any]) -> list[int]:
    return [groups[name]["count"] for name in ("only_a", "only_b", "both", "neither")]


def test_distances_and_distributions(cli: Cli, runs: Path) -> None:
    found = cli("diff", runs / "a", runs / "b", "--json").document
    assert (found["a"]["method"], found["b"]["method"], found["same_start"]) == ("fastglt", "oneshot", True)
    edges, weights = found["edges"], found["weights"]
    assert (edges["size"], edges["pruned_a"], edges["pruned_b"]) == (200, 40, 40)
    assert edges["chance_hamming"] == pytest.approx(64)  # 200 · 2 · 0.2 · 0.8
    assert weights["size"] == 16 * 16 + 16 * 3
    assert sum(part["hamming"] for part in found["matrices"].values()) == weights["hamming"]
    for name, part in (("edge_degree", edges), ("edge_gradient", edges), ("weight_gradient", weights)):
        expected = [part[key] for key in ("only_a", "only_b", "pruned_both", "kept_both")]
        assert counts(found[name]) == expected
        assert len(found[name]["both"]["counts"]) == len(found[name]["both"]["bin_edges"]) - 1
    assert found["notes"] == []


def test_a_ticket_and_itself(cli: Cli, runs: Path) -> None:
    found = cli("diff", runs / "a", runs / "a" / "ticket.safetensors", "--json").document
    assert (found["edges"]["hamming"], found["weights"]["hamming"]) == (0, 0)
    assert (found["edges"]["agreement"], found["weights"]["jaccard_kept"]) == (1, 1)
    assert counts(found["edge_degree"]) == [0, 0, 40, 160]


def test_the_other_way_round(cli: Cli, runs: Path) -> None:
    forth, back = (cli("diff", runs / x, runs / y, "--json").document for x, y in ("ab", "ba"))
    for name in GROUPS:
        assert forth[name]["only_a"] == back[name]["only_b"]
        assert forth[name]["both"] == back[name]["both"]
    assert forth["weights"]["agreement"] == back["weights"]["agreement"]


def test_as_tables(cli: Cli, runs: Path) -> None:
    text = cli("diff", runs / "a", runs / "b").out
    titles = ("A = fastglt, seed 0, B = oneshot, seed 0", "edge degree in the whole graph", "share of the weights")
    for part in (*titles, "layer1.weight", "by chance", "only A", "only B", "█"):
        assert part in text


def test_without_the_graph_only_masks(cli: Cli, runs: Path) -> None:
    for name in "ab":
        (runs / f"{name}.safetensors").write_bytes((runs / name / "ticket.safetensors").read_bytes())
    alone = (runs / "a.safetensors", runs / "b.safetensors")
    found = cli("diff", *alone, "--json").document
    assert [found[name] for name in GROUPS] == [None] * 3
    assert "pass --dataset" in found["notes"][0]
    assert "pass --dataset" in cli("diff", *alone).out
    told = cli("diff", *alone, "--dataset", TINY, "--json").document
    beside = cli("diff", alone[0], runs / "b", "--json").document  # B's run knows the graph that they share
    assert [told[name] for name in GROUPS] == [beside[name] for name in GROUPS]
    assert all(told[name] for name in GROUPS)


def test_masks_can_be_compared_where_the_file_of_their_graph_is_gone(cli: Cli, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in toy_data().to_dict().items()}
    np.savez(tmp_path / "toy.npz", **arrays)
    for seed in "01":
        made = cli("find", "--dataset", tmp_path / "toy.npz", *SHORT, "--seed", seed, "--out", tmp_path / seed)
        assert made.code == 0, made.err
    assert None not in [cli("diff", tmp_path / "0", tmp_path / "1", "--json").document[name] for name in GROUPS]
    (tmp_path / "toy.npz").unlink()
    found = cli("diff", tmp_path / "0", tmp_path / "1", "--json").document
    assert [found[name] for name in GROUPS] == [None] * 3
    assert found["edges"]["size"] == 60
    assert "pass --dataset" in found["notes"][-1]


def test_other_graphs_and_other_models(cli: Cli, runs: Path) -> None:
    other = "synthetic:nodes=60,edges=150,features=16,classes=3"
    assert cli("find", "--dataset", other, *SHORT, "--quiet", "--out", runs / "graph").code == 0
    assert cli("find", "--dataset", TINY, *SHORT, "--model", "gin", "--quiet", "--out", runs / "gin").code == 0
    weights = cli("diff", runs / "a", runs / "graph", "--json").document
    assert (weights["edges"], weights["edge_degree"], weights["edge_gradient"]) == (None, None, None)
    assert sum(counts(weights["weight_gradient"])) == weights["weights"]["size"]
    assert "only their weights are compared" in weights["notes"][0]
    edges = cli("diff", runs / "a", runs / "gin", "--json").document
    assert (edges["weights"], edges["matrices"], edges["weight_gradient"]) == (None, {}, None)
    assert sum(counts(edges["edge_gradient"])) == 200
    assert "only their edges are compared" in edges["notes"][0]
    result = cli("diff", runs / "graph", runs / "gin")
    assert (result.code, "must share their graph or their model" in result.err) == (2, True), result.err


def test_another_start_is_told(find: Cli, cli: Cli, runs: Path) -> None:
    find("--seed", "1", "--quiet", "--out", runs / "c")
    found = cli("diff", runs / "a", runs / "c", "--json").document
    assert not found["same_start"]
    assert "different Θ0" in found["notes"][0]


def test_a_users_model(cli: Cli, tmp_path: Path) -> None:
    data = toy_data()
    for seed in (0, 1):
        ticket = quick_ticket(USER_MODELS["hand-written"](), data, seed=seed, isolated=False)
        ticket.save(tmp_path / str(seed) / "ticket.safetensors")
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in data.to_dict().items()}
    np.savez(tmp_path / "toy.npz", **arrays)
    found = cli("diff", tmp_path / "0", tmp_path / "1", "--dataset", tmp_path / "toy.npz", "--json").document
    assert sum(counts(found["edge_degree"])) == 60
    assert found["weight_gradient"] is None
    assert "need that model" in found["notes"][-1]
    assert list(found["matrices"]) == ["weight"]


def test_another_graph_than_the_tickets_is_refused(cli: Cli, runs: Path) -> None:
    result = cli("diff", runs / "a", runs / "b", "--dataset", "digits")
    assert (result.code, "found on another graph (got 'digits')" in result.err) == (2, True), result.err


def test_help_teaches(cli: Cli) -> None:
    assert "fastglt diff runs/fastglt runs/oneshot" in " ".join(cli("diff", "--help").out.split())
