"""A graph as files that `load` reads again: two CSV files where nodes have names, else one archive.

CSV files number their classes by those that they name. Where that would not give the same numbers, as where a
class has no node left, the graph is prepared on disk, with the names in their order.
"""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fastglt.data.base import Dataset, SplitMasks
from fastglt.data.csv_files import EDGE_COLUMNS, WEIGHTED_COLUMNS, classes_of
from fastglt.system.storage import write_atomically

GRAPH = "graph"  # begins the names of what is written
_MEMORY = 1 << 28  # bytes to sort edges with


def write_graph(dataset: Dataset, folder: Path) -> str:
    """Write a graph into a folder; returns what `load` takes for it."""
    if dataset.names is None:
        path = folder / f"{GRAPH}.npz"
        write_atomically(path, npz_bytes(dataset))
        return str(path)
    place = folder / GRAPH
    if not _fits_csv(dataset):
        return _prepared(dataset, folder)
    for name, content in (("nodes", _nodes_csv(dataset)), ("edges", _edges_csv(dataset))):
        write_atomically(place / f"{name}.csv", content)
    return str(place)


def _fits_csv(dataset: Dataset) -> bool:
    """Whether two CSV files say all of it, and give its classes the same numbers again."""
    assert dataset.names is not None, "else it is an archive"
    y, classes = dataset.tensors["y"], dataset.names.classes
    if "edge_attr" in dataset.tensors or y.dim() != 1 or y.is_floating_point() or not classes:
        return False
    return classes_of([classes[label] for label in y.tolist() if label >= 0])[1] == classes


def _prepared(dataset: Dataset, folder: Path) -> str:
    """Its folder, whose name tells what it holds: one that is there is the same graph."""
    from fastglt.data.disk.prepare import prepare
    from fastglt.data.disk.streams import of_dataset

    path = folder / f"{GRAPH}-{_digest(dataset)}.fgr"
    if not path.exists():
        masks = SplitMasks(*(dataset.tensors[f"{part}_mask"].numpy() for part in SplitMasks._fields))
        stream = replace(of_dataset(dataset), masks=masks, drawn="")
        prepare(
            lambda: stream,
            path,
            memory=_MEMORY,
            directed=dataset.directed,
            asked=dataset.name,
            tell=lambda line: None,
        )
    return str(path)


def _digest(dataset: Dataset) -> str:
    digest = hashlib.sha256(repr((dataset.name, dataset.names, dataset.directed)).encode())
    for name, value in dataset.tensors.items():
        csr = value.is_sparse_csr
        for part in (value.crow_indices(), value.col_indices(), value.values()) if csr else (value,):
            array = np.ascontiguousarray(part.numpy())
            digest.update(f" {name} {array.dtype} {value.shape} ".encode())
            digest.update(array.tobytes())
    return digest.hexdigest()[:12]


def npz_bytes(dataset: Dataset) -> bytes:
    """All tensors in one archive; features are dense, and many zeros take little room."""
    arrays: dict[str, Any] = {
        name: (value.to_dense() if name == "x" else value).numpy() for name, value in dataset.tensors.items()
    }
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _nodes_csv(dataset: Dataset) -> bytes:
    assert dataset.names is not None, "else it is an archive"
    tensors, names = dataset.tensors, dataset.names
    y = tensors["y"].numpy()
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
