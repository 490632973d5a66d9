"""What a graph is prepared from: a source that gives its edges and features a piece at a time.

Edge lists need not fit into memory, nor features of numpy arrays, OGB's tables and Parquet files. Labels, the split
and, of CSV files, the nodes do.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from fastglt.data.base import Dataset, Floats, Ints, Names, SplitMasks, random_split, seeded_split
from fastglt.data.csv_files import WEIGHTED_COLUMNS, classes_of, open_table, read_edges, read_nodes
from fastglt.data.disk.layout import Array, release
from fastglt.data.npz_file import MASKS, REQUIRED, WEIGHTS, as_edges, as_features, as_labels, as_masks, check_names
from fastglt.errors import InputError

GIVEN, RANDOM = "given", "random"  # the split: fixed, or drawn by its seed
BY_CLASS = "by class"  # drawn too, with so many nodes of each class: "by class 20 30"

Edges = Iterator[tuple[Ints, Ints]]
ROWS = 1 << 16  # of features at a time


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A source: what is known of it at once, and its edges and features a piece at a time."""

    name: str
    labels: Ints | Floats
    features: int
    rows: Callable[[], Iterator[Floats]]  # features, some nodes at a time, in order
    edges: Callable[[int], Edges]  # so many at a time
    masks: SplitMasks | None = None  # None: drawn by the split's seed
    names: Names | None = None
    files: tuple[Path, ...] = ()  # that it is read from
    sparse: Any = None  # features in compressed rows, where they are in memory so
    values: Mapping[str, Array] = field(default_factory=dict)  # of the edges, in the order of tidy columns
    metric: str = ""
    reversed_edges: int | None = None  # None: as many as are listed one way

    drawn: str = ""  # how, where that is not as usual

    @property
    def split(self) -> str:
        """How nodes come to be trained on, validated and tested."""
        if self.masks is not None:
            return GIVEN
        return self.drawn or (RANDOM if self.labels.dtype.kind == "f" else f"{BY_CLASS} 20 30")


def draw(split: str, labels: Ints | Floats, seed: int) -> SplitMasks:
    """A split that is not given."""
    if split == RANDOM:
        return random_split(len(labels), seed)
    train, val = map(int, split.removeprefix(BY_CLASS).split())
    return seeded_split(labels.astype(np.int64), seed, train=train, val=val)


def _drawn(labels: Ints | Floats, masks: SplitMasks) -> str:
    """How a split of seed 0 was drawn; nothing if it was not."""
    if labels.dtype.kind == "f":
        split = RANDOM
    else:
        most = [int(np.bincount(labels[mask].clip(min=0)).max(initial=0)) for mask in masks[:2]]
        split = f"{BY_CLASS} {most[0]} {most[1]}"
    equal = zip(masks, draw(split, labels, 0), strict=True)
    return split if all(np.array_equal(one, other) for one, other in equal) else ""


def of_dataset(dataset: Dataset) -> Stream:
    """A graph that is in memory; its split is taken for a drawn one if it is what seed 0 draws."""
    tensors = {name: value for name, value in dataset.tensors.items() if name != "x"}
    arrays, x = {name: value.numpy() for name, value in tensors.items()}, dataset.tensors["x"]
    dense = x.layout.__str__() == "torch.strided"
    masks, labels = SplitMasks(*(arrays[name] for name in MASKS)), arrays["y"]
    drawn = _drawn(labels, masks)
    source, target = arrays["edge_index"]
    parts = None if dense else (x.crow_indices().numpy(), x.col_indices().numpy(), x.values().numpy())
    return Stream(
        name=dataset.name,
        metric=dataset.metric,
        labels=labels,
        features=x.shape[1],
        rows=lambda: _slices(x.numpy()) if dense else iter(()),
        edges=lambda most: ((source[at : at + most], target[at : at + most]) for at in range(0, len(source), most)),
        masks=None if drawn else masks,
        drawn=drawn,
        names=dataset.names,
        sparse=parts,
        values={name: arrays[name] for name in WEIGHTS if name in arrays},
        reversed_edges=dataset.reversed_edges,
    )


def _slices(rows: Array) -> Iterator[Floats]:
    for at in range(0, len(rows), ROWS):
        yield rows[at : at + ROWS]
        release(rows)


def of_arrays(path: Path) -> Stream | None:
    """Of an ``.npz`` file, or a folder with the same arrays as ``.npy`` files; None if edges have weights."""
    names = {"edge_index", "x", "y"}
    member = _Zipped(path) if path.is_file() else _Folder(path)
    if not names <= member.names:
        missing = ", ".join(sorted(names - member.names))
        raise InputError(f"{path}: must have arrays {', '.join(REQUIRED)} (got none of the name {missing}); add it")
    if member.names & set(WEIGHTS):
        return None
    check_names(path, sorted(member.names))
    labels = as_labels(path, member.whole("y"))
    shape = member.shape("x")
    if len(shape) != 2 or shape[0] != len(labels):
        rule = f"{path}: x must have one row for each of {len(labels):,} nodes in y"
        raise InputError(f"{rule} (got shape {list(shape)}); save both in the same order")
    given = {name: member.whole(name) for name in MASKS if name in member.names}
    return Stream(
        name=path.name,
        labels=labels,
        features=shape[1],
        rows=lambda: (as_features(path, rows) for rows in member.rows("x", ROWS)),
        edges=lambda most: (as_edges(path, both, len(labels)) for both in member.pairs("edge_index", most)),
        masks=as_masks(path, given, len(labels)),
        files=member.files,
    )


