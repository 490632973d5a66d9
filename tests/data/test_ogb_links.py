"""Link sets in OGB's layout: a folder or zip by its path, ogbl-collab by name, and one line for each flaw."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.link_folders import NEGATIVES, NODES, TEST, TRAIN, VALID, write_collab, write_split, write_table, years
from tests.tasks.test_pairs import as_set

from fastglt import InputError
from fastglt.data import load
from fastglt.data.loading import intended_task
from fastglt.tasks import LinkPrediction

Break = Callable[[Path], object]


@pytest.fixture
def collab(tmp_path: Path) -> Path:
    return write_collab(tmp_path / "my_collab")


def test_the_graph_is_the_training_edges_and_the_pairs_are_ogbs(collab: Path) -> None:
    found = load(str(collab))
    task = LinkPrediction.from_tensors(found.tensors, metric="hits@20")
    assert (found.name, found.metric, found.reversed_edges) == ("my_collab", "hits@50", 55)
    assert as_set(task.edge_targets) == as_set(torch.from_numpy(TRAIN))
    assert torch.equal(task.val, torch.from_numpy(VALID))
    assert torch.equal(task.test, torch.from_numpy(TEST))
    assert (len(task.val_negatives), len(task.test_negatives)) == (30, 20)
    assert task.x.dense[1].tolist() == pytest.approx([0.3, 0.4, 0.5])
    assert "edge_weight" not in found.tensors


def test_tensors_in_the_split_are_as_good(collab: Path) -> None:
    before = load(str(collab)).tensors
    write_split(collab, test={"edge": torch.from_numpy(TEST), "edge_neg": torch.from_numpy(NEGATIVES[:20])})
    after = load(str(collab)).tensors
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_zip_is_as_good(collab: Path) -> None:
    packed = shutil.make_archive(str(collab.parent / "collab"), "zip", collab.parent, collab.name)
    assert torch.equal(load(packed).tensors["edge_index"], load(str(collab)).tensors["edge_index"])
    assert intended_task(packed) == "link"


def test_its_task_is_seen_from_its_files(collab: Path) -> None:
    assert intended_task(str(collab)) == "link"
    assert intended_task("ogbl-collab") == "link"
    assert intended_task("cora") is None
    assert intended_task(str(collab.parent)) is None


def test_the_named_set_is_refused_where_it_is_not(tmp_path: Path, collab: Path) -> None:
    with pytest.raises(InputError, match=r"ogbl-collab is not at hand .* LinkPropPredDataset"):
        load("ogbl-collab", root=tmp_path)
    collab.rename(tmp_path / "ogbl_collab")
    with pytest.raises(InputError, match=r"must have 235,868 nodes and 1,179,052 listed edges \(got 30 and 65\)"):
        load("ogbl-collab", root=tmp_path)


class Unsafe:
    def __reduce__(self) -> Any:
        return print, ("run",)


def part(name: str, **arrays: Any) -> Break:
    return lambda folder: write_split(folder, **{name: arrays})


def gone(file: str) -> Break:
    return lambda folder: (folder / file).unlink()


def rename(one: str, other: str) -> Break:
    def swap(folder: Path) -> None:
        time = folder / "split" / "time"
        (time / one).rename(time / "x")
        (time / other).rename(time / one)
        (time / "x").rename(time / other)

    return swap


GOOD = {**years(VALID, 2018), "edge_neg": NEGATIVES}
FLAWS: list[tuple[Break, str]] = [
    (gone("split/time/valid.pt"), r"\(got none of the name split/time/valid\.pt\)"),
    (gone("raw/node-feat.csv.gz"), r"got none of the name raw/node-feat\.csv\.gz"),
    (part("valid", edge=VALID), r"must have edge and edge_neg, .* \(got edge\)"),
    (part("train", source_node=VALID), r"train\.pt must have edge, .* \(got source_node\)"),
    (
        part("valid", **{**GOOD, "edge": VALID + 29}),
        r"edge, must have node numbers from 0 to 29 \(got 39",
    ),
    (part("test", edge=TEST.T, edge_neg=NEGATIVES), r"must have edge as .* \(got int64, shape \(2, 3\)\)"),
    (part("test", edge=TEST / 2, edge_neg=NEGATIVES), r"as whole numbers, .* \(got float64"),
    (
        part("valid", **{**GOOD, "year": np.array([2018])}),
        r"a year for each of 2 edges \(got shape \(1,\)\)",
    ),
    (
        part("valid", **{**GOOD, "year": np.array([2016, 2018])}),
        r"before those of train\.pt \(got 2016, and 2017",
    ),
    (rename("valid.pt", "test.pt"), r"test\.pt must have years that are not before those of valid\.pt"),
    (part("train", edge=VALID), r"raw/edge\.csv\.gz must list the edges of split/time/train\.pt \(got 60 pairs"),
    (part("train", edge=Unsafe()), r"train\.pt must hold plain arrays"),
    (lambda folder: (folder / "split/time/test.pt").write_bytes(b"PK\x03\x04no"), r"test\.pt must "),
    (
        lambda folder: write_table(folder, "node-feat", np.zeros((NODES - 1, 3))),
        r"node-feat\.csv\.gz must have 30",
    ),
]


@pytest.mark.parametrize(("broken", "reason"), FLAWS)
def test_every_flaw_is_one_line(
    collab: Path, broken: Break, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    broken(collab)
    with pytest.raises(InputError, match=reason) as raised:
        load(str(collab))
    assert "\n" not in str(raised.value)
    assert capfd.readouterr().out == ""  # nothing was run


def test_links_go_both_ways(collab: Path) -> None:
    with pytest.raises(InputError, match="go both ways"):
        load(str(collab), directed=True)


def test_files_of_numpys_first_version_are_read(collab: Path) -> None:
    """Its arrays name a module that has another name since."""
    path = collab / "split" / "time" / "test.pt"
    torch.save({"edge": TEST, "edge_neg": NEGATIVES[:20]}, path, _use_new_zipfile_serialization=False)
    content = path.read_bytes()
    assert b"numpy._core.multiarray" in content
    path.write_bytes(content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    assert load(str(collab)).tensors["test_pos_edge_index"].shape == (2, 3)
