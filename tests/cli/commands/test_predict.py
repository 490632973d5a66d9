"""`fastglt predict`."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from fastglt import Predictor, Ticket, compile_ticket
from fastglt.cli.commands.predict import read_nodes
from fastglt.data import load
from fastglt.errors import InputError
from tests.cli.conftest import TINY, Cli
from tests.toy_data import USER_MODELS, quick_ticket, toy_data


@pytest.fixture
def run(find: Cli, tmp_path: Path) -> Path:
    """The folder of a finished run."""
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def probabilities(run: Path) -> torch.Tensor:
    """As Python gives them."""
    data = load(TINY).data
    return compile_ticket(Ticket.load(run / "ticket.safetensors", data), data, layout="dense").logits().softmax(1)


def test_every_node_and_the_score_of_the_search(cli: Cli, run: Path) -> None:
    found = cli("predict", run, "--json").document
    expected = probabilities(run)
    rows = found.pop("predictions")
    assert [row["node"] for row in rows] == list(range(80))
    assert [row["class"] for row in rows] == expected.argmax(1).tolist()
    np.testing.assert_allclose([row["probabilities"] for row in rows], expected, atol=1e-6)
    scores = cli("show", run, "--json").document["scores"]
    tests = int(load(TINY).tensors["test_mask"].sum())
    assert found == {
        "nodes": 80,
        "classes": 3,
        "metric": "accuracy",
        "test_nodes": tests,
        "test_score": pytest.approx(scores["search_test"]),
    }


def test_a_table_of_the_first_nodes(cli: Cli, run: Path) -> None:
    lines = cli("predict", run).out.splitlines()
    top = probabilities(run).max(1)
    assert lines[2].split() == ["0", str(int(top.indices[0])), f"{float(top.values[0]):.3f}"]
    assert lines[-2] == "… and 70 more; --out writes them all"
    assert lines[-1].startswith("accuracy on the ")
    assert lines[-1].endswith(" %")


def test_every_node_is_no_list_of_nodes(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, logits = [], Predictor.logits

    def listen(self: Predictor, nodes: object = None) -> torch.Tensor:
        asked.append(nodes)
        return logits(self, nodes)  # type: ignore[arg-type]

    monkeypatch.setattr(Predictor, "logits", listen)
    assert cli("predict", run).code == 0
    assert asked == [None]


def test_some_nodes_from_a_list_or_a_file(cli: Cli, run: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("7\n\n3\n 7 \n")
    for nodes, ids in (("5,0-2", [5, 0, 1, 2]), (tmp_path / "ids.txt", [7, 3, 7])):
        rows = cli("predict", run, "--nodes", nodes, "--json").document["predictions"]
        assert [row["node"] for row in rows] == ids
        np.testing.assert_allclose([row["probabilities"] for row in rows], probabilities(run)[ids], atol=1e-6)


def test_files(cli: Cli, run: Path, tmp_path: Path) -> None:
    expected = probabilities(run)
    text = cli("predict", run, "--out", tmp_path / "new" / "a.npz").out
    assert "80 predictions written to" in text
    with np.load(tmp_path / "new" / "a.npz") as file:
        assert file["nodes"].tolist() == list(range(80))
        assert file["classes"].tolist() == expected.argmax(1).tolist()
        np.testing.assert_allclose(file["probabilities"], expected, atol=1e-6)
    found = cli("predict", run, "--nodes", "9,4", "--out", tmp_path / "a.csv", "--json").document
    assert found["out"] == str(tmp_path / "a.csv")
    assert "predictions" not in found
    rows = list(csv.reader((tmp_path / "a.csv").read_text().splitlines()))
    assert rows[0] == ["node", "class", "p0", "p1", "p2"]
    assert [row[:2] for row in rows[1:]] == [[str(node), str(int(expected[node].argmax()))] for node in (9, 4)]
    np.testing.assert_allclose([list(map(float, row[2:])) for row in rows[1:]], expected[[9, 4]], atol=1e-6)


def test_a_node_that_is_asked_for_twice_is_scored_once(cli: Cli, run: Path) -> None:
    once, twice = (cli("predict", run, "--nodes", nodes, "--json").document for nodes in ("0-79", "0-79,0-79,5"))
    assert len(twice["predictions"]) == 161
    assert (once["test_nodes"], once["test_score"]) == (twice["test_nodes"], twice["test_score"])


@pytest.mark.parametrize("settings", [{"dataset": ["digits"]}, {"dataset": "digits", "split_seed": None}, [], "x"])
def test_a_record_that_makes_no_sense_is_named(cli: Cli, run: Path, tmp_path: Path, settings: object) -> None:
    shutil.copy(run / "ticket.safetensors", tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"settings": settings}))
    result = cli("predict", tmp_path)
    assert (result.code, "run.json' cannot be read; pass --dataset" in result.err) == (2, True), result.err


def test_no_test_nodes_have_no_score(cli: Cli, run: Path) -> None:
    train = int(load(TINY).tensors["train_mask"].nonzero()[0])
    found = cli("predict", run, "--nodes", train, "--json").document
    assert (found["test_nodes"], found["test_score"]) == (0, None)
    assert "accuracy" not in cli("predict", run, "--nodes", train).out


def test_graph_is_another_name_for_the_dataset(cli: Cli, run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((run / "ticket.safetensors").read_bytes())
    expected = cli("predict", run, "--json").document
    for option in ("--graph", "--dataset"):
        assert cli("predict", alone, option, TINY, "--json").document == expected


def test_another_graph_only_on_request(cli: Cli, run: Path) -> None:
    other = f"{TINY},seed=1"
    result = cli("predict", run, "--dataset", other)
    assert (result.code, "found on another graph" in result.err) == (2, True), result.err
    found = cli("predict", run, "--dataset", other, "--other-graph", "--json")
    first, second = found.err.splitlines()
    assert first == f"warning: {run}: the features differ from those the ticket was found on"
    assert second.startswith(f"warning: {run}: labels or split are not the search's")
    assert len(found.document["predictions"]) == 80
    wider = cli("predict", run, "--dataset", TINY.replace("16", "17"), "--other-graph")
    assert (wider.code, "reads 16 features of each node (got a graph with 17)" in wider.err) == (2, True)


def test_wrong_questions(cli: Cli, run: Path, tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00")
    for arguments, message in (
        (("--nodes", "3,80"), "nodes must lie in 0 … 79 (got '80', '3,80')"),
        (("--dataset", ""), "unknown dataset (got '')"),
        (("--nodes", " "), "nodes must be at least one (got ' ')"),
        (("--nodes", "none.txt"), "a file with one id on a line (got 'none.txt')"),
        (("--nodes", tmp_path / "picture"), "it is not text"),
        (("--out", "a.txt"), "written to .npz or .csv (got 'a.txt')"),
    ):
        result = cli("predict", run, *arguments)
        assert (result.code, message in result.err) == (2, True), result.err


def test_a_users_model_is_told_where_to_go(cli: Cli, tmp_path: Path) -> None:
    quick_ticket(USER_MODELS["GCN"](), toy_data(), isolated=False).save(tmp_path / "ticket.safetensors")
    result = cli("predict", tmp_path, "--dataset", TINY)
    assert (result.code, "fastglt.compile_ticket(ticket, data, model)" in result.err) == (2, True), result.err


def test_what_is_wrong_is_told_once() -> None:
    for text, ids, got in (
        ("zz", ["a"], "'zz'"),
        ("a,zz", ["a"], "'zz', 'a,zz'"),
        ("4-2", None, "'4-2'"),
        ("80", None, "'80'"),
    ):
        with pytest.raises(InputError, match=rf"^nodes must .* \(got {got}\)$"):
            read_nodes(text, 10, ids)


@pytest.mark.parametrize("text", ["4-2", "1--2", "-1", ",", "1,2 3"])
def test_lists_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="nodes must be"):
        read_nodes(text, 10)


def test_a_huge_range_is_refused_before_it_is_made() -> None:
    with pytest.raises(InputError, match=r"nodes must lie in 0 … 9 \(got '999999999999', "):
        read_nodes("0-999999999999", 10)


def test_nodes_and_classes_are_called_as_in_a_csv_file(cli: Cli, tmp_path: Path) -> None:
    """Ids that are numbers, but not those of the rows."""
    ids, kinds = [f"{(7 * row) % 60}" for row in range(60)], ("ant", "bee", "cow")
    nodes = [f"{name},{kinds[row % 3]},{row % 3},{row % 2}" for row, name in enumerate(ids)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,f,g", *nodes]))
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"{i},{(i + 1) % 60}" for i in range(60)))
    short = ("--hidden", "4", "--oneshot-epochs", "1", "--denoise-epochs", "2", "--interval", "1", "--threads", "1")
    assert cli("find", "--dataset", tmp_path, *short, "--quiet", "--out", tmp_path / "run").code == 0
    asked = ("predict", tmp_path / "run", "--dataset", tmp_path)
    rows = cli(*asked, "--json").document["predictions"]
    assert [row["id"] for row in rows] == ids
    assert [row["label"] for row in rows] == [kinds[row["class"]] for row in rows]
    some = cli(*asked, "--nodes", "7-8,14", "--json").document["predictions"]
    assert [(row["id"], row["node"]) for row in some] == [("7", 1), ("8", ids.index("8")), ("14", 2)]
    assert cli(*asked, "--out", tmp_path / "all.csv").code == 0
    with (tmp_path / "all.csv").open() as file:
        written = list(csv.DictReader(file))
    assert list(written[0]) == ["node", "class", "id", "label", "p0", "p1", "p2"]
    assert [row["id"] for row in written] == ids
    assert cli(*asked, "--nodes", "14,7", "--out", tmp_path / "two.npz").code == 0
    with np.load(tmp_path / "two.npz") as arrays:
        assert arrays["ids"].tolist() == ["14", "7"]
        assert arrays["labels"].tolist() == [kinds[kind] for kind in arrays["classes"]]
    assert "must be ids of the graph's file (got '77')" in cli(*asked, "--nodes", "77").err
    assert "must be ids of the graph's file (got '60', '50-61')" in cli(*asked, "--nodes", "50-61").err
    assert "must be ids of the graph's file (got '8-7')" in cli(*asked, "--nodes", "8-7").err
    assert "(got 'a" in cli(*asked, "--nodes", ",".join(["a"] * 4000)).err
    (tmp_path / "asked.txt").write_text("14\n7\n")
    some = cli(*asked, "--nodes", tmp_path / "asked.txt", "--json").document["predictions"]
    assert [row["id"] for row in some] == ["14", "7"]


def test_labels_that_are_not_the_runs_name_no_class(cli: Cli, tmp_path: Path) -> None:
    """Without the first class the others would be numbered otherwise."""
    short = ("--hidden", "4", "--oneshot-epochs", "1", "--denoise-epochs", "2", "--interval", "1", "--threads", "1")
    nodes = "id,label,f,g\n" + "".join(f"n{row},{'abc'[row % 3]},{row % 3},{row % 2}\n" for row in range(60))
    (tmp_path / "nodes.csv").write_text(nodes)
    edges = "".join(f"n{i},n{(i + 1) % 60}\n" for i in range(60))
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}")
    assert cli("find", "--dataset", tmp_path, *short, "--quiet", "--out", tmp_path / "run").code == 0
    (tmp_path / "nodes.csv").write_text(nodes.replace(",a,", ",,"))
    asked = ("predict", tmp_path / "run", "--dataset", tmp_path)
    (row,) = cli(*asked, "--nodes", "n7", "--json").document["predictions"]
    assert list(row) == ["node", "class", "id", "probabilities"]
    assert cli(*asked, "--out", tmp_path / "all.npz").code == 0
    with np.load(tmp_path / "all.npz") as arrays:
        assert set(arrays) == {"nodes", "classes", "probabilities", "ids"}


def test_another_split_is_told(cli: Cli, run: Path) -> None:
    """What are test nodes now may have been trained on."""
    assert "warning" not in cli("predict", run).err
    result = cli("predict", run, "--split-seed", "7")
    assert result.code == 0
    assert f"warning: {run}: labels or split are not the search's" in result.err
