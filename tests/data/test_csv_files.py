from pathlib import Path

import pytest
import torch

from fastglt.data import load
from fastglt.errors import InputError

EDGES = "source,target\na,b\nb,c\nc,c\nb,a\n"
NODES = "id,label,f1,f2\na,cat,1,2\nb,dog,3,4.5\nc,cat,-1,1e3\n"


def write(folder: Path, edges: str = EDGES, nodes: str = NODES) -> str:
    (folder / "edges.csv").write_text(edges)
    (folder / "nodes.csv").write_text(nodes)
    return str(folder / "edges.csv")


def test_ids_labels_and_features(tmp_path: Path) -> None:
    dataset = load(write(tmp_path))
    assert (dataset.name, dataset.metric) == ("edges.csv", "accuracy")
    assert dataset.names == (("a", "b", "c"), ("cat", "dog"))
    assert dataset.data.edge_index.tolist() == [[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]
    assert dataset.data.y.tolist() == [0, 1, 0]
    assert dataset.data.x.tolist() == [[1, 2], [3, 4.5], [-1, 1000]]
    assert dataset.data.x.dtype == torch.float32
    assert dataset.data.train_mask.sum() == 2  # one of each class


def test_a_directed_graph_keeps_its_arcs(tmp_path: Path) -> None:
    assert load(write(tmp_path), directed=True).data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 2]]


def test_the_split_column(tmp_path: Path) -> None:
    nodes = "split,id,f,label\ntrain,1,0,5\nval,2,0,5\n,3,0,5\ntest,4,0,5\n"
    data = load(write(tmp_path, "source,target\n1,4\n", nodes)).data
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.val_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True]
    assert data.edge_index.tolist() == [[0, 3], [3, 0]]


def test_an_empty_split_column_leaves_the_split_to_the_seed(tmp_path: Path) -> None:
    nodes = "id,label,split,f\n" + "".join(f"{i},x,,1\n" for i in range(9))
    data = load(write(tmp_path, "source,target\n", nodes)).data
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [3, 3, 3]
    assert data.edge_index.shape == (2, 0)


def test_whole_number_labels_are_ordered_by_value(tmp_path: Path) -> None:
    nodes = "id,label,f\na,10,1\nb,9,1\nc,0,1\n"
    assert load(write(tmp_path, nodes=nodes)).data.y.tolist() == [2, 1, 0]


def test_two_spellings_of_a_number_are_one_class(tmp_path: Path) -> None:
    dataset = load(write(tmp_path, nodes="id,label,f\na,01,1\nb,1,1\nc,0,1\n"))
    assert dataset.data.y.tolist() == [1, 1, 0]
    assert dataset.names is not None
    assert dataset.names.classes == ("0", "1")


def test_a_label_below_zero_is_unknown_as_in_npz(tmp_path: Path) -> None:
    data = load(write(tmp_path, nodes="id,label,f\na,-1,1\nb,10,1\nc,9,1\n")).data
    assert data.y.tolist() == [-1, 1, 0]
    assert not (data.train_mask | data.val_mask | data.test_mask)[0]


def test_a_node_without_a_label_is_in_no_split(tmp_path: Path) -> None:
    data = load(write(tmp_path, nodes="id,label,f\na,,1\nb,10,1\nc,9,1\n")).data
    assert data.y.tolist() == [-1, 1, 0]
    assert not (data.train_mask | data.val_mask | data.test_mask)[0]


def test_spreadsheet_habits_are_forgiven(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "nodes.csv").write_bytes(b'\xef\xbb\xbfid, label ,f\r\n a ,x,1\r\nb,"y",2\r\n\r\nc,x,3\r\n')
    assert load(str(tmp_path)).data.y.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("", "edges.csv: the file is empty; its first line must name the columns"),
        (
            "from,to\na,b\n",
            "edges.csv: the header must be source,target or source,target,weight (got from,to); rename",
        ),
        (
            "source,target,colour\na,b,1\n",
            "(got source,target,colour); rename the columns and remove any others",
        ),
        ("source,target\na,b\na,z\n", "edges.csv, line 3: ends must be ids in "),
        ("source,target\na,b\na,z\n", "nodes.csv (got 'z'); add that node or fix the id"),
        ("source,target\na,b,c\n", "edges.csv, line 2: must have 2 cells (got 3); write source,target"),
        ("source,target,weight\na,b\n", "edges.csv, line 2: must have 3 cells (got 2); write source,target,weight"),
        ("source,target,weight\na,b,x\n", "edges.csv, line 2: a weight must be a finite number (got 'x')"),
        ("source,target,weight\na,b,inf\n", "edges.csv, line 2: a weight must be a finite number (got 'inf')"),
    ],
)
def test_a_flawed_edge_file_is_refused_in_one_line(edges: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, edges))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("", "nodes.csv: the file is empty; its first line must name the columns"),
        ("id,label,f\n", "nodes.csv: must have at least one labelled node (got none); add the nodes"),
        ("id,f\na,1\n", "nodes.csv: must have a column 'label' (got id, f); add it"),
        ("name,label,f\na,x,1\n", "nodes.csv: must have a column 'id' (got name, label, f); add it"),
        ("id,label,f,f\na,x,1,1\n", "nodes.csv: columns must differ (got 'f' twice); rename or remove one"),
        ("id,label\na,x\n", "nodes.csv: must have a feature column (got only id, label); add one"),
        (
            "id,label,f\na,x,1\na,x,1\n",
            "nodes.csv, line 3: ids must differ (got 'a' again); remove one of the two",
        ),
        ("id,label,f\na,,1\n", "nodes.csv: must have at least one labelled node (got none); add the nodes"),
        (
            "id,label,f,split\na,,1,val\n",
            "nodes.csv, line 2: a node in a split must have a label (got an empty cell); fill it in",
        ),
        (
            "id,label,f,split\na,-1,1,val\n",
            "nodes.csv, line 2: a node in a split must have a label (got '-1'); fill it in",
        ),
        (
            "id,label,f\na,nan,1\n",
            "nodes.csv, line 2: a label must name a class (got 'nan'); leave the cell empty for none",
        ),
        (
            "id,label,f\na,-1,1\nb,1,1\n",
            "labels below 0 mean that the class is unknown (got one other label, '1'); number the classes from 0",
        ),
        ("id,label,f\na,x\n", "nodes.csv, line 2: must have 3 cells, one per column (got 2); fix it"),
        (
            "id,label,f,g\na,x,1,2\nb,x,1,red\n",
            "nodes.csv, line 3, column 'g': features must be numbers (got 'red'); encode it as numbers or",
        ),
        ("id,label,f\na,x,\n", "nodes.csv, line 2, column 'f': features must be numbers (got '')"),
        (
            "id,label,f,split\na,x,1,dev\n",
            "nodes.csv, line 2: split must be train, val, test or empty (got 'dev'); correct it",
        ),
    ],
)
def test_a_flawed_node_file_is_refused_in_one_line(nodes: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load(write(tmp_path, nodes=nodes))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    name = write(tmp_path)
    (tmp_path / "nodes.csv").write_bytes(NODES.replace("cat", "Bär").encode("latin-1"))
    with pytest.raises(InputError, match=r"nodes\.csv: must be a CSV file in UTF-8 .*; save it again as such"):
        load(name)
