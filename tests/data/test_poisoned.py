import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix, save_npz
from tests.data.poisoned_folders import NODES, write_poisoned

from fastglt.data import load
from fastglt.data.loading import is_path
from fastglt.data.poisoned import PoisonedGraph
from fastglt.errors import InputError
from fastglt.studies.lists import read_names


def pairs(dataset: object) -> set[tuple[int, int]]:
    return {(a, b) for a, b in dataset.tensors["edge_index"].T.tolist() if a < b}  # type: ignore[attr-defined]


def test_an_attacked_graph_has_the_clean_ones_features_labels_and_split(tmp_path: Path) -> None:
    write_poisoned(tmp_path)
    clean, attacked = (load(f"poisoned:{name}", root=tmp_path) for name in ("toy", "TOY, meta=0.250"))
    assert (clean.name, attacked.name) == ("poisoned:toy", "poisoned:toy,meta=0.25")
    assert pairs(attacked) - pairs(clean) == {(0, 6), (1, 7)}
    assert pairs(clean) <= pairs(attacked)
    assert len(pairs(clean)) == NODES
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        assert clean.tensors[name].tolist() == attacked.tensors[name].tolist()
    assert clean.tensors["y"].tolist() == [node % 3 for node in range(NODES)]  # the largest component's, in order
    assert clean.tensors["x"].to_dense()[0].tolist() == [0, 1, 0, 0, 0]  # as they are: not normalised
    assert clean.tensors["test_mask"].nonzero().flatten().tolist() == [7, 8, 9, 10]


def test_nettack_is_tested_on_its_targets(tmp_path: Path) -> None:
    write_poisoned(tmp_path)
    attacked = load("poisoned:toy,nettack=2", root=tmp_path)
    assert attacked.tensors["test_mask"].nonzero().flatten().tolist() == [8, 10]
    assert (3, 8) in pairs(attacked)
    assert (0, 1) not in pairs(attacked)


def test_the_path_of_an_attacked_adjacency_is_enough(tmp_path: Path) -> None:
    path = write_poisoned(tmp_path) / "meta" / "toy_meta_adj_0.25.npz"
    assert pairs(load(str(path))) == pairs(load("poisoned:toy,meta=0.25", root=tmp_path))
    assert is_path(str(path))
    assert not is_path("poisoned:toy,meta=0.25")


def test_clean_edges_tell_what_was_added(tmp_path: Path) -> None:
    write_poisoned(tmp_path)
    source = PoisonedGraph.parse("toy,meta=0.25")
    assert source.clean_edges(tmp_path).shape == (2, 2 * NODES)
    assert source.parts(tmp_path, 0).edges.shape == (2, 2 * NODES + 4)


def test_recipes_stay_whole_in_lists() -> None:
    assert read_names("datasets", "cora,poisoned:cora,meta=0.25,digits") == [
        "cora",
        "poisoned:cora,meta=0.25",
        "digits",
    ]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("poisoned", "is named poisoned:GRAPH"),
        ("poisoned:toy,meta", "is named poisoned:GRAPH"),
        ("poisoned:toy,fga=1", "is named poisoned:GRAPH"),
        ("poisoned:toy,meta=0.3", "there is no toy with meta=0.3 .got 0.25."),
        ("poisoned:other", "no such file"),
    ],
)
def test_a_name_that_means_nothing_is_one_line(tmp_path: Path, name: str, rule: str) -> None:
    write_poisoned(tmp_path)
    with pytest.raises(InputError, match=rule) as caught:
        load(name, root=tmp_path)
    assert "\n" not in str(caught.value)


def test_without_a_root_it_says_where_to_put_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FASTGLT_DATA", raising=False)
    with pytest.raises(InputError, match="--data-root"):
        load("poisoned:cora")


def test_damaged_files_are_named(tmp_path: Path) -> None:
    folder = write_poisoned(tmp_path)
    attacked, split = folder / "meta" / "toy_meta_adj_0.25.npz", folder / "splits" / "toy_prognn_splits.json"
    save_npz(attacked, csr_matrix(np.eye(3, dtype=np.float32)))
    with pytest.raises(InputError, match=r"must have the 12 nodes .* \(got 3\)"):
        load("poisoned:toy,meta=0.25", root=tmp_path)
    attacked.write_bytes(b"no archive")
    with pytest.raises(InputError, match="must be a sparse matrix or network"):
        load("poisoned:toy,meta=0.25", root=tmp_path)
    split.write_text(json.dumps({"idx_train": [99], "idx_val": [1], "idx_test": [2]}))
    with pytest.raises(InputError, match="idx_train must list node numbers from 0 to 11"):
        load("poisoned:toy", root=tmp_path)
    split.write_text("{}")
    with pytest.raises(InputError, match="must be JSON with lists idx_train"):
        load("poisoned:toy", root=tmp_path)
