"""A user's graph in two CSV files: edges (source, target, weight) and nodes (id, label, split, features).

Every flaw is an `InputError` of one line: the file and line, the rule, what it got, what to do.
"""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastglt.data.base import FileGraph, Floats, Ints, Names, SplitMasks
from fastglt.errors import InputError

EDGE_COLUMNS = ["source", "target"]
WEIGHTED_COLUMNS = [*EDGE_COLUMNS, "weight"]
SPLITS = ("", *SplitMasks._fields)
OWN_COLUMNS = ("id", "label", "split")
NO_LABELS = ("nan", "none", "null")  # as some programs write an empty cell
BELOW_ZERO = re.compile(r"-0*[1-9]\d*")  # no label either, as in a .npz file

Rows = Iterator[tuple[int, list[str]]]  # line number and cells


def read_csv(edges: Path, nodes: Path) -> FileGraph:
    """The graph in the two files; `masks` is None where no node names its split."""
    if not edges.is_file():
        raise InputError(f"{edges}: no such file; check the path")
    if not nodes.is_file():
        raise InputError(f"{nodes}: no such file; put the nodes there, or name both files as edges.csv+nodes.csv")
    with open_table(nodes) as (header, rows):
        table = read_nodes(nodes, header, rows)
    with open_table(edges) as (header, rows):
        source, target, weights = read_edges(edges, header, rows, table.numbers, nodes)
    labels, classes = classes_of(table.labels)
    return FileGraph(
        features=table.features(),
        labels=labels,
        source=source,
        target=target,
        masks=table.masks(),
        names=Names(tuple(table.numbers), classes),
        weights=weights,
    )


@contextmanager
def open_table(path: Path) -> Iterator[tuple[list[str], Rows]]:
    """The header and the rows that are not blank, with anything unreadable turned into our error."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [column.strip() for column in next(lines, [])]
            if not header:
                raise InputError(f"{path}: the file is empty; its first line must name the columns")
            yield header, ((lines.line_num, row) for row in lines if row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: must be a CSV file in UTF-8 (got {error}); save it again as such") from error


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where the node file keeps what."""

    id: int
    label: int
    split: int | None
    features: list[int]


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The node file's columns, as read."""

    numbers: dict[str, int]  # a node's id -> its row
    labels: list[str]  # empty where unknown
    splits: list[str]
    values: array[float]  # features, row after row

    def features(self) -> Floats:
        """A row for each node."""
        with np.errstate(over="ignore"):  # too large becomes inf, which is refused later by name
            return np.array(self.values).reshape(len(self.labels), -1).astype(np.float32)

    def masks(self) -> SplitMasks | None:
        """The split, if a node names one."""
        if not any(self.splits):
            return None
        splits = np.array(self.splits)
        return SplitMasks(*(splits == part for part in SplitMasks._fields))


def read_nodes(path: Path, header: list[str], rows: Rows) -> Nodes:
    """The node file's columns."""
    columns = _columns(path, header)
    nodes, below_zero = Nodes(numbers={}, labels=[], splits=[], values=array("d")), False
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(
                f"{path}, line {line}: must have {len(header)} cells, one per column (got {len(row)}); fix it"
            )
        name, label = row[columns.id].strip(), row[columns.label].strip()
        split = "" if columns.split is None else row[columns.split].strip()
        if name in nodes.numbers:
            raise InputError(f"{path}, line {line}: ids must differ (got {name!r} again); remove one of the two")
        if label.lower() in NO_LABELS:
            what = f"{path}, line {line}: a label must name a class (got {label!r}); leave the cell empty for none"
            raise InputError(what)
        if BELOW_ZERO.fullmatch(label):
            label, below_zero = "", True
        if split and not label:
            got = repr(row[columns.label]) if row[columns.label] else "an empty cell"
            raise InputError(f"{path}, line {line}: a node in a split must have a label (got {got}); fill it in")
        if split not in SPLITS:
            raise InputError(
                f"{path}, line {line}: split must be train, val, test or empty (got {split!r}); correct it"
            )
        nodes.numbers[name] = len(nodes.labels)
        nodes.labels.append(label)
        nodes.splits.append(split)
        try:
            nodes.values.extend([float(row[at]) for at in columns.features])
        except ValueError as error:
            raise _not_a_number(path, line, header, row, columns) from error
    known = set(filter(None, nodes.labels))
    if not known:
        raise InputError(f"{path}: must have at least one labelled node (got none); add the nodes")
    if below_zero and len(known) == 1:
        rule = "labels below 0 mean that the class is unknown"
        raise InputError(f"{path}: {rule} (got one other label, {known.pop()!r}); number the classes from 0")
    return nodes


