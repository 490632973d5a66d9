from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fastglt.data import load
from fastglt.errors import InputError

EDGES = np.array([[0, 1, 2, 2], [1, 2, 0, 2]])


def arrays(**changes: Any) -> dict[str, Any]:
    """A sound graph of six nodes with some arrays changed, or left out where None."""
    sound = {"edge_index": EDGES, "x": np.eye(6), "y": np.array([0, 1, 0, 1, 0, 1])}
    return {key: value for key, value in (sound | changes).items() if value is not None}


def save(folder: Path, **changes: Any) -> str:
    path = folder / "mine.npz"
    np.savez(path, **arrays(**changes))
    return str(path)


def mask(*nodes: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(np.arange(6), nodes)


def test_an_undirected_graph_with_a_seeded_split(tmp_path: Path) -> None:
    dataset = load(save(tmp_path))
    assert (dataset.name, dataset.metric) == ("mine.npz", "accuracy")
    assert dataset.data.edge_index.tolist() == [[0, 0, 1, 1, 2, 2, 2], [1, 2, 0, 2, 0, 1, 2]]
    assert dataset.data.x.dtype == torch.float32
    assert dataset.data.y.tolist() == [0, 1, 0, 1, 0, 1]
    masks = (dataset.data.train_mask, dataset.data.val_mask, dataset.data.test_mask)
    assert [int(part.sum()) for part in masks] == [2, 2, 2]


def test_a_directed_graph_keeps_its_arcs(tmp_path: Path) -> None:
    dataset = load(save(tmp_path), directed=True)
    assert dataset.data.edge_index.tolist() == [[0, 1, 2, 2], [1, 2, 0, 2]]


def test_given_masks_are_used(tmp_path: Path) -> None:
    masks = {"train_mask": mask(0, 1), "val_mask": mask(2), "test_mask": mask(4, 5)}
    data = load(save(tmp_path, **masks)).data
    assert all(np.array_equal(data[key].numpy(), value) for key, value in masks.items())


def test_small_integers_and_booleans_are_welcome(tmp_path: Path) -> None:
    data = load(
        save(tmp_path, x=np.eye(6, dtype=bool), edge_index=EDGES.astype(np.uint8), y=np.zeros(6, np.int8))
    ).data
    assert data.x.sum() == 6
    assert data.y.dtype == data.edge_index.dtype == torch.int64


def test_a_number_too_large_for_float32_is_left_for_the_later_check(tmp_path: Path) -> None:
    assert load(save(tmp_path, x=np.full((6, 1), 1e300))).data.x.isinf().all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, "must have an array 'y' (got edge_index, x); write it with numpy.savez("),
        ({"edge_attrs": np.ones(4)}, "(got 'edge_attrs'); leave it out"),
        ({"edge_weight": np.ones(5)}, "edge_weight must have shape [4], a number for each edge (got [5])"),
        ({"edge_attr": np.ones((4, 2))}, "edge_attr must have shape [4], a number for each edge (got [4, 2])"),
        ({"edge_weight": np.ones(4), "edge_attr": np.ones(4)}, "give edge_weight or edge_attr (got both)"),
        ({"edge_weight": np.ones(4, complex)}, "edge_weight must hold real numbers (got complex128)"),
        ({"x": np.ones(6)}, "x must have shape [nodes, features] (got [6]); reshape it"),
        ({"x": np.ones((6, 0))}, "x must have shape [nodes, features] (got [6, 0])"),
        ({"x": np.full((6, 1), "a")}, "x must hold real numbers (got <U1); convert it to float32"),
        ({"x": np.ones((6, 1), complex)}, "x must hold real numbers (got complex128)"),
        (
            {"x": np.array([[None]] * 6)},
            "x must be a plain array of numbers (got Object arrays cannot be loaded",
        ),
        ({"x": np.ones((5, 2))}, "one row per node (got 5 rows in x and 6 in y); save both in the same"),
        ({"y": np.ones((6, 1), int)}, "y must have shape [nodes], or [nodes, labels] (got [6, 1]); give one class"),
        ({"y": np.ones(6, dtype=np.complex64)}, "y must hold numbers (got complex64); convert it to int64"),
        ({"edge_index": EDGES.T}, "edge_index must have shape [2, edges] (got [4, 2]); transpose it"),
        (
            {"edge_index": EDGES[0]},
            "edge_index must have shape [2, edges] (got [4]); give sources, then targets",
        ),
        (
            {"edge_index": EDGES * 1.0},
            "edge_index must hold whole numbers (got float64); convert it to int64",
        ),
        (
            {"edge_index": EDGES + 4},
            "edge_index must hold node numbers from 0 to 5 (got 6); number the nodes",
        ),
        ({"edge_index": EDGES - 1}, "edge_index must hold node numbers from 0 to 5 (got -1)"),
        ({"edge_index": EDGES.astype(np.uint64) + np.uint64(2**63)}, "(got 9223372036854775810)"),
        ({"train_mask": mask(0)}, "give all three masks or none (got train_mask); add val_mask"),
        (
            {"train_mask": mask(0)[:5], "val_mask": mask(1), "test_mask": mask(2)},
            "train_mask must have shape [6] (got [5]); give one value per node",
        ),
        (
            {"train_mask": mask(0), "val_mask": mask(1), "test_mask": np.arange(6)},
            "test_mask must hold booleans (got int64); convert it to bool",
        ),
    ],
)
def test_a_flawed_archive_is_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    name = save(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        load(name)
    assert str(caught.value).startswith(f"{name}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; write it with numpy.savez("),
        (b"not an archive", "must be a .npz archive (got another kind of file, or a damaged one)"),
        (b"PK\x03\x04 broken", "must be a .npz archive (got "),
    ],
)
def test_a_file_that_is_no_archive(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.npz").write_bytes(content)
    with pytest.raises(InputError) as caught:
        load(str(tmp_path / "mine.npz"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    with (tmp_path / "mine.npz").open("wb") as file:
        np.save(file, np.ones(3))
    with pytest.raises(InputError, match=r"must be a \.npz archive \(got a single array\)"):
        load(str(tmp_path / "mine.npz"))


def test_a_damaged_array(tmp_path: Path) -> None:
    name = save(tmp_path, x=np.arange(600.0).reshape(6, 100))
    content = bytearray(Path(name).read_bytes())
    at = content.index(np.float64(300).tobytes() + np.float64(301).tobytes())
    content[at : at + 4] = b"\xff\xff\xff\xff"
    Path(name).write_bytes(content)
    with pytest.raises(InputError, match=r"x is damaged .*; write the file again"):
        load(name)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.npz: no such file; check the path"):
        load(str(tmp_path / "none.npz"))
