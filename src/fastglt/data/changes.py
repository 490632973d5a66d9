"""What has come to a graph and gone from it, in CSV files, and the graph with these changes.

New nodes are listed as in a graph's own nodes.csv, with the same number of features in the same order; `label` and
`split` may be missing. New and removed edges are listed as in edges.csv, removed nodes under `id`. Nodes of a graph
without names are called by their numbers, and new ones are numbered on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastglt.data.base import Bools, Dataset, Floats, Ints, Names, SplitMasks
from fastglt.data.csv_files import OWN_COLUMNS, SPLITS, Rows, open_table, read_edges
from fastglt.data.weighted import merged, unequal_weights
from fastglt.errors import InputError

if TYPE_CHECKING:
    import numpy.typing as npt

PARTS = SplitMasks._fields


@dataclass(frozen=True, kw_only=True)
class ChangeFiles:
    """The files that say what has come and what has gone; at least one of them."""

    edges: Path | None = None
    nodes: Path | None = None
    remove_edges: Path | None = None
    remove_nodes: Path | None = None

    def applied_to(self, dataset: Dataset, *, directed: bool) -> tuple[Dataset, Ints]:
        """The dataset with these changes; and of each of its nodes the number before, −1 if it is new."""
        return _Changed.of(dataset, self, directed=directed).dataset()


@dataclass(frozen=True, kw_only=True)
class _NewNodes:
    """Nodes that have come."""

    ids: list[str] = field(default_factory=list)
    x: Floats
    y: Ints
    splits: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Changed:
    """A dataset and what happens to it, by the numbers that its nodes have with the new ones behind them."""

    before: Dataset
    ids: dict[str, int]
    new: _NewNodes
    gone: Bools  # of all nodes, new ones included
    added: tuple[Ints, Ints, npt.NDArray[np.float64] | None]
    removed: tuple[Ints, Ints]
    directed: bool

    @classmethod
    def of(cls, dataset: Dataset, files: ChangeFiles, *, directed: bool) -> _Changed:
        """Read and check the files."""
        tensors, count = dataset.tensors, dataset.tensors["x"].shape[0]
        if tensors["y"].dim() != 1 or tensors["y"].is_floating_point() or "edge_attr" in tensors:
            what = "edge features" if "edge_attr" in tensors else "labels that are no classes"
            raise InputError(
                f"files of changes are for graphs with a class for each node (got {what}); "
                "write the whole new graph, and pass it as --to"
            )
        names = tuple(map(str, range(count))) if dataset.names is None else dataset.names.nodes
        ids = {name: number for number, name in enumerate(names)}
        new = _read_nodes(files.nodes, dataset, ids)
        gone = np.zeros(len(ids), dtype=np.bool_)
        for number in _read_ids(files.remove_nodes, ids, count):
            gone[number] = True
        added = _read_pairs(files.edges, ids, "edges")
        removed = _read_pairs(files.remove_edges, ids, "edges to remove")
        if added[2] is not None and "edge_weight" not in tensors:
            raise InputError(f"{files.edges}: weights are for graphs that have some (got a graph without)")
        if added[2] is None and "edge_weight" in tensors and files.edges is not None:
            raise InputError(f"{files.edges}: new edges of a weighted graph must have a weight (got no column)")
        changed = cls(
            before=dataset, ids=ids, new=new, gone=gone, added=added, removed=removed[:2], directed=directed
        )
        changed._check_removed(files.remove_edges)
        changed._check_weights(files.edges)
        return changed

    def dataset(self) -> tuple[Dataset, Ints]:
        """The new dataset: nodes that are left in their order, then new ones."""
        import torch

        before, left = self.before, np.flatnonzero(~self.gone)
        count = before.tensors["x"].shape[0]
        number = np.cumsum(~self.gone) - 1
        keys, weights = self._edges()
        source, target = keys // len(self.ids), keys % len(self.ids)
        inside = ~(self.gone[source] | self.gone[target])
        index = np.stack([number[source[inside]], number[target[inside]]])
        y = np.concatenate([before.tensors["y"].numpy(), self.new.y])[left]
        tensors = {
            "x": self._features(left),
            "y": torch.from_numpy(y),
            "edge_index": torch.from_numpy(index),
            **{f"{part}_mask": torch.from_numpy(self._mask(part)[left]) for part in PARTS},
        }
        if weights is not None:
            tensors["edge_weight"] = torch.from_numpy(weights[inside].astype(np.float32))
        names = None
        if before.names is not None:
            every = list(self.ids)
            names = Names(tuple(every[at] for at in left), before.names.classes)
        after = replace(before, tensors=tensors, names=names, compressed=None, drawn=False)
        return after, np.where(left < count, left, -1)

    def _features(self, left: Ints) -> Any:
        """Of those that are left, sparse where they were."""
        import torch

        from fastglt.data.base import sparse_tensor

        x = self.before.tensors["x"]
        if x.layout != torch.sparse_csr:
            return torch.from_numpy(np.concatenate([x.numpy(), self.new.x])[left])
        from scipy.sparse import csr_array, vstack

        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        both: list[Any] = [csr_array(parts, (x.shape[0], x.shape[1])), csr_array(self.new.x)]
        return sparse_tensor(csr_array(vstack(both, format="csr"))[left])

    def _mask(self, part: str) -> Bools:
        old = self.before.tensors[f"{part}_mask"].numpy()
        return np.concatenate([old, np.array([split == part for split in self.new.splits], dtype=np.bool_)])

    def _edges(self) -> tuple[Ints, npt.NDArray[np.float64] | None]:
        """All edges as keys in ascending order, both ways unless directed, and their weights."""
        nodes, tensors = len(self.ids), self.before.tensors
        source, target = tensors["edge_index"].numpy()
        keys = source * nodes + target
        weights = tensors["edge_weight"].double().numpy() if "edge_weight" in tensors else None
        stays = ~np.isin(keys, self._both_ways(*self.removed))
        fresh = self._both_ways(*self.added[:2])
        keys = np.concatenate([keys[stays], fresh])
        if weights is not None:
            new = np.empty(0) if self.added[2] is None else self.added[2]
            new = new if self.directed else np.concatenate([new, new])
            weights = np.concatenate([weights[stays], new])
        keys, first = np.unique(keys, return_index=True)  # an edge that was there before stays as it is
        return keys, None if weights is None else weights[first]

    def _both_ways(self, source: Ints, target: Ints) -> Ints:
        keys = source * len(self.ids) + target
        return keys if self.directed else np.concatenate([keys, target * len(self.ids) + source])

    def _check_weights(self, path: Path | None) -> None:
        """Each new edge has one weight, whichever way and how often it is listed."""
        source, target, weights = self.added
        if path is None or weights is None:
            return
        *_, clash = merged(source, target, weights, nodes=len(self.ids), directed=self.directed)
        if clash is not None:
            first, second = sorted(clash)
            every = list(self.ids)
            ends = (every[source[first]], every[target[first]])
            both = (weights[first], weights[second])
            raise unequal_weights(f"{path}, line {_line_of(path, second)}", both, ends, "keep one of them")

    def _check_removed(self, path: Path | None) -> None:
        source, target = self.before.tensors["edge_index"].numpy()
        there = np.isin(self.removed[0] * len(self.ids) + self.removed[1], source * len(self.ids) + target)
        if not there.all():
            at, every = int(np.flatnonzero(~there)[0]), list(self.ids)
            ends = f"{every[self.removed[0][at]]},{every[self.removed[1][at]]}"
            raise InputError(f"{path}: edges to remove must be in the graph (got {ends}); leave it out")


def _read_nodes(path: Path | None, dataset: Dataset, ids: dict[str, int]) -> _NewNodes:
    """The new nodes, whose ids are added to those that are known."""
    width = dataset.tensors["x"].shape[1]
    if path is None:
        return _NewNodes(x=np.empty((0, width), dtype=np.float32), y=np.empty(0, dtype=np.int64))
    with _file(path) as (header, rows):
        return _NodeTable(path=path, header=header, dataset=dataset).read(rows, ids)


@dataclass(frozen=True, kw_only=True)
class _NodeTable:
    """A file of new nodes, and the graph that they come to."""

    path: Path
    header: list[str]
    dataset: Dataset

    def read(self, rows: Rows, ids: dict[str, int]) -> _NewNodes:
        columns, width = self._features(), self.dataset.tensors["x"].shape[1]
        values, labels, splits = list[list[float]](), list[int](), list[str]()
        for line, row in rows:
            where = f"{self.path}, line {line}"
            if len(row) != len(self.header):
                raise InputError(f"{where}: must have {len(self.header)} cells (got {len(row)}); fix it")
            name, split = row[self.header.index("id")].strip(), self._cell(row, "split")
            if name in ids:
                raise InputError(f"{where}: a new node must have an id of its own (got {name!r} again)")
            if self.dataset.names is None and name != str(len(ids)):
                rule = f"{where}: new nodes of a graph without names are numbered on, here from {len(ids)}"
                raise InputError(f"{rule} (got {name!r})")
            if split not in SPLITS:
                raise InputError(f"{where}: split must be train, val, test or empty (got {split!r}); correct it")
            labels.append(self._label(where, self._cell(row, "label"), split))
            values.append(self._numbers(where, [row[at] for at in columns]))
            splits.append(split)
            ids[name] = len(ids)
        x = np.array(values, dtype=np.float32).reshape(len(values), width)
        return _NewNodes(ids=list(ids)[-len(values) :], x=x, y=np.array(labels, dtype=np.int64), splits=splits)

    def _features(self) -> list[int]:
        if "id" not in self.header:
            raise InputError(f"{self.path}: must have a column 'id' (got {', '.join(self.header)}); add it")
        found = [at for at, name in enumerate(self.header) if name not in OWN_COLUMNS]
        width = self.dataset.tensors["x"].shape[1]
        if len(found) != width:
            rule = f"{self.path}: must have the graph's {width} features, in their order"
            raise InputError(f"{rule} (got {len(found)} columns beside id, label and split)")
        return found

    def _cell(self, row: list[str], name: str) -> str:
        return row[self.header.index(name)].strip() if name in self.header else ""

    def _label(self, where: str, label: str, split: str) -> int:
        """The number of a class that the graph knows; −1 for none."""
        if not label:
            if split:
                raise InputError(f"{where}: a node in a split must have a label (got an empty cell); fill it in")
            return -1
        names = self.dataset.names
        known = tuple(map(str, range(int(self.dataset.tensors["y"].max()) + 1))) if names is None else names.classes
        if label not in known:
            rule = f"{where}: a label must be a class of the graph, {', '.join(known[:5])}"
            raise InputError(
                f"{rule}{', …' if len(known) > 5 else ''} (got {label!r}); a new class needs a new search"
            )
        return known.index(label)

    def _numbers(self, where: str, cells: list[str]) -> list[float]:
        try:
            found = [float(cell) for cell in cells]
        except ValueError as error:
            raise InputError(f"{where}: features must be numbers (got {error})") from None
        if not np.isfinite(found).all():
            raise InputError(f"{where}: features must be finite (got {cells[int(np.argmin(np.isfinite(found)))]})")
        return found


def _read_ids(path: Path | None, ids: dict[str, int], known: int) -> list[int]:
    """Nodes that are gone; a new one cannot be."""
    if path is None:
        return []
    found = []
    with _file(path) as (header, rows):
        if header != ["id"]:
            raise InputError(f"{path}: the header must be id (got {','.join(header)}); leave other columns out")
        for line, row in rows:
            number = ids.get(row[0].strip(), known)
            if number >= known:
                rule = f"{path}, line {line}: nodes to remove must be in the graph"
                raise InputError(f"{rule} (got {row[0]!r}); leave it out")
            found.append(number)
    return found


def _read_pairs(
    path: Path | None, ids: dict[str, int], what: str
) -> tuple[Ints, Ints, npt.NDArray[np.float64] | None]:
    if path is None:
        none = np.empty(0, dtype=np.int64)
        return none, none, None
    with _file(path) as (header, rows):
        return read_edges(path, header, rows, ids, f"the graph and the new nodes ({what})")


def _line_of(path: Path, listed: int) -> int:
    """The line of a row, which blank lines may stand before."""
    with _file(path) as (_, rows):
        lines: list[int] = [line for line, _ in rows]
    return lines[listed]


def _file(path: Path) -> Any:
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    return open_table(path)
