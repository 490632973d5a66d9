"""Named sets published as one numpy archive: Coauthor, Amazon and Tolokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from fastglt.data.base import Parts, SplitMasks, normalised_rows, seeded_split, tidy_edges
from fastglt.data.raw import RawFiles
from fastglt.data.zip_bounds import check_directory, check_size, member

_NETWORK = ("attr_data", "attr_indices", "attr_indptr", "attr_shape", "labels", "adj_indices", "adj_indptr")
_SPLIT_NETWORK = ("node_features", "node_labels", "edges", *(f"{part}_masks" for part in SplitMasks._fields))


def gnn_benchmark(family: str, name: str, file: str) -> RawFiles:
    """The raw file of one co-author or co-purchase network, such as Coauthor Physics."""
    read = partial(_read_gnn_benchmark, file)
    return RawFiles(folder=f"{family.lower()}/{name}", files=(file,), pyg=family, read=read)


def tolokers() -> RawFiles:
    """The raw file of the Tolokers network, which carries ten splits."""
    file = "tolokers.npz"
    read = partial(_read_heterophilous, file)
    return RawFiles(folder="tolokers", files=(file,), pyg="HeterophilousGraphDataset", read=read)


@contextmanager
def _opened(path: Path, names: tuple[str, ...]) -> Iterator[np.lib.npyio.NpzFile]:
    """An archive whose arrays are no larger than they say, and fit into memory."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        assert archive.zip is not None, "it was just opened"
        check_directory(archive.zip)
        check_size({name: member(archive.zip, name) for name in names}, path.stat().st_size)
        yield archive


def _read_gnn_benchmark(file: str, folder: Path, split_seed: int) -> Parts:
    """Words are marked present or absent, then rows are normalised; no public split exists."""
    from scipy.sparse import csr_array

    with _opened(folder / file, _NETWORK) as raw:
        present = (raw["attr_data"] > 0).astype(np.float32)
        words = csr_array((present, raw["attr_indices"], raw["attr_indptr"]), tuple(raw["attr_shape"]))
        labels = raw["labels"].astype(np.int64)
        target = raw["adj_indices"].astype(np.int64)
        source = np.repeat(np.arange(len(labels)), np.diff(raw["adj_indptr"]))
    edges = tidy_edges(source, target, nodes=len(labels))
    masks = seeded_split(labels, split_seed)
    return Parts(x=normalised_rows(words), y=labels, edges=edges, masks=masks, drawn=True)


def _read_heterophilous(file: str, folder: Path, split_seed: int) -> Parts:
    """Features as published; the seed picks one of the published splits, the first for 0."""
    with _opened(folder / file, _SPLIT_NETWORK) as raw:
        split = split_seed % len(raw["train_masks"])
        masks = SplitMasks(*(raw[f"{part}_masks"][split].astype(np.bool_) for part in SplitMasks._fields))
        features = raw["node_features"].astype(np.float32)
        labels = raw["node_labels"].astype(np.int64)
        source, target = raw["edges"].astype(np.int64).T
    edges = tidy_edges(source, target, nodes=len(labels))
    return Parts(x=features, y=labels, edges=edges, masks=masks)
