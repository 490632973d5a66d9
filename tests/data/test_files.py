from pathlib import Path

import pytest

from fastglt.data import load
from fastglt.errors import InputError

EDGES = "source,target\n1,2\n"
NODES = "id,label,f\n1,0,1\n2,1,1\n"


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    folder = tmp_path / "c++.csv" / "graph"
    folder.mkdir(parents=True)
    (folder / "edges.csv").write_text(EDGES)
    (folder / "nodes.csv").write_text(NODES)
    return folder


def test_a_folder_is_named_after_itself(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(str(graph)).name == "graph.csv"
    monkeypatch.chdir(graph.parent)
    assert load("graph").name == "graph.csv"


def test_an_edge_file_finds_the_nodes_beside_it(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(graph)
    assert load("edges.csv").data.num_nodes == 2


def test_both_files_by_name(graph: Path, tmp_path: Path) -> None:
    (graph / "edges.csv").rename(tmp_path / "links.csv")
    (graph / "nodes.csv").rename(tmp_path / "people.csv")
    dataset = load(f"{tmp_path}/links.csv+{tmp_path}/people.csv")
    assert dataset.name == "links.csv"
    assert dataset.data.num_edges == 2


def test_a_home_folder_is_found(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(graph.parent))
    assert load("~/graph").data.num_nodes == 2


@pytest.mark.parametrize(
    ("lost", "name", "message"),
    [
        ("nodes.csv", "edges.csv", "nodes.csv: no such file; put the nodes there, or name both files as"),
        ("edges.csv", "edges.csv", "edges.csv: no such file; check the path"),
        ("edges.csv", ".", "edges.csv: no such file; check the path"),
        ("nodes.csv", "edges.csv+other.csv", "other.csv: no such file; put the nodes there"),
    ],
)
def test_a_lost_file(lost: str, name: str, message: str, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(graph)
    (graph / lost).unlink()
    with pytest.raises(InputError) as caught:
        load(name)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["edges.parquet", "edges.parquet+nodes.parquet"])
def test_parquet_files_have_to_be_prepared(name: str) -> None:
    with pytest.raises(InputError, match=r"must be prepared first \(got .parquet\); `fastglt data prepare edges"):
        load(name)


def test_an_unknown_extension(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("1 2")
    with pytest.raises(InputError) as caught:
        load(str(tmp_path / "graph.txt"))
    assert "must be a .npz file, a .csv file or a folder with edges.csv and nodes.csv (got .txt)" in str(
        caught.value
    )
