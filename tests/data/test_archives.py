import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, random_array

from fastglt.data import load


def write_gnn_benchmark(path: Path, nodes: int = 120) -> None:
    """A small network in the layout of the Coauthor and Amazon files."""
    rng = np.random.default_rng(0)
    words = csr_matrix(random_array((nodes, 9), density=0.3, rng=rng) * 5)
    links = csr_matrix(random_array((nodes, nodes), density=0.05, rng=rng))
    path.parent.mkdir(parents=True)
    matrices = {"attr": words, "adj": links}
    pieces: dict[str, Any] = {"labels": rng.integers(0, 3, nodes).astype(np.int32)}
    for name, matrix in matrices.items():
        for part in ("data", "indices", "indptr", "shape"):
            pieces[f"{name}_{part}"] = np.array(getattr(matrix, part))
    np.savez(path, **pieces)


def same_graph(ours: Any, theirs: Any) -> None:
    """Ours must be what PyG's own class makes of the same raw files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.utils import coalesce
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index, coalesce(theirs.edge_index))
    assert torch.allclose(ours.x, theirs.x, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "folder", "file", "pyg"),
    [
        ("amazon-photo", "amazon/Photo", "amazon_electronics_photo.npz", ("Amazon", "Photo")),
        ("amazon-computers", "amazon/Computers", "amazon_electronics_computers.npz", ("Amazon", "Computers")),
        ("coauthor-cs", "coauthor/CS", "ms_academic_cs.npz", ("Coauthor", "CS")),
        ("coauthor-physics", "coauthor/Physics", "ms_academic_phy.npz", ("Coauthor", "Physics")),
    ],
)
def test_the_gnn_benchmark_layout(name: str, folder: str, file: str, pyg: tuple[str, str], tmp_path: Path) -> None:
    write_gnn_benchmark(tmp_path / folder / "raw" / file)
    dataset = load(name, root=tmp_path)
    assert (dataset.name, dataset.metric) == (name, "accuracy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric import datasets
        from torch_geometric.transforms import NormalizeFeatures

        family, member = pyg
        root = str((tmp_path / folder).parent)
        theirs = getattr(datasets, family)(root, member, transform=NormalizeFeatures())[0]
    same_graph(dataset.data, theirs)
    masks = torch.stack([dataset.data.train_mask, dataset.data.val_mask, dataset.data.test_mask])
    assert masks.sum(0).eq(1).all()
    assert not torch.equal(load(name, root=tmp_path, split_seed=1).data.train_mask, dataset.data.train_mask)


def test_coauthor_physics(real: Callable[[str], Path]) -> None:
    root = real("coauthor/Physics")
    if not os.environ.get("FASTGLT_SLOW"):
        pytest.skip("FASTGLT_SLOW is not set, and this graph takes over a gigabyte")
    data = load("coauthor-physics", root=root).data
    assert data.x.shape == (34493, 8415)
    assert data.num_edges == 495924
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [100, 150, 34243]


def test_tolokers(real: Callable[[str], Path], tmp_path: Path) -> None:
    root = real("tolokers")
    dataset = load("tolokers", root=root)
    data = dataset.data
    assert dataset.metric == "roc_auc"
    assert data.x.shape == (11758, 10)
    assert data.num_edges == 2 * 519000
    assert data.is_undirected()
    assert int(data.y.max()) == 1

    shutil.copytree(root / "tolokers", tmp_path / "tolokers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.datasets import HeterophilousGraphDataset

        theirs = HeterophilousGraphDataset(str(tmp_path), "Tolokers")[0]
    same_graph(data, theirs)
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[mask], theirs[mask][:, 0])


def test_the_seed_picks_one_of_the_published_splits(tmp_path: Path) -> None:
    masks = np.arange(9).reshape(1, 9) % 3 == np.arange(3).reshape(3, 1)  # three splits of nine nodes
    raw = tmp_path / "tolokers" / "raw"
    raw.mkdir(parents=True)
    np.savez(
        raw / "tolokers.npz",
        node_features=np.eye(9),
        node_labels=np.arange(9) % 2,
        edges=np.array([[0, 1], [1, 2]]),
        train_masks=masks,
        val_masks=np.roll(masks, 1, axis=0),
        test_masks=np.roll(masks, 2, axis=0),
    )
    picked = [load("tolokers", root=tmp_path, split_seed=seed).data for seed in range(4)]
    for seed in range(3):
        assert picked[seed].train_mask.numpy().tolist() == masks[seed].tolist()
    assert torch.equal(picked[3].test_mask, picked[0].test_mask)
