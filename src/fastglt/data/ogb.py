"""Node sets in OGB's layout: ogbn-arxiv and ogbn-proteins by name, and any folder or zip of that kind by its path.

Edges are taken both ways, as published; splits are the official ones. A set without node features has, for each
node, the sum of its edges' features, as DeeperGCN has it for ogbn-proteins; ``:species`` appends a column for each
value of node_species. Labels in several columns are many labels a node: 1 is there, 0 is not, nan is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fastglt.data.base import Bools, Floats, Ints, Parts, SplitMasks, sorted_distinct, tidy_edges
from fastglt.data.ogb_files import PARTS, OGBFiles
from fastglt.data.ogb_sets import OGBSet
from fastglt.data.weighted import merged

LABELS, NODE_FEATURES, EDGE_FEATURES = (f"raw/{name}.csv.gz" for name in ("node-label", "node-feat", "edge-feat"))
SPECIES = "raw/node_species.csv.gz"
SUBSTITUTE = "'s graph, substitute features"  # behind the name of a set with features that are not OGB's
_WITH_SPECIES = "species"  # the recipe of a name or a path: ogbn-proteins:species


@dataclass(frozen=True, kw_only=True)
class OGBNodeSet(OGBSet):
    """A set with labels of nodes."""

    module, loader = "nodeproppred", "NodePropPredDataset"

    columns: int  # of node features, or of edge features where nodes have none
    labels: int  # columns
    recipe: str = ""  # "species": their columns as well

    def parts(self, root: Path | None, split_seed: int) -> Parts:
        """Its arrays; features that are not OGB's are told by the name."""
        return read_node_set(self.files(root), recipe=self.recipe)


ARXIV = OGBNodeSet(name="ogbn-arxiv", zipped="arxiv", nodes=169343, listed=1166243, columns=128, labels=1)
PROTEINS = OGBNodeSet(name="ogbn-proteins", zipped="proteins", nodes=132534, listed=39561252, columns=8, labels=112)
PROTEINS_AND_SPECIES = replace(PROTEINS, recipe=_WITH_SPECIES)


def split_recipe(name: str) -> tuple[str, str]:
    """A path and what follows its colon.

    >>> split_recipe("my/proteins:species"), split_recipe("my/proteins")
    (('my/proteins', 'species'), ('my/proteins', ''))
    """
    path, colon, recipe = name.rpartition(":")
    return (path, recipe) if colon and recipe == _WITH_SPECIES and not Path(name).exists() else (name, "")


def read_node_set(files: OGBFiles, *, recipe: str = "", directed: bool = False) -> Parts:
    """The arrays of a node set; every flaw is an `InputError` that names its file."""
    (nodes, listed), (source, target) = files.counts, files.edges()
    files.require(LABELS)
    labels = read_labels(files, nodes)
    of_edges = _features(files, EDGE_FEATURES, listed)
    of_nodes = _features(files, NODE_FEATURES, nodes)
    masks = SplitMasks(*(mask_of(files.split_nodes(part), nodes) for part in PARTS))
    if of_edges is None:
        edges, attributes = tidy_edges(source, target, nodes=nodes, directed=directed, keep_loops=True), None
    else:
        edges, first, clash = merged(source, target, of_edges, nodes=nodes, directed=directed)
        if clash is not None:
            rule = "must have one row for an edge, wherever it is listed"
            raise files.wrong(EDGE_FEATURES, rule, "different ones in rows {} and {}".format(*sorted(clash)))
        attributes = of_edges[first]
    if of_nodes is None and attributes is None:
        files.require(NODE_FEATURES)
    x = _summed(edges, attributes, nodes) if of_nodes is None else of_nodes
    x = np.concatenate([x, _species(files, nodes)], axis=1) if recipe else x
    columns = x.shape[1] if of_edges is None or of_nodes is not None else of_edges.shape[1]
    return Parts(
        x=x,
        y=labels,
        edges=edges,
        masks=masks,
        edge_attr=attributes,
        reversed_edges=edges.shape[1] - sorted_distinct(source * nodes + target).size,
        known_as=known_as(files.counts, columns, 1 if labels.ndim == 1 else labels.shape[1], recipe),
    )


def known_as(counts: tuple[int, int], columns: int, labels: int, recipe: str) -> str | None:
    """OGB's name for a graph of that size with as many features; what is not OGB's is told."""
    for known in (ARXIV, PROTEINS):
        if counts == (known.nodes, known.listed) and labels == known.labels:
            ours = f"{known.name}:{recipe}" if recipe else known.name
            return ours if columns == known.columns else known.name + SUBSTITUTE
    return None


def read_labels(files: OGBFiles, nodes: int) -> Ints | Floats:
    """One column of classes, unknown ones -1; or several of 0, 1 and nan."""
    found = files.table(LABELS, np.float32, rows=nodes)
    known = found[~np.isnan(found)]
    if found.shape[1] == 1:
        if bool((known != np.floor(known)).any() | (known < 0).any()):
            got = known[(known != np.floor(known)) | (known < 0)][0]
            raise files.wrong(LABELS, "must have class numbers 0, 1, 2, …", f"{got:g}")
        return np.where(np.isnan(found), -1, found).astype(np.int64).ravel()
    wrong = known[(known != 0) & (known != 1)]
    if wrong.size:
        raise files.wrong(LABELS, "must have 0, 1 or nan where it has several columns", f"{wrong[0]:g}")
    return found


def _features(files: OGBFiles, file: str, rows: int) -> Floats | None:
    if file not in files.names:
        return None
    found: Floats = files.table(file, np.float32, rows=rows)
    if found.shape[1] == 0:
        raise files.wrong(file, "must have a column at least", "none")
    missing = np.argwhere(np.isnan(found))
    if len(missing):
        raise files.wrong(file, "must have finite numbers", "nan in row {}, column {}".format(*missing[0]))
    return found


def mask_of(ids: Ints, nodes: int) -> Bools:
    """Which of so many nodes are among these."""
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[ids] = True
    return mask


def _summed(edges: Ints, attributes: Floats | None, nodes: int) -> Floats:
    """For each node the sum of the features of the edges that lead to it."""
    assert attributes is not None
    columns = [np.bincount(edges[1], weights=column, minlength=nodes) for column in attributes.T]
    return np.stack(columns, axis=1).astype(np.float32)


def _species(files: OGBFiles, nodes: int) -> Floats:
    """A column for each value, 1 where a node has it."""
    values = files.table(SPECIES, np.int64, rows=nodes, columns=1).ravel()
    kinds, which = np.unique(values, return_inverse=True)
    return np.eye(len(kinds), dtype=np.float32)[which]
