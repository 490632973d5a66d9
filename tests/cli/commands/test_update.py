"""`fastglt update`, end to end on tiny graphs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fastglt.data import load
from fastglt.data.writing import npz_bytes
from tests.cli.conftest import SHORT, TINY, Cli

FORTY = [(i, (i + step) % 40) for step in (1, 2, 3) for i in range(40)]


def write_graph(folder: Path) -> Path:
    """Forty nodes with names, two classes, every third in a split."""
    rng = np.random.default_rng(0)
    lines = ["id,label,split,a,b"]
    for node in range(40):
        kind, split = ("cat", "dog")[node // 20], ("train", "val", "test")[node % 3]
        lines.append(f"n{node},{kind},{split},{rng.normal() + node // 20:.3f},{rng.normal():.3f}")
    (folder / "nodes.csv").write_text("\n".join(lines) + "\n")
    write_edges(folder / "edges.csv", FORTY)
    return folder


def write_edges(path: Path, pairs: list[tuple[int, int]]) -> Path:
    path.write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in pairs))
    return path


@pytest.fixture
def named(cli: Cli, tmp_path: Path) -> Path:
    """A run on a graph in CSV files."""
    (tmp_path / "my").mkdir()
    graph = write_graph(tmp_path / "my")
    out = tmp_path / "found"
    command = ("find", "--dataset", graph, *SHORT, "--method", "forest", "--graph-sparsity", "0.25")
    assert cli(*command, "--quiet", "--out", out).code == 0
    return out


def test_files_of_changes_make_a_run_like_any_other(cli: Cli, named: Path, tmp_path: Path) -> None:
    nodes = tmp_path / "new-nodes.csv"
    nodes.write_text("id,label,split,a,b\nn40,dog,test,1.5,0\nn41,,,0,0.5\n")
    edges = write_edges(tmp_path / "new-edges.csv", [(40, 30), (40, 31), (41, 2), (41, 3), (5, 25), (40, 41)])
    gone = write_edges(tmp_path / "gone.csv", [(1, 0), (4, 7)])
    out = tmp_path / "later"
    command = ("update", named, "--nodes", nodes, "--edges", edges, "--remove-edges", gone, "--threads", "1")
    result = cli(*command, "--epochs", "3", "--out", out, "--json")
    assert result.code == 0, result.err
    found = result.document
    assert (found["edges_total"], found["edges_kept"]) == (124, 93)
    told = found["update"]
    assert (told["nodes_added"], told["edges_added"], told["edges_removed"]) == (2, 6, 2)
    assert cli(*command, "--epochs", "3", "--out", out).out.startswith("Update 1: 2 nodes and 6 edges came")
    rows = cli("predict", out, "--nodes", "n40,n41", "--json")
    assert rows.code == 0, rows.err
    assert rows.err == ""  # the graph and the features are the ticket's own, and so are labels and split
    assert [row["id"] for row in rows.document["predictions"]] == ["n40", "n41"]
    later = tmp_path / "gone-nodes.csv"
    later.write_text("id\nn41\n")
    again = cli("update", out, "--remove-nodes", later, "--threads", "1", "--out", tmp_path / "third", "--json")
    assert again.code == 0, again.err
    assert again.document["update"]["number"] == 2
    assert again.document["update"]["nodes_removed"] == 1
    assert cli("evaluate", tmp_path / "third", "--seeds", "0", "--threads", "1", "--json").code == 0


def test_a_whole_new_graph_and_the_same_path_in_predict(cli: Cli, find: Cli, tmp_path: Path) -> None:
    assert find("--quiet", "--out", tmp_path / "found").code == 0
    dataset = load(TINY)
    index = dataset.tensors["edge_index"]
    fewer = index[:, (index != 7).all(0)]
    later = tmp_path / "later.npz"
    later.write_bytes(npz_bytes(replace(dataset, tensors={**dataset.tensors, "edge_index": fewer})))
    command = ("update", tmp_path / "found", "--to", later, "--epochs", "0", "--threads", "1")
    result = cli(*command, "--out", tmp_path / "moved", "--json")
    assert result.code == 0, result.err
    updated = cli("predict", tmp_path / "moved", "--json").document["predictions"]
    same = cli("predict", tmp_path / "found", "--dataset", later, "--other-graph", "--json")
    assert same.code == 0, same.err
    assert same.document["predictions"] == updated
    refused = cli("predict", tmp_path / "found", "--dataset", later)
    assert refused.code == 2
    assert "fastglt update takes it" in refused.err


def test_classes_are_the_same_by_their_names(cli: Cli, named: Path, tmp_path: Path) -> None:
    """All cats are gone, so that dogs would be the first class of the new files; and one dog more."""
    later, out = tmp_path / "later", tmp_path / "dogs"
    later.mkdir()
    header, *nodes = (tmp_path / "my" / "nodes.csv").read_text().splitlines()
    dogs = [line for line in nodes if ",dog," in line]
    (later / "nodes.csv").write_text("\n".join([header, *dogs, "n40,dog,,1.5,0"]) + "\n")
    write_edges(later / "edges.csv", [(40, 20), *(pair for pair in FORTY if min(pair) >= 20)])
    result = cli("update", named, "--to", later, "--epochs", "0", "--threads", "1", "--out", out, "--json")
    assert (result.code, result.err) == (0, "")
    before = {row["id"]: row for row in cli("predict", named, "--json").document["predictions"]}
    rows = cli("predict", out, "--json")
    assert (rows.code, rows.err) == (0, "")
    same = cli("predict", named, "--dataset", later, "--other-graph", "--json")
    assert same.document["test_score"] == rows.document["test_score"], "a dog is a dog there, too"
    assert len(rows.document["predictions"]) == 21
    for row in rows.document["predictions"]:
        assert row["label"] == ("cat", "dog")[row["class"]]
    stayed = [row for row in rows.document["predictions"] if row["id"] != "n40"]
    agreed = sum(row["label"] == before[row["id"]]["label"] for row in stayed) / len(stayed)
    assert agreed == result.document["update"]["agreed"]
    gone = tmp_path / "gone.csv"
    gone.write_text("id\nn40\n")
    again = cli("update", out, "--remove-nodes", gone, "--threads", "1", "--out", tmp_path / "third", "--quiet")
    assert (again.code, again.err) == (0, "")
    assert cli("predict", tmp_path / "third", "--json").code == 0
    (later / "nodes.csv").write_text("\n".join([header, *dogs, "n40,bird,,1.5,0"]) + "\n")
    refused = cli("update", named, "--to", later, "--out", tmp_path / "birds")
    assert (refused.code, "among those of the graph before, cat, dog (got 'bird')" in refused.err) == (2, True)
    assert not (tmp_path / "birds").exists()


def test_classes_without_a_name_are_told_by_their_numbers(cli: Cli, named: Path, tmp_path: Path) -> None:
    """Files of the new graph that have fewer classes than the ticket, whose first ones have the same numbers."""
    later, out = tmp_path / "later", tmp_path / "cats"
    later.mkdir()
    header, *nodes = (tmp_path / "my" / "nodes.csv").read_text().splitlines()
    cats = [line for line in nodes if ",cat," in line]
    (later / "nodes.csv").write_text("\n".join([header, *cats]) + "\n")
    write_edges(later / "edges.csv", [pair for pair in FORTY if max(pair) < 20])
    update = cli("update", named, "--to", later, "--epochs", "0", "--threads", "1", "--out", out)
    assert (update.code, update.err) == (0, "")
    assert "label" in cli("predict", out, "--json").document["predictions"][0]
    plain = cli("predict", out, "--dataset", later, "--json")
    assert (plain.code, plain.err) == (0, "")
    assert "label" not in plain.document["predictions"][0]


def noise(path: Path, nodes: int) -> Path:
    """The first of 210 nodes with labels that nothing tells, and edges between some of them."""
    rng = np.random.default_rng(5)
    x, y, edges = rng.normal(size=(210, 30)), rng.integers(3, size=210), rng.integers(200, size=(2, 20))
    np.savez(path, edge_index=edges, x=x[:nodes], y=y[:nodes])
    return path


def test_nodes_stay_in_the_part_of_the_split_they_were_in(cli: Cli, tmp_path: Path) -> None:
    before, later = noise(tmp_path / "before.npz", 200), noise(tmp_path / "later.npz", 210)
    assert cli("find", "--dataset", before, *SHORT, "--quiet", "--out", tmp_path / "found").code == 0
    command = ("update", tmp_path / "found", "--epochs", "0", "--threads", "1", "--json")
    result = cli(*command, "--to", later, "--out", tmp_path / "moved")
    assert (result.code, result.err) == (0, "")
    assert result.document["update"]["nodes_added"] == 10
    old, new = load(str(before)).tensors, load(str(tmp_path / "moved" / "graph.npz")).tensors
    assert load(str(later)).tensors["test_mask"][:200][old["train_mask"]].any(), "else nothing is tested"
    for part in ("train_mask", "val_mask", "test_mask"):
        assert new[part].tolist() == old[part].tolist() + [False] * 10
    assert cli("predict", tmp_path / "moved", "--json").err == ""
    other = np.roll(np.stack([old[part].numpy() for part in ("train_mask", "val_mask", "test_mask")]), 1, axis=0)
    masks = {f"{part}_mask": row for part, row in zip(("train", "val", "test"), other, strict=True)}
    np.savez(tmp_path / "own.npz", **np.load(before), **masks)
    told = cli(*command, "--to", tmp_path / "own.npz", "--out", tmp_path / "own")
    assert told.code == 0
    assert "own.npz: labels or split are not the search's, which may have been trained on what are test" in told.err


def test_a_graph_with_other_edge_weights_is_another_update(cli: Cli, weighted: Path) -> None:
    command = ("update", weighted, "--threads", "1", "--quiet", "--json", "--to")
    one, other = (cli(*command, f"{folder}/w.npz").document for folder in "AB")
    assert one["folder"] != other["folder"]
    assert one["update"]["val_before_refining"] == one["update"]["search_val"], "on its own graph"
    assert cli(*command, "A/w.npz").document == one


BAD = [
    ("nodes", "id,a,b\nn3,1,2\n", r"line 2: a new node must have an id of its own (got 'n3' again)"),
    ("nodes", "id,a\nn50,1\n", r"must have the graph's 2 features, in their order (got 1 columns"),
    ("nodes", "id,label,a,b\nn50,bird,1,2\n", "a label must be a class of the graph, cat, dog (got 'bird')"),
    ("nodes", "id,a,b\nn50,1,x\n", "line 2: features must be numbers"),
    ("nodes", "id,a,b\nn50,1,inf\n", "line 2: features must be finite (got inf)"),
    ("nodes", "id,split,a,b\nn50,test,1,2\n", "a node in a split must have a label"),
    ("edges", "source,target\nn1,n99\n", "line 2: ends must be ids in the graph and the new nodes"),
    ("edges", "source,target,weight\nn1,n9,2\n", "weights are for graphs that have some"),
    ("remove-edges", "source,target\nn1,n20\n", "edges to remove must be in the graph (got n1,n20)"),
    ("remove-nodes", "id\nn77\n", "line 2: nodes to remove must be in the graph (got 'n77')"),
    ("remove-nodes", "name\nn7\n", "the header must be id (got name)"),
]


def test_bad_files_get_one_line_and_nothing_is_written(cli: Cli, named: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    for file, content, message in BAD:
        path.write_text(content)
        result = cli("update", named, f"--{file}", path, "--out", tmp_path / "out")
        assert result.code == 2
        assert message in result.err
        assert len(result.err.strip().splitlines()) == 1
        assert not (tmp_path / "out").exists()


def test_what_was_not_said_is_asked_for(cli: Cli, named: Path, tmp_path: Path) -> None:
    for more, got in (((), "got neither"), (("--to", "x.npz", "--edges", "y.csv"), "got --edges and --to")):
        result = cli("update", named, *more)
        assert (result.code, got in result.err) == (2, True)
    missing = cli("update", named, "--edges", tmp_path / "none.csv")
    assert "none.csv: no such file; check the path" in missing.err
    assert json.loads((named / "metrics.json").read_text())["seed"] == 0
