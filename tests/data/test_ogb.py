"""OGB's node sets by name and by path: what they hold, what they are called, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.ogb_folders import ARXIV, PROTEINS, random_tables, write, zipped

from fastglt.data import load
from fastglt.data.ogb import ARXIV as REAL_ARXIV
from fastglt.data.ogb import OGBNodeSet
from fastglt.data.origin import Origin
from fastglt.errors import InputError

NAN = float("nan")


def test_a_folder_of_classes(tmp_path: Path) -> None:
    folder = write(tmp_path / "papers", ARXIV)
    for place in (folder, zipped(folder, tmp_path / "papers.zip")):
        found = load(str(place))
        data = found.data
        assert (found.name, found.metric) == ("papers", "accuracy")
        assert data.edge_index.tolist() == [
            [0, 0, 1, 1, 2, 3, 4],
            [1, 4, 0, 2, 1, 3, 0],
        ]  # both ways, the loop once
        assert data.y.tolist() == [0, 1, 1, 0, 1]
        assert data.x.tolist()[4] == pytest.approx([7, 0.008])
        assert [data[f"{part}_mask"].nonzero().ravel().tolist() for part in ("train", "val", "test")] == [
            [0, 1],
            [2, 3],
            [4],
        ]
    assert load(str(folder), directed=True).data.edge_index.tolist() == [[0, 1, 2, 3, 4], [1, 2, 1, 3, 0]]


def test_many_labels_and_sums_of_edge_features(tmp_path: Path) -> None:
    found = load(str(write(tmp_path / "mine", PROTEINS)))
    data = found.data
    assert found.metric == "roc_auc"
    np.testing.assert_array_equal(
        data.y.numpy(), np.array([[0, 1, 0], [1, 0, NAN], [1, 1, 0], [0, 0, 1], [0, 1, 1]])
    )
    assert data.edge_index.tolist() == [[0, 0, 1, 1, 2, 3, 4], [1, 4, 0, 2, 1, 3, 0]]
    assert data.edge_attr.tolist() == [[1, 0.5], [0.25, 0], [1, 0.5], [0, 2], [0, 2], [4, 4], [0.25, 0]]
    assert data.x.tolist() == [[1.25, 0.5], [1, 2.5], [0, 2], [4, 4], [0.25, 0]]


def test_species_are_features_by_choice(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", PROTEINS)
    found = load(f"{folder}:species")
    assert found.name == "mine:species"
    assert found.data.x[:, 2:].tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    origin = Origin.of(f"{folder}:species", directed=False)
    assert origin is not None
    record = origin.record(tmp_path / "run")
    again = Origin.read(record, tmp_path / "run")
    assert again.dataset == f"{folder}:species"
    (folder / "raw/edge.csv.gz").write_bytes(b"other")
    with pytest.raises(InputError, match=r"edge.csv.gz' has changed since the ticket was found"):
        _ = again.dataset


FLAWS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "labels and years swapped": (
        ARXIV,
        {"node_label": [[0.5]] * 5},
        r"raw/node-label.csv.gz must have class numbers 0, 1, 2, … \(got 0.5\)",
    ),
    "classes in two columns": (ARXIV, {"node_label": [[0, 7]] * 5}, r"must have 0, 1 or nan where .* \(got 7\)"),
    "features and labels swapped": (
        PROTEINS,
        {"node_label": [[0.5, 1]] * 5},
        r"must have 0, 1 or nan .* \(got 0.5\)",
    ),
    "unknown features": (
        ARXIV,
        {"node_feat": [[1, 2], [3, "nan"], *[[0, 0]] * 3]},
        r"raw/node-feat.csv.gz must have finite numbers \(got nan in row 1, column 1\)",
    ),
    "no features": (ARXIV, {"node_feat": None}, r"must have raw/node-feat.csv.gz \(got none of the name"),
    "no labels": (ARXIV, {"node_label": None}, r"must have raw/node-label.csv.gz \(got none of the name"),
    "too few edge features": (PROTEINS, {"edge_feat": [[1, 2]]}, r"raw/edge-feat.csv.gz must have 4 rows"),
    "an edge with two rows": (
        PROTEINS,
        {"edge": [[0, 1], [1, 0], [3, 3], [4, 0]]},
        r"raw/edge-feat.csv.gz must have one row for an edge, .* \(got different ones in rows 0 and 1\)",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_one_clear_line(flaw: str, tmp_path: Path) -> None:
    tables, changes, message = FLAWS[flaw]
    with pytest.raises(InputError, match=message) as caught:
        load(str(write(tmp_path / "set", tables, **changes)))
    assert "\n" not in str(caught.value)


def test_species_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have raw/node_species.csv.gz"):
        load(f"{write(tmp_path / 'set', ARXIV)}:species")


def test_a_named_set_that_is_not_at_hand_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no ogbn_proteins/ and no proteins.zip; .*OGB's own downloader, `pip ins"
    ):
        load("ogbn-proteins", root=tmp_path)
    assert REAL_ARXIV.where(tmp_path) == "not at hand"


def test_a_named_set_of_another_size_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "ogbn_arxiv", ARXIV)
    assert REAL_ARXIV.where(tmp_path) == f"in {tmp_path}"
    with pytest.raises(InputError, match=r"must have 169,343 nodes and 1,166,243 listed edges \(got 5 and 5\)"):
        load("ogbn-arxiv", root=tmp_path)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> OGBNodeSet:
    """Stands for ogbn-arxiv: nothing but its size is another one."""
    small = OGBNodeSet(name="ogbn-arxiv", zipped="arxiv", nodes=30, listed=60, columns=4, labels=1)
    monkeypatch.setattr("fastglt.data.ogb.ARXIV", small)
    return small


@pytest.mark.parametrize("place", ["ogbn_arxiv", "ogbn_arxiv_pyg", "arxiv", "arxiv.zip"])
def test_a_named_set_is_found_where_ogb_puts_it(place: str, small: OGBNodeSet, tmp_path: Path) -> None:
    tables = random_tables(30, 60, columns=4)
    if place.endswith(".zip"):
        zipped(write(tmp_path / "elsewhere" / "a", tables), tmp_path / place)
    else:
        write(tmp_path / place, tables)
    parts = small.parts(tmp_path, 0)
    assert parts.known_as == "ogbn-arxiv"
    assert parts.edges.shape == (2, 120)


def test_features_that_are_not_ogbs_are_told(small: OGBNodeSet, tmp_path: Path) -> None:
    folder = write(tmp_path / "ogbn_arxiv", random_tables(30, 60, columns=3))
    told = "ogbn-arxiv's graph, substitute features"
    assert small.parts(tmp_path, 0).known_as == told
    assert load(str(folder)).name == told


def test_the_real_graph_with_substitute_features(real: Any) -> None:
    root = real("ogbn_arxiv")
    found = load("ogbn-arxiv's graph, substitute features", root=root)  # as a run remembers it
    assert found.name == "ogbn-arxiv's graph, substitute features"
    assert found.tensors["edge_index"].shape == (2, 2315598)
    assert [int(found.tensors[f"{part}_mask"].sum()) for part in ("train", "val", "test")] == [90941, 29799, 48603]
    assert torch.equal(found.tensors["y"].unique(), torch.arange(40))
