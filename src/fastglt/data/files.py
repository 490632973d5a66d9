"""The user's own graph: one numpy archive, two CSV files, or a set in OGB's layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fastglt.data.base import (
    Dataset,
    FileGraph,
    Floats,
    Ints,
    Parts,
    SplitMasks,
    random_split,
    seeded_split,
    sorted_distinct,
)
from fastglt.data.csv_files import read_csv
from fastglt.data.named import NAMED
from fastglt.data.npz_file import read_npz
from fastglt.data.ogb import read_node_set, split_recipe
from fastglt.data.ogb_files import OGBFiles
from fastglt.data.ogb_links import read_link_set
from fastglt.data.poisoned import PoisonedGraph
from fastglt.data.weighted import tidy_file_edges
from fastglt.errors import InputError


def load_file(name: str, *, split_seed: int, directed: bool) -> Dataset:
    """The graph at a path.

    The path is `graph.npz`, `edges.csv` with `nodes.csv` beside it, a folder that holds those two,
    or `edges.csv+nodes.csv`, which names both; or a folder or zip in OGB's layout, with `:species` behind it if
    these are to be features; or an attacked adjacency in Pro-GNN's layout (`fastglt.data.poisoned`). Repeated edges
    are merged; their weights must be equal.
    """
    plain, recipe = split_recipe(name)
    path = Path(plain).expanduser()
    files = OGBFiles.at(path)
    if files is not None and files.kind == "links":
        if recipe or directed:
            got = "directed" if directed else f":{recipe}"
            raise InputError(f"{path}: the links of a set in OGB's layout go both ways (got {got}); leave it out")
        known_as = path.resolve().stem
        return read_link_set(files).dataset(name=f"{known_as}/" if known_as.lower() in NAMED else known_as)
    if files is not None:
        parts = read_node_set(files, recipe=recipe, directed=directed)
        known_as = f"{path.resolve().stem}{':' if recipe else ''}{recipe}"
        return parts.dataset(name=f"{known_as}/" if known_as.lower() in NAMED else known_as, metric=_metric(parts))
    attacked = PoisonedGraph.at(path)
    if attacked is not None and path.is_file():
        return attacked.parts(None, split_seed).dataset(name=path.name, metric="accuracy")
    known_as, graph = _read(name)
    edges, weights = tidy_file_edges(graph, directed=directed, path=name)
    given = sorted_distinct(graph.source * len(graph.labels) + graph.target).size
    parts = Parts(
        x=graph.features,
        y=graph.labels,
        edges=edges,
        masks=graph.masks or _split(graph.labels, split_seed),
        drawn=graph.masks is None,
        edge_weight=weights,
        reversed_edges=edges.shape[1] - given,
    )
    return parts.dataset(name=known_as, metric=_metric(parts), names=graph.names)


def _metric(parts: Parts) -> str:
    return "accuracy" if parts.y.ndim == 1 else "roc_auc"


def _split(labels: Ints | Floats, seed: int) -> SplitMasks:
    if labels.dtype.kind == "f":
        return random_split(len(labels), seed)
    return seeded_split(labels.astype(np.int64), seed)


def _read(name: str) -> tuple[str, FileGraph]:
    """What a file's graph is known as, which is never a built-in graph's name, and the graph."""
    path = Path(name).expanduser()
    edges_name, plus, nodes_name = name.partition(".csv+")
    if plus and not path.exists():
        edges = Path(f"{edges_name}.csv").expanduser()
        return edges.name, read_csv(edges, Path(nodes_name).expanduser())
    if path.is_dir():
        return f"{path.resolve().name}.csv", read_csv(path / "edges.csv", path / "nodes.csv")
    if path.suffix.lower() == ".csv":
        return path.name, read_csv(path, path.with_name("nodes.csv"))
    if path.suffix.lower() == ".npz":
        return path.name, read_npz(path)
    if path.suffix.lower() == ".parquet":
        raise InputError(
            f"{path}: Parquet files must be prepared first (got .parquet); "
            "`fastglt data prepare edges.parquet+nodes.parquet --out graph.fgr`, then use graph.fgr"
        )
    raise InputError(
        f"{path}: a graph must be a .npz file, a .csv file or a folder with edges.csv and nodes.csv "
        f"(got {path.suffix or 'no extension'}); save it as one of these, or name a folder or zip in OGB's layout"
    )
