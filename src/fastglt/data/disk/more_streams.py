"""Sources in OGB's layout and in Parquet files, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastglt.data.base import Floats, Ints, Names, SplitMasks
from fastglt.data.csv_files import BELOW_ZERO, NO_LABELS, OWN_COLUMNS, SPLITS, classes_of
from fastglt.data.disk.streams import ROWS, Edges, Stream
from fastglt.data.ogb import EDGE_FEATURES, LABELS, NODE_FEATURES, known_as, mask_of, read_labels
from fastglt.data.ogb_files import EDGES, PARTS, OGBFiles
from fastglt.errors import InputError, MachineError


def of_ogb(files: OGBFiles) -> Stream | None:
    """Of a node set in OGB's layout; None if edges have features, for these are merged in memory."""
    if files.kind == "links":
        got = "one whose split is of edges"
        raise InputError(f"{files.path}: a graph to prepare must have labels of nodes (got {got})")
    if EDGE_FEATURES in files.names:
        return None
    nodes, listed = files.counts
    files.require(LABELS, NODE_FEATURES)
    labels = read_labels(files, nodes)
    columns = next(files.pieces(NODE_FEATURES, np.float32, 1)).shape[1]
    many = 1 if labels.ndim == 1 else labels.shape[1]

    def read(most: int) -> Edges:
        found = 0
        for both in files.pieces(EDGES, np.int64, most, columns=2):
            files.check_ids(EDGES, both, nodes)
            found += len(both)
            yield np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
        if found != listed:
            raise files.wrong(EDGES, f"must have {listed:,} rows, as num-edge-list says", f"{found:,}")

    def rows() -> Iterator[Floats]:
        for found in files.pieces(NODE_FEATURES, np.float32, ROWS, columns=columns):
            yield found.astype(np.float32)

    plain = files.path.resolve().stem
    return Stream(
        name=known_as(files.counts, columns, many, "") or plain,
        labels=labels,
        features=columns,
        rows=rows,
        edges=read,
        masks=SplitMasks(*(mask_of(files.split_nodes(part), nodes) for part in PARTS)),
        files=(files.path,) if files.path.is_file() else tuple(sorted(files.path / name for name in files.names)),
    )


def of_parquet(edges: Path, nodes: Path, name: str) -> Stream:
    """Of two Parquet files with the columns of the CSV ones: source, target; id, label, split and features.

    Ids are whole numbers or texts; labels likewise, and empty where they are unknown.
    """
    dataset = _pyarrow()
    for path in (edges, nodes):
        if not path.exists():
            raise InputError(f"{path}: no such file; check the path")
    table, links = dataset.ParquetFile(nodes), dataset.ParquetFile(edges)
    _require(nodes, table.schema_arrow.names, ("id", "label"))
    _require(edges, links.schema_arrow.names, ("source", "target"))
    if "weight" in links.schema_arrow.names:
        raise InputError(f"{edges}: edges of Parquet files have no weights (got a column 'weight'); remove it")
    others = [column for column in table.schema_arrow.names if column not in OWN_COLUMNS]
    if not others:
        raise InputError(f"{nodes}: must have a feature column (got only {', '.join(table.schema_arrow.names)})")
    ids = _column(table, "id")
    number = _Numbers(ids, nodes)
    labels, classes = classes_of([_label(nodes, label) for label in table.read(["label"])["label"].to_pylist()])

    plain = number.plain and classes == tuple(map(str, range(len(classes))))

    def read(most: int) -> Edges:
        for batch in links.iter_batches(most, columns=["source", "target"]):
            yield tuple(number.of(_values(batch.column(end)), edges) for end in ("source", "target"))  # type: ignore[misc]

    def rows() -> Iterator[Floats]:
        for batch in table.iter_batches(ROWS, columns=others):
            parts = [_floats(batch.column(column), column, nodes) for column in others]
            yield np.concatenate(parts, axis=1)

    first = next(table.iter_batches(1, columns=others))
    return Stream(
        name=name,
        labels=labels,
        features=sum(_floats(first.column(column), column, nodes).shape[1] for column in others),
        rows=rows,
        edges=read,
        masks=_split(table, nodes),
        names=None if plain else Names(tuple(map(str, ids.tolist())), classes),
        files=(edges, nodes),
    )


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MachineError("Parquet needs pyarrow, which is not there; pip install 'fastglt[parquet]'") from None
    return pyarrow.parquet


def _require(path: Path, columns: list[str], wanted: tuple[str, ...]) -> None:
    for name in wanted:
        if name not in columns:
            raise InputError(f"{path}: must have a column '{name}' (got {', '.join(columns)}); add it")


def _column(table: Any, name: str) -> Any:
    return _values(table.read([name])[name])


def _values(column: Any) -> Any:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _label(path: Path, label: object) -> str:
    """As in a CSV file: empty where it is unknown, as one below 0 is."""
    if label is None or (isinstance(label, int | float) and label < 0):
        return ""
    text = str(label).strip()
    if text.lower() in NO_LABELS:
        raise InputError(f"{path}: a label must name a class (got {text!r}); leave the cell empty for none")
    return "" if BELOW_ZERO.fullmatch(text) else text


def _floats(column: Any, name: str, path: Path) -> Floats:
    """A column of numbers, or of lists of one length, as columns of a matrix."""
    kind, flat = str(column.type), column
    if "list" in kind:
        lengths = _lengths(column)
        if len(lengths) > 1 or None in lengths:
            got = ", ".join("none" if length is None else str(length) for length in lengths)
            raise InputError(f"{path}: lists in a column must be of one length (got {got} in column '{name}')")
        flat = column.flatten()
    values = _values(flat)
    if values.dtype.kind not in "fiub":
        raise InputError(f"{path}: features must be numbers (got {kind} in column '{name}'); encode or remove it")
    found: Floats = values.astype(np.float32).reshape(len(column), -1)
    return found


def _lengths(column: Any) -> list[int | None]:
    """The different lengths of a column's lists; None: there is a row without a list."""
    import pyarrow.compute

    found: list[int | None] = pyarrow.compute.list_value_length(column).unique().to_pylist()
    return found


def _split(table: Any, path: Path) -> SplitMasks | None:
    if "split" not in table.schema_arrow.names:
        return None
    parts = np.array([part or "" for part in table.read(["split"])["split"].to_pylist()])
    for part in np.unique(parts):
        if part not in SPLITS:
            raise InputError(f"{path}: split must be train, val, test or empty (got {str(part)!r}); correct it")
    return SplitMasks(*(parts == part for part in SplitMasks._fields)) if parts.any() else None


class _Numbers:
    """From a node's id to its row."""

    def __init__(self, ids: Any, path: Path) -> None:
        self.plain = ids.dtype.kind in "iu" and bool((ids == np.arange(len(ids))).all())
        self._path, self._count = path, len(ids)
        if not self.plain:
            self._order = np.argsort(ids, kind="stable")
            self._sorted = ids[self._order]
            if bool((self._sorted[1:] == self._sorted[:-1]).any()):
                raise InputError(f"{path}: ids must differ (got one of them twice); remove one of the two")

    def of(self, ends: Any, path: Path) -> Ints:
        if self.plain:
            known = (ends >= 0) & (ends < self._count) & (ends % 1 == 0)
            found = ends
        else:
            places = np.searchsorted(self._sorted, ends).clip(max=self._count - 1)
            known, found = self._sorted[places] == ends, self._order[places]
        if not bool(known.all()):
            got = ends[~known][0]
            raise InputError(f"{path}: ends must be ids in {self._path} (got {got!r}); add that node or fix the id")
        return np.asarray(found, dtype=np.int64)
