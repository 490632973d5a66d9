"""A graph as files that `load` reads again: two CSV files where nodes have names, else one archive."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from fastglt.data.base import Dataset, SplitMasks
from fastglt.data.csv_files import EDGE_COLUMNS, WEIGHTED_COLUMNS
from fastglt.errors import InputError
from fastglt.system.storage import write_atomically

GRAPH = "graph"  # begins the names of what is written


def write_graph(dataset: Dataset, folder: Path) -> str:
    """Write a graph into a folder; returns what `load` takes for it."""
    if dataset.names is None:
        path = folder / f"{GRAPH}.npz"
        write_atomically(path, npz_bytes(dataset))
        return str(path)
    place = folder / GRAPH
    for name, content in (("nodes", _nodes_csv(dataset)), ("edges", _edges_csv(dataset))):
        write_atomically(place / f"{name}.csv", content)
    return str(place)


def npz_bytes(dataset: Dataset) -> bytes:
    """All tensors in one archive; features are dense, and many zeros take little room."""
    arrays: dict[str, Any] = {
        name: (value.to_dense() if name == "x" else value).numpy() for name, value in dataset.tensors.items()
    }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _nodes_csv(dataset: Dataset) -> bytes:
    """Classes are numbered by their names when they are read again: each must have a node."""
    assert dataset.names is not None, "else it is an archive"
    tensors, names = dataset.tensors, dataset.names
    y = tensors["y"].numpy()
    for number, name in enumerate(names.classes):
        if not (y == number).any():
            rule = "each class must keep a node, or the others would be numbered anew"
            raise InputError(f"{rule} (got none of '{name}'); leave one in, without a split")
    splits = np.full(len(y), "", dtype=object)
    for part in SplitMasks._fields:
        splits[tensors[f"{part}_mask"].numpy()] = part
    x = tensors["x"].to_dense().numpy()
    rows: list[list[object]] = [["id", "label", "split", *(f"x{at}" for at in range(x.shape[1]))]]
    for node, label, split, values in zip(names.nodes, y, splits, x, strict=True):
        rows.append([node, names.classes[label] if label >= 0 else "", split, *map(str, values)])
    return _csv(rows)


def _edges_csv(dataset: Dataset) -> bytes:
    assert dataset.names is not None, "else it is an archive"
    nodes, tensors = dataset.names.nodes, dataset.tensors
    weights = tensors.get("edge_weight")
    rows: list[list[object]] = [EDGE_COLUMNS if weights is None else WEIGHTED_COLUMNS]  # type: ignore[list-item]
    for at, (source, target) in enumerate(tensors["edge_index"].T.tolist()):
        rows.append([nodes[source], nodes[target], *([] if weights is None else [str(weights[at].numpy())])])
    return _csv(rows)


def _csv(rows: list[list[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
