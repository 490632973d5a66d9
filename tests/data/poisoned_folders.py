"""A small graph in the layout in which Pro-GNN publishes attacked ones, written by the tests."""

import json
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, save_npz

NODES = 12  # of the largest component; two more are apart from it


def adjacency(pairs: list[tuple[int, int]], nodes: int) -> csr_matrix:
    """Both directions of some edges."""
    source, target = np.array([*pairs, *((b, a) for a, b in pairs)]).T
    return csr_matrix((np.ones(len(source), dtype=np.float32), (source, target)), (nodes, nodes))


def ring() -> list[tuple[int, int]]:
    """The clean graph: a ring, numbered as the component is."""
    return [(node, (node + 1) % NODES) for node in range(NODES)]


def write_poisoned(root: Path, graph: str = "toy") -> Path:
    """Clean graph, split, and both attacks; node 0 of the file is apart from the rest, so that numbers move."""
    folder = root / "poisoned"
    for name in ("clean", "splits", "meta", "nettack"):
        (folder / name).mkdir(parents=True)
    moved = [(a + 1, b + 1) for a, b in ring()]
    whole = adjacency([*moved, (0, NODES + 1)], NODES + 2)
    words = csr_matrix(np.eye(NODES + 2, 5, dtype=np.float32) + np.eye(NODES + 2, 5, k=-3, dtype=np.float32))
    labels = np.arange(-1, NODES + 1) % 3
    parts = {"adj": whole, "attr": words}
    arrays = {
        f"{name}_{part}": getattr(matrix, part)
        for name, matrix in parts.items()
        for part in ("data", "indices", "indptr", "shape")
    }
    names = np.array([{0: "a name"}], dtype=object)  # what must never be opened
    np.savez(folder / "clean" / f"{graph}.npz", **arrays, labels=labels, idx_to_node=names)
    split = {"idx_train": [0, 1, 2, 3], "idx_val": [4, 5, 6], "idx_test": [7, 8, 9, 10]}
    (folder / "splits" / f"{graph}_prognn_splits.json").write_text(json.dumps(split))
    targets = {**split, "attacked_test_nodes": [8, 10]}
    (folder / "nettack" / f"{graph}_nettacked_nodes.json").write_text(json.dumps(targets))
    save_npz(folder / "meta" / f"{graph}_meta_adj_0.25.npz", adjacency([*ring(), (0, 6), (1, 7)], NODES))
    save_npz(folder / "nettack" / f"{graph}_nettack_adj_2.0.npz", adjacency([*ring()[1:], (8, 3)], NODES))
    return folder
