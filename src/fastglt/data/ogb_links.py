"""Link sets in OGB's layout: ogbl-collab by name, and any folder or zip of that kind by its path.

The graph is the training edges, each pair once and both ways, whatever its weight and however many years it has;
``split/<name>/valid.pt`` and ``test.pt`` hold the pairs to predict (edge) and the given negatives (edge_neg).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fastglt.data.base import Dataset, Floats, Ints, sorted_distinct
from fastglt.data.ogb_files import EDGES, PARTS, Array, OGBFiles
from fastglt.data.ogb_sets import OGBSet

FEATURES = "raw/node-feat.csv.gz"
TASK = "link"  # as `fastglt.tasks` calls it
METRIC = "hits@50"


@dataclass(frozen=True, kw_only=True)
class LinkParts:
    """A link set as plain arrays; pairs are two rows, as edges are."""

    x: Floats
    edges: Ints
    valid: tuple[Ints, Ints]  # links and other pairs
    test: tuple[Ints, Ints]
    reversed_edges: int = 0
    known_as: str | None = None  # what it is, where a name alone would say too much

    def dataset(self, *, name: str, metric: str = METRIC) -> Dataset:
        """These arrays as a `Dataset`, the pairs by the names that PyG has for them."""
        import torch

        pairs = {
            f"{part}_{kind}_edge_index": found
            for part, both in (("val", self.valid), ("test", self.test))
            for kind, found in zip(("pos", "neg"), both, strict=True)
        }
        arrays: dict[str, Any] = {"x": self.x, "edge_index": self.edges, **pairs}
        tensors = {key: torch.from_numpy(np.ascontiguousarray(array)) for key, array in arrays.items()}
        known_as = self.known_as or name
        return Dataset(name=known_as, tensors=tensors, metric=metric, reversed_edges=self.reversed_edges)


@dataclass(frozen=True, kw_only=True)
class OGBLinkSet(OGBSet):
    """A set with links to predict."""

    module, loader = "linkproppred", "LinkPropPredDataset"

    def parts(self, root: Path | None, split_seed: int) -> LinkParts:
        """Its arrays."""
        return read_link_set(self.files(root))


COLLAB = OGBLinkSet(name="ogbl-collab", zipped="collab", nodes=235868, listed=1179052)


def read_link_set(files: OGBFiles) -> LinkParts:
    """The arrays of a link set; every flaw is an `InputError` that names its file."""
    nodes, _ = files.counts
    names = {part: f"{files.split_folder}/{part}.pt" for part in PARTS}
    files.require(FEATURES, *names.values())
    x: Floats = files.table(FEATURES, np.float32, rows=nodes)
    missing = np.argwhere(np.isnan(x))
    if x.shape[1] == 0 or len(missing):
        got = "nan in row {}, column {}".format(*missing[0]) if len(missing) else "no columns"
        raise files.wrong(FEATURES, "must have finite numbers", got)
    stored = {part: files.pickled(file) for part, file in names.items()}
    train = _pairs(files, names["train"], stored["train"], "edge", nodes)
    valid, test = (
        (
            _pairs(files, names[part], stored[part], "edge", nodes),
            _pairs(files, names[part], stored[part], "edge_neg", nodes),
        )
        for part in PARTS[1:]
    )
    _check_years(files, names, stored)
    _check_graph(files, train, nodes)
    keys = sorted_distinct(np.concatenate([train[0] * nodes + train[1], train[1] * nodes + train[0]]))
    listed = sorted_distinct(train[0] * nodes + train[1]).size
    edges = np.stack([keys // nodes, keys % nodes])
    return LinkParts(x=x, edges=edges, valid=valid, test=test, reversed_edges=keys.size - listed)


def _pairs(files: OGBFiles, file: str, stored: dict[str, Array], name: str, nodes: int) -> Ints:
    """Pairs as two rows."""
    if name not in stored:
        wanted = "edge" if file.endswith("/train.pt") else "edge and edge_neg"
        got = ", ".join(sorted(stored)) or "nothing"
        raise files.wrong(file, f"must have {wanted}, a row of two nodes for each pair", got)
    found = stored[name]
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        got = f"{found.dtype}, shape {found.shape}"
        raise files.wrong(file, f"must have {name} as whole numbers, a row of two nodes for each pair", got)
    files.check_ids(f"{file}, {name},", found, nodes)
    return np.ascontiguousarray(found.T.astype(np.int64))


def _check_years(files: OGBFiles, names: dict[str, str], stored: dict[str, dict[str, Array]]) -> None:
    """Where there are years, one for each edge, and no part learns from a later one's."""
    years = {part: found["year"] for part, found in stored.items() if "year" in found}
    for part, found in years.items():
        if found.shape != stored[part]["edge"].shape[:1]:
            rule = f"must have a year for each of {len(stored[part]['edge']):,} edges"
            raise files.wrong(names[part], rule, f"shape {found.shape}")
    for before, after in pairwise(PARTS):
        both = [years[part] for part in (before, after) if part in years and years[part].size]
        if len(both) == 2 and both[0].max() > both[1].min():
            rule = f"must have years that are not before those of {before}.pt"
            raise files.wrong(names[after], rule, f"{both[1].min()}, and {both[0].max()} there")


def _check_graph(files: OGBFiles, train: Ints, nodes: int) -> None:
    """The graph's own file lists the training edges and no others: else files are swapped, or one leaks."""
    listed = files.edges()
    ours, theirs = (sorted_distinct(np.minimum(*ends) * nodes + np.maximum(*ends)) for ends in (listed, train))
    if not np.array_equal(ours, theirs):
        apart = np.setxor1d(ours, theirs, assume_unique=True)
        got = f"{apart.size:,} pairs in one of them alone, such as {apart[0] // nodes}, {apart[0] % nodes}"
        raise files.wrong(EDGES, f"must list the edges of {files.split_folder}/train.pt", got)
