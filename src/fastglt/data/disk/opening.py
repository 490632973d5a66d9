"""A prepared graph as a dataset: what it holds is mapped into memory, and read when it is looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fastglt.data.base import Dataset, Names, Parts, SplitMasks
from fastglt.data.disk.layout import Array, Arrays, Manifest
from fastglt.data.disk.streams import GIVEN, draw
from fastglt.data.npz_file import MASKS, WEIGHTS
from fastglt.errors import InputError
from fastglt.system import plain_json
from fastglt.system.storage import read_bytes

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_array

LARGE = 2**19  # edges from which on rows are taken from the folder, and not found anew
_MOST = 1 << 32  # bytes of names
_CHEAP = 1 << 26  # bytes of which checksums are always compared


class Compressed:
    """What a large prepared graph is: its rows as tensors on disk, and digests that need not be computed again."""

    def __init__(self, arrays: Arrays) -> None:
        import torch

        self._arrays, manifest = arrays, arrays.manifest
        self.directed, self.nonzero = manifest.directed, manifest.nonzero
        self.fingerprints = dict(manifest.fingerprints)
        names = ("edges", "indptr", "senders", "entry_edge", "edge_index", "column_edge", "loops")
        self.tensors: dict[str, torch.Tensor] = {name: torch.from_numpy(arrays[name]) for name in names}

    def release(self) -> None:
        """Give back the memory of all pages that were read."""
        self._arrays.release()


def load_prepared(path: Path, *, split_seed: int, directed: bool) -> Dataset:
    """The graph in a folder; sizes are checked, and checksums of what was changed, or of all if it is small."""
    manifest = Manifest.read(path)
    if directed and not manifest.directed:
        rule = f"{path}: directed is decided when a graph is prepared"
        raise InputError(f"{rule} (got an undirected one); prepare it with --directed")
    arrays = Arrays(path, manifest)
    if arrays.size <= _CHEAP:
        arrays.verify()
    else:
        arrays.verify_changed()
    y, large = arrays["y"], manifest.edges >= LARGE and not any(name in arrays for name in WEIGHTS)
    masks = SplitMasks(*(arrays[name] for name in MASKS)) if manifest.split == GIVEN else None
    parts = Parts(
        x=_features(arrays),
        y=y,
        edges=arrays["edge_index"] if large else _tidy(arrays["edge_index"], manifest),
        masks=masks or draw(manifest.split, y, split_seed),
        drawn=masks is None,
        reversed_edges=manifest.reversed_edges,
        edge_weight=arrays.get("edge_weight"),
        edge_attr=arrays.get("edge_attr"),
    )
    dataset = parts.dataset(name=manifest.name, metric=manifest.metric, names=_names(path))
    return replace(dataset, compressed=Compressed(arrays) if large else None, directed=manifest.directed)


def _tidy(edge_index: Array, manifest: Manifest) -> Array:
    """The columns as all other files have them, the self-loops in their places."""
    if not manifest.loops:
        return edge_index
    return edge_index[:, np.argsort(edge_index[0] * manifest.nodes + edge_index[1], kind="stable")]


def _features(arrays: Arrays) -> Array | csr_array:
    if "x" in arrays:
        return arrays["x"]
    from scipy.sparse import csr_array

    shape = (arrays.manifest.nodes, arrays.manifest.features)
    return csr_array((arrays["x_values"], arrays["x_indices"], arrays["x_indptr"]), shape)


def _names(path: Path) -> Names | None:
    file = path / "names.json"
    if not file.is_file():
        return None
    found = plain_json.loads(read_bytes(file, most=_MOST))
    return Names(tuple(found["nodes"]), tuple(found["classes"]))