def _columns(path: Path, header: list[str]) -> _Columns:
    for name in ("id", "label"):
        if name not in header:
            raise InputError(f"{path}: must have a column '{name}' (got {', '.join(header)}); add it")
    for name, times in Counter(header).items():
        if times > 1:
            raise InputError(f"{path}: columns must differ (got '{name}' twice); rename or remove one")
    features = [at for at, name in enumerate(header) if name not in OWN_COLUMNS]
    if not features:
        raise InputError(f"{path}: must have a feature column (got only {', '.join(header)}); add one")
    split = header.index("split") if "split" in header else None
    return _Columns(id=header.index("id"), label=header.index("label"), split=split, features=features)


def _not_a_number(path: Path, line: int, header: list[str], row: list[str], columns: _Columns) -> InputError:
    def bad(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return True
        return False

    at = next(at for at in columns.features if bad(row[at]))
    return InputError(
        f"{path}, line {line}, column {header[at]!r}: features must be numbers (got {row[at]!r}); "
        "encode it as numbers or remove the column"
    )


def classes_of(labels: list[str]) -> tuple[Ints, tuple[str, ...]]:
    """Class indices by the labels' order, -1 where there is none, and the classes' names.

    They are ordered by value if all are whole numbers, of which 1 and 01 are one; else by spelling.
    """
    known = set(filter(None, labels))
    order: dict[str, Any] = {label: label for label in known}
    with suppress(ValueError):
        order = {label: int(label) for label in known}
    index = {value: number for number, value in enumerate(sorted(set(order.values())))}
    numbers = [index[order[label]] if label else -1 for label in labels]
    return np.array(numbers, dtype=np.int64), tuple(map(str, index))


def read_edges(
    path: Path, header: list[str], rows: Rows, numbers: dict[str, int], nodes: Path | str
) -> tuple[Ints, Ints, npt.NDArray[np.float64] | None]:
    """Both ends of each edge, and the weights where there is a column of them."""
    if header not in (EDGE_COLUMNS, WEIGHTED_COLUMNS):
        raise InputError(
            f"{path}: the header must be source,target or source,target,weight (got {','.join(header)}); "
            "rename the columns and remove any others"
        )
    source, target, weights = array("q"), array("q"), array("d")
    for line, row in rows:
        if len(row) != len(header):
            what = f"{path}, line {line}: must have {len(header)} cells (got {len(row)}); write {','.join(header)}"
            raise InputError(what)
        try:
            source.append(numbers[row[0].strip()])
            target.append(numbers[row[1].strip()])
        except KeyError as error:
            what = f"{path}, line {line}: ends must be ids in {nodes} (got {error}); add that node or fix the id"
            raise InputError(what) from error
        for cell in row[2:]:
            weights.append(_weight(path, line, cell))
    found = np.array(weights) if header == WEIGHTED_COLUMNS else None
    return np.array(source, dtype=np.int64), np.array(target, dtype=np.int64), found


def _weight(path: Path, line: int, cell: str) -> float:
    with suppress(ValueError):
        weight = float(cell)
        if math.isfinite(weight):
            return weight
    raise InputError(f"{path}, line {line}: a weight must be a finite number (got {cell!r}); correct it")
