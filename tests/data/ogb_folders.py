"""Small folders in OGB's layout, as OGB unpacks them, whole or with a flaw."""

import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

EDGES = [[0, 1], [2, 1], [1, 2], [3, 3], [4, 0]]
ARXIV: dict[str, Any] = {
    "raw/edge": EDGES,
    "raw/num-node-list": [[5]],
    "raw/num-edge-list": [[5]],
    "raw/node-feat": [[0.5, -1], [1, 2], [3, 4], [5, 6], [7, 8e-3]],
    "raw/node-label": [[0], [1], [1], [0], [1]],
    "raw/node_year": [[2013]] * 5,
    "split/time/train": [[0], [1]],
    "split/time/valid": [[3], [2]],
    "split/time/test": [[4]],
}
_LABELS = [[0, 1, 0], [1, 0, "nan"], [1, 1, 0], [0, 0, 1], [0, 1, 1]]
PROTEINS: dict[str, Any] = {
    "raw/edge": [[0, 1], [2, 1], [3, 3], [4, 0]],
    "raw/edge-feat": [[1, 0.5], [0, 2], [4, 4], [0.25, 0]],
    "raw/num-node-list": [[5]],
    "raw/num-edge-list": [[4]],
    "raw/node-label": _LABELS,
    "raw/node_species": [[9606], [3702], [9606], [3702], [511145]],
    "split/species/train": [[0], [1]],
    "split/species/valid": [[3], [2]],
    "split/species/test": [[4]],
}


def write(folder: Path, tables: dict[str, Any], **changes: Any) -> Path:
    """A folder of such tables; a change is a table by its last name, such as `edge`; None: there is none."""
    for name, rows in tables.items():
        changed = changes.get(name.rpartition("/")[2].replace("-", "_"), rows)
        if changed is not None:
            path = folder / f"{name}.csv.gz"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress("".join(",".join(map(str, row)) + "\n" for row in changed).encode()))
    return folder


def zipped(folder: Path, path: Path) -> Path:
    """The folder as OGB's download has it: one more folder around, whose name is another one."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.gz")):
            archive.write(file, Path("arxiv") / file.relative_to(folder))
    return path


def random_tables(nodes: int, edges: int, *, columns: int, labels: int = 1, seed: int = 0) -> dict[str, Any]:
    """Tables of a random graph of some size, in which every edge is listed once."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(nodes * (nodes - 1) // 2, edges, replace=False)
    high = ((1 + np.sqrt(1 + 8 * keys.astype(np.float64))) / 2).astype(np.int64)
    pairs = np.stack([keys - high * (high - 1) // 2, high], 1)
    part = rng.permutation(nodes)
    split = dict(zip(("train", "valid", "test"), np.array_split(part, 3), strict=True))
    return {
        "raw/edge": pairs,
        "raw/num-node-list": [[nodes]],
        "raw/num-edge-list": [[edges]],
        "raw/node-feat": rng.normal(size=(nodes, columns)).round(3),
        "raw/node-label": rng.integers(0, 2 if labels > 1 else 3, size=(nodes, labels)),
        **{f"split/random/{name}": ids[:, None] for name, ids in split.items()},
    }
