"""A tiny folder in the layout of ogbl-collab, for the tests that read one."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import torch

NODES = 30
TRAIN = np.array([[i, (i + step) % NODES] for step in (1, 2) for i in range(NODES)])
ROWS = np.concatenate([TRAIN, TRAIN[:5, ::-1]])  # five pairs met in two years
VALID, TEST = np.array([[0, 10], [1, 2]]), np.array([[5, 20], [6, 21], [7, 22]])
NEGATIVES = np.array([[i, (i + 13) % NODES] for i in range(NODES)])


def write_table(folder: Path, name: str, table: Any) -> None:
    lines = "\n".join(",".join(map(str, np.atleast_1d(row))) for row in table)
    with gzip.open(folder / "raw" / f"{name}.csv.gz", "wt") as file:
        file.write(lines + "\n")


def write_split(folder: Path, **parts: dict[str, Any]) -> None:
    for part, arrays in parts.items():
        torch.save(arrays, folder / "split" / "time" / f"{part}.pt")


def years(edges: Any, year: int) -> dict[str, Any]:
    return {"edge": edges, "weight": np.ones(len(edges), int), "year": np.full(len(edges), year)}


def write_collab(folder: Path) -> Path:
    """A folder as OGB unpacks ogbl-collab, with numpy arrays in the split as OGB has them."""
    (folder / "raw").mkdir(parents=True)
    (folder / "split" / "time").mkdir(parents=True)
    write_table(folder, "edge", ROWS)
    write_table(folder, "num-node-list", [NODES])
    write_table(folder, "num-edge-list", [len(ROWS)])
    write_table(folder, "node-feat", np.arange(NODES * 3).reshape(NODES, 3) / 10)
    write_split(
        folder,
        train=years(ROWS, 2017),
        valid={**years(VALID, 2018), "edge_neg": NEGATIVES},
        test={**years(TEST, 2019), "edge_neg": NEGATIVES[:20]},
    )
    return folder