class _Folder:
    """Arrays as ``.npy`` files of a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.names = {file.stem for file in path.glob("*.npy")}
        self.files = tuple(sorted(path.glob("*.npy")))

    def _opened(self, name: str) -> Array:
        try:
            found: Array = np.load(self._path / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            return found
        except ValueError as error:
            raise InputError(f"{self._path / name}.npy must be an array of numbers (got {error})") from None

    def shape(self, name: str) -> tuple[int, ...]:
        return self._opened(name).shape

    def whole(self, name: str) -> Array:
        return np.array(self._opened(name))

    def rows(self, name: str, most: int) -> Iterator[Array]:
        found = self._opened(name)
        for at in range(0, len(found), most):
            yield np.array(found[at : at + most])
            release(found)

    def pairs(self, name: str, most: int) -> Iterator[Array]:
        found = self._opened(name)
        if found.ndim != 2 or len(found) != 2:
            raise InputError(f"{self._path}: {name} must have shape [2, edges] (got {list(found.shape)})")
        for at in range(0, found.shape[1], most):
            yield np.array(found[:, at : at + most])
            release(found)


class _Zipped:
    """Arrays of an ``.npz`` file, read through from their beginnings."""

    def __init__(self, path: Path) -> None:
        self._path, self.files = path, (path,)
        try:
            with zipfile.ZipFile(path) as archive:
                self.names = {name.removesuffix(".npy") for name in archive.namelist()}
        except (zipfile.BadZipFile, OSError) as error:
            raise InputError(f"{path}: must be a whole .npz archive (got {error}); write it again") from None

    def _begin(self, archive: zipfile.ZipFile, name: str) -> tuple[IO[bytes], tuple[int, ...], np.dtype[Any], bool]:
        """The numbers of an array, its shape and type, and whether they come column by column."""
        file = archive.open(f"{name}.npy")
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except ValueError as error:
            raise InputError(f"{self._path}: {name} is damaged (got {error}); write the file again") from None
        if dtype.hasobject:
            raise InputError(
                f"{self._path}: {name} must be plain numbers (got objects); save it as an array of them"
            )
        return file, shape, dtype, by_columns and len(shape) > 1

    def shape(self, name: str) -> tuple[int, ...]:
        with zipfile.ZipFile(self._path) as archive:
            return self._begin(archive, name)[1]

    def whole(self, name: str) -> Array:
        with np.load(self._path, allow_pickle=False) as archive:
            return np.asarray(archive[name])

    def rows(self, name: str, most: int) -> Iterator[Array]:
        with zipfile.ZipFile(self._path) as archive:
            file, shape, dtype, by_columns = self._begin(archive, name)
            if by_columns:
                rule = f"{self._path}: {name} must be stored row by row (got it column by column)"
                raise InputError(f"{rule}; save numpy.ascontiguousarray({name}) instead")
            width = int(np.prod(shape[1:]))
            for at in range(0, shape[0], most):
                count = min(most, shape[0] - at)
                yield self._read(file, name, count * width, dtype).reshape(count, *shape[1:])

    def pairs(self, name: str, most: int) -> Iterator[Array]:
        with zipfile.ZipFile(self._path) as archive:
            (first, shape, dtype, by_columns), (second, *_) = (self._begin(archive, name) for _ in range(2))
            if len(shape) != 2 or shape[0] != 2:
                raise InputError(f"{self._path}: {name} must have shape [2, edges] (got {list(shape)})")
            if by_columns:  # an edge's two ends stand side by side
                for at in range(0, shape[1], most):
                    count = min(most, shape[1] - at)
                    yield np.ascontiguousarray(self._read(first, name, 2 * count, dtype).reshape(count, 2).T)
                return
            second.seek(shape[1] * dtype.itemsize, 1)
            for at in range(0, shape[1], most):
                count = min(most, shape[1] - at)
                yield np.stack([self._read(file, name, count, dtype) for file in (first, second)])

    def _read(self, file: IO[bytes], name: str, count: int, dtype: np.dtype[Any]) -> Array:
        try:
            content = file.read(count * dtype.itemsize)
        except (zipfile.BadZipFile, EOFError) as error:
            raise InputError(f"{self._path}: {name} is damaged (got {error}); write the file again") from None
        if len(content) < count * dtype.itemsize:
            raise InputError(f"{self._path}: {name} is cut short; write the file again")
        return np.frombuffer(content, dtype)


def of_csv(edges: Path, nodes: Path, name: str) -> Stream | None:
    """Of two CSV files: the nodes are held in memory, the edges are not; None if edges have weights."""
    for path in (edges, nodes):
        if not path.is_file():
            raise InputError(f"{path}: no such file; check the path")
    with open_table(edges) as (header, _):
        if header == WEIGHTED_COLUMNS:
            return None
    with open_table(nodes) as (header, rows):
        table = read_nodes(nodes, header, rows)
    labels, classes = classes_of(table.labels)
    x = table.features()

    def read(most: int) -> Edges:
        with open_table(edges) as (header, rows):
            while batch := list(islice(rows, most)):
                source, target, _ = read_edges(edges, header, iter(batch), table.numbers, nodes)
                yield source, target

    return Stream(
        name=name,
        labels=labels,
        features=x.shape[1],
        rows=lambda: _slices(x),
        edges=read,
        masks=table.masks(),
        names=Names(tuple(table.numbers), classes),
        files=(edges, nodes),
    )
