"""Files of changes: weights, directions and removals, and the graph written down and read again."""

from pathlib import Path

import pytest
import torch

from fastglt import InputError
from fastglt.data import Dataset, load
from fastglt.data.base import Names
from fastglt.data.changes import ChangeFiles
from fastglt.data.writing import write_graph


def weighted(folder: Path, *, directed: bool = False) -> Dataset:
    """Four nodes with names on a path, weights 1, 2, 3."""
    (folder / "nodes.csv").write_text("id,label,split,x\na,u,train,0.1\nb,v,val,0.2\nc,u,test,0.3\nd,v,test,0.4\n")
    (folder / "edges.csv").write_text("source,target,weight\na,b,1\nb,c,2\nc,d,3\n")
    return load(str(folder), directed=directed)


def edges(dataset: Dataset) -> dict[tuple[int, int], float]:
    pairs = dataset.tensors["edge_index"].T.tolist()
    return {(a, b): weight for (a, b), weight in zip(pairs, dataset.tensors["edge_weight"].tolist(), strict=True)}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_weights_and_both_directions_follow(tmp_path: Path) -> None:
    before = weighted(tmp_path)
    files = ChangeFiles(
        nodes=written(tmp_path / "n.csv", "id,x\ne,0.5\n"),
        edges=written(tmp_path / "e.csv", "source,target,weight\ne,d,4.5\na,b,9\n"),
        remove_edges=written(tmp_path / "g.csv", "source,target\nc,b\n"),
        remove_nodes=written(tmp_path / "r.csv", "id\na\n"),
    )
    after, numbers = files.applied_to(before, directed=False)
    assert numbers.tolist() == [1, 2, 3, -1]
    assert after.names is not None
    assert after.names.nodes == ("b", "c", "d", "e")
    assert edges(after) == {(1, 2): 3.0, (2, 1): 3.0, (2, 3): 4.5, (3, 2): 4.5}
    assert after.tensors["y"].tolist() == [1, 0, 1, -1]
    assert [int(after.tensors[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [0, 1, 2]
    again = load(write_graph(after, tmp_path / "out"))
    assert edges(again) == edges(after)
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(again.tensors[name], after.tensors[name]), name
    assert again.names == after.names


def test_an_edge_that_is_there_keeps_its_weight_and_arrows_are_one_way(tmp_path: Path) -> None:
    before = weighted(tmp_path, directed=True)
    more = written(tmp_path / "e.csv", "source,target,weight\na,b,9\nb,a,5\n")
    after, _ = ChangeFiles(edges=more).applied_to(before, directed=True)
    assert edges(after) == {(0, 1): 1.0, (1, 0): 5.0, (1, 2): 2.0, (2, 3): 3.0}
    reverse = written(tmp_path / "g.csv", "source,target\nb,a\n")
    with pytest.raises(InputError, match=r"edges to remove must be in the graph \(got b,a\)"):
        ChangeFiles(remove_edges=reverse).applied_to(before, directed=True)


@pytest.mark.parametrize("directed", [False, True])
def test_an_edge_with_two_weights_is_refused_with_its_line(tmp_path: Path, directed: bool) -> None:
    before = weighted(tmp_path, directed=directed)
    again = "\na,d,8" if directed else "\nd,a,8"
    more = written(tmp_path / "e.csv", f"source,target,weight\na,d,7\n\nd,b,2{again}\n")
    message = r"e\.csv, line 5: an edge must have the same weight .*\(got 7 and 8 between a and d\); keep one"
    with pytest.raises(InputError, match=message):
        ChangeFiles(edges=more).applied_to(before, directed=directed)
    same = written(tmp_path / "e.csv", "source,target,weight\na,d,7\nd,a,7\n")
    after, _ = ChangeFiles(edges=same).applied_to(before, directed=directed)
    assert (edges(after)[0, 3], edges(after)[3, 0]) == (7.0, 7.0)


def test_what_a_file_cannot_say_is_refused(tmp_path: Path) -> None:
    before = weighted(tmp_path)
    plain = written(tmp_path / "e.csv", "source,target\na,d\n")
    with pytest.raises(InputError, match="new edges of a weighted graph must have a weight"):
        ChangeFiles(edges=plain).applied_to(before, directed=False)


@pytest.mark.parametrize("directed", [False, True])
def test_a_class_without_nodes_keeps_its_number(tmp_path: Path, directed: bool) -> None:
    """As a CSV file could not tell: `v` would be the first class there."""
    before = weighted(tmp_path, directed=directed)
    gone = written(tmp_path / "r.csv", "id\na\nc\n")
    after, _ = ChangeFiles(remove_nodes=gone).applied_to(before, directed=directed)
    where = write_graph(after, tmp_path / "out")
    assert write_graph(after, tmp_path / "out") == where, "written once"
    again = load(where)
    assert (again.names, again.directed) == (after.names, directed)
    assert again.names == Names(("b", "d"), ("u", "v"))
    for name, value in after.tensors.items():
        assert torch.equal(again.tensors[name], value), name


def test_a_graph_without_names_is_numbered_on_and_stays_sparse(tmp_path: Path) -> None:
    before = load("digits")
    width = before.tensors["x"].shape[1]
    count = before.tensors["x"].shape[0]
    header = ",".join(["id", "label", "split", *(f"p{at}" for at in range(width))])
    row = ",".join([str(count), "3", "test", *["0.5"] * width])
    after, numbers = ChangeFiles(nodes=written(tmp_path / "n.csv", f"{header}\n{row}\n")).applied_to(
        before, directed=False
    )
    assert numbers[-1] == -1
    assert after.tensors["x"].layout == before.tensors["x"].layout
    again = load(write_graph(after, tmp_path / "out"))
    assert torch.equal(again.tensors["x"].to_dense(), after.tensors["x"].to_dense())
    assert torch.equal(again.tensors["edge_index"], after.tensors["edge_index"])
    skipped = ",".join([str(count + 1), "3", "test", *["0.5"] * width])
    with pytest.raises(InputError, match=f"numbered on, here from {count}"):
        ChangeFiles(nodes=written(tmp_path / "n.csv", f"{header}\n{skipped}\n")).applied_to(before, directed=False)
