"""Files in OGB's layout: what is read from a folder or a zip, and one line for each flaw."""

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.data.ogb_folders import ARXIV, write, zipped

from fastglt.data.ogb_files import OGBFiles
from fastglt.errors import InputError


def files_of(folder: Path) -> OGBFiles:
    found = OGBFiles.at(folder)
    assert found is not None
    return found


def test_a_folder_and_its_zip_are_the_same(tmp_path: Path) -> None:
    folder = write(tmp_path / "ogbn_arxiv", ARXIV)
    for files in (files_of(folder), files_of(zipped(folder, tmp_path / "arxiv.zip"))):
        assert files.counts == (5, 5)
        assert [part.tolist() for part in files.edges()] == [[0, 2, 1, 3, 4], [1, 1, 2, 3, 0]]
        assert files.split_folder == "split/time"
        assert [files.split_nodes(part).tolist() for part in ("train", "valid", "test")] == [[0, 1], [3, 2], [4]]
        assert files.kind == "nodes"
        features = files.table("raw/node-feat.csv.gz", np.float32, rows=5)
        np.testing.assert_array_equal(features, np.array(ARXIV["raw/node-feat"], dtype=np.float32))


def test_other_places_are_none(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n")
    assert OGBFiles.at(tmp_path) is None
    assert OGBFiles.at(tmp_path / "edges.csv") is None
    assert OGBFiles.at(tmp_path / "nowhere.zip") is None


def edges(files: OGBFiles) -> object:
    return files.edges()


def features(files: OGBFiles) -> object:
    return files.table("raw/node-feat.csv.gz", np.float32, rows=files.counts[0])


def train(files: OGBFiles) -> object:
    return files.split_nodes("train")


FLAWS: dict[str, tuple[Callable[[OGBFiles], object], dict[str, Any], str]] = {
    "a file is missing": (
        edges,
        {"num_node_list": None},
        r"must have raw/edge.csv.gz, raw/num-node-list.csv.gz, .* \(got none of the name raw/num-node-list",
    ),
    "ids out of range": (
        edges,
        {"edge": [[0, 1], [1, 5], *ARXIV["raw/edge"][2:]]},
        r"raw/edge.csv.gz must have node numbers from 0 to 4 \(got 5 in row 1\)",
    ),
    "negative ids": (edges, {"edge": [[-1, 1]] * 5}, r"from 0 to 4 \(got -1 in row 0\)"),
    "fewer edges": (edges, {"edge": [[0, 1]]}, r"must have 5 rows, as num-node-list .* say \(got 1\)"),
    "more edges": (edges, {"edge": [[0, 1]] * 9}, r"must have 5 rows, .* \(got more\)"),
    "a third column": (edges, {"edge": [[0, 1, 2013]] * 5}, r"must have 2 columns \(got 3\)"),
    "fractions as ids": (edges, {"edge": [[0, 1]] * 4 + [[0.5, 1]]}, r"must be a table of whole numbers, .* '0.5'"),
    "words": (features, {"node_feat": [["a", 1]] * 5}, r"must be a table of numbers, .* \(got could not convert"),
    "ragged rows": (features, {"node_feat": [[1, 2]] * 4 + [[1]]}, r"in rows of one length \(got the .* 2 to 1"),
    "infinity": (
        features,
        {"node_feat": [[1, 2]] * 3 + [[1, "inf"]] * 2},
        r"must have finite numbers \(got inf in row 3, column 1\)",
    ),
    "several graphs": (edges, {"num_node_list": [[3], [2]]}, r"must have one number, .* \(got \[3, 2\]\)"),
    "nodes twice": (
        train,
        {"train": [[0], [0]]},
        r"split/time/train.csv.gz must name each node once \(got 1 repeats",
    ),
    "no node's id": (train, {"train": [[0], [5]]}, r"split/time/train.csv.gz must have node numbers .* \(got 5"),
    "half a split": (
        train,
        {"valid": None},
        r"must have split/time/train.csv.gz, .*none of the name split/time/valid",
    ),
    "no split": (
        train,
        {"train": None, "valid": None, "test": None},
        r"must have one split, split/<name>/train.csv",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_flaw_is_one_clear_line(flaw: str, tmp_path: Path) -> None:
    read, changes, message = FLAWS[flaw]
    folder = write(tmp_path / "set", ARXIV, **changes)
    with pytest.raises(InputError, match=message) as caught:
        read(files_of(folder))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{folder}: ")
    assert str(caught.value).endswith("replace it with a fresh copy")


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", ARXIV)
    path = folder / "raw/edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"raw/edge.csv.gz must be a whole archive \(got Compressed file ended"):
        files_of(folder).edges()
    path.write_bytes(b"0,1\n1,2\n")  # not packed at all
    with pytest.raises(InputError, match=r"raw/edge.csv.gz must be a whole archive \(got Not a gzipped file"):
        files_of(folder).edges()


def test_a_damaged_zip_is_named(tmp_path: Path) -> None:
    path = zipped(write(tmp_path / "set", ARXIV), tmp_path / "arxiv.zip")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"arxiv.zip must be a whole archive \(got File is not a zip file"):
        OGBFiles.at(path)


def test_a_line_without_end_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "set", ARXIV)
    (folder / "raw/edge.csv.gz").write_bytes(gzip.compress(b"1" * (1 << 21)))
    with pytest.raises(InputError, match=r"\(got a line of 1,048,576 characters\)"):
        files_of(folder).edges()


def test_arrays_in_pt_files_are_read_and_code_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "split/time").mkdir(parents=True)
    path = tmp_path / "split/time/train.pt"
    torch.save({"edge": np.array([[0, 1], [1, 2]]), "weight": torch.tensor([1.5, 2.0])}, path)
    files = files_of(tmp_path)
    assert files.kind == "links"
    found = files.pickled("split/time/train.pt")
    assert (found["edge"].tolist(), found["weight"].tolist()) == ([[0, 1], [1, 2]], [1.5, 2.0])
    told = tmp_path / "told"

    class Bad:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.write_text, (told, "code was run"))

    torch.save({"edge": Bad()}, path, pickle_module=pickle)
    with pytest.raises(InputError, match=r"split/time/train.pt must hold plain arrays \(got"):
        files.pickled("split/time/train.pt")
    assert not told.exists()
