"""A user's graph in one numpy archive: edge_index, x, y and, if wanted, the three masks and edge weights.

Every flaw is an `InputError` of one line: the file, the rule, what it got, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from fastglt.data.base import FileGraph, Floats, Ints, SplitMasks
from fastglt.data.zip_bounds import check_directory, check_size, member
from fastglt.errors import InputError

Array = npt.NDArray[Any]

REQUIRED = ("edge_index", "x", "y")
MASKS = tuple(f"{part}_mask" for part in SplitMasks._fields)
WEIGHTS = ("edge_weight", "edge_attr")  # one or the other, a number for each edge
ADVICE = "write it with numpy.savez(path, edge_index=..., x=..., y=...)"


def read_npz(path: Path) -> FileGraph:
    """The graph in the archive; `masks` is None where it holds none."""
    arrays = _arrays(path)
    features, labels = as_features(path, arrays["x"]), as_labels(path, arrays["y"])
    if len(labels) != len(features):
        raise InputError(
            f"{path}: x and y must have one row per node (got {len(features)} rows in x and "
            f"{len(labels)} in y); save both in the same node order"
        )
    source, target = as_edges(path, arrays["edge_index"], len(labels))
    masks, weights = as_masks(path, arrays, len(labels)), _weights(path, arrays, len(source))
    return FileGraph(features=features, labels=labels, source=source, target=target, masks=masks, weights=weights)


def _arrays(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; {ADVICE}")
    with path.open("rb") as file, _archive(path, file) as archive:
        for name in REQUIRED:
            if name not in archive.files:
                got = ", ".join(archive.files) or "none"
                raise InputError(f"{path}: must have an array '{name}' (got {got}); {ADVICE}")
        check_names(path, archive.files)
        _check_sizes(path, archive)
        return {name: _array(path, archive, name) for name in archive.files}


def check_names(path: Path, names: Iterable[str]) -> None:
    """Refuse arrays of other names, such as a mask's that is spelt otherwise."""
    known = (*REQUIRED, *MASKS, *WEIGHTS)
    for name in names:
        if name not in known:
            raise InputError(f"{path}: arrays may be {', '.join(known)} (got '{name}'); leave it out")


def _archive(path: Path, file: BinaryIO) -> np.lib.npyio.NpzFile:
    try:
        archive = np.load(file, allow_pickle=False)
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise InputError(
            f"{path}: must be a .npz archive (got another kind of file, or a damaged one); {ADVICE}"
        ) from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path}: must be a .npz archive (got a single array); {ADVICE}")
    assert archive.zip is not None, "it was just opened"
    try:
        check_directory(archive.zip)
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: must be a whole .npz archive (got {error}); write it again") from None
    return archive


def _check_sizes(path: Path, archive: np.lib.npyio.NpzFile) -> None:
    """Refuse arrays that are not what they say, or are too many, before one of them is read."""
    assert archive.zip is not None, "it was just opened"
    found = {}
    for name in archive.files:
        try:
            found[name] = member(archive.zip, name)
        except MemoryError:
            raise
        except Exception as error:  # a damaged file can fail in any way
            raise InputError(
                f"{path}: {name} must be a plain array of numbers (got {' '.join(str(error).split())}); "
                "save it with a numeric dtype, for pickled objects are never opened"
            ) from error
    try:
        check_size(found, path.stat().st_size)
    except ValueError as error:
        raise InputError(f"{path}: {error}; {ADVICE}") from None


def _array(path: Path, archive: np.lib.npyio.NpzFile, name: str) -> Array:
    try:
        return np.asarray(archive[name])
    except MemoryError:
        raise
    except Exception as error:  # a damaged file can fail in any way
        raise InputError(f"{path}: {name} is damaged (got {error}); write the file again") from error


def as_features(path: Path, x: Array) -> Floats:
    """Features as they are computed with."""
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(f"{path}: x must have shape [nodes, features] (got {_shape(x)}); reshape it")
    if x.dtype.kind not in "fiub":
        raise InputError(f"{path}: x must hold real numbers (got {x.dtype}); convert it to float32")
    with np.errstate(over="ignore"):  # too large becomes inf, which is refused later by name
        return x.astype(np.float32)


def as_labels(path: Path, y: Array) -> Ints | Floats:
    """Whole numbers for classes, or real ones for a task that predicts such; the task decides what it takes.

    Several columns are labels of which each is there or not.
    """
    if y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind in "iufb":
        return y.astype(np.float32)
    if y.ndim != 1:
        raise InputError(
            f"{path}: y must have shape [nodes], or [nodes, labels] (got {_shape(y)}); give one class per node"
        )
    if y.dtype.kind == "f":
        return y.astype(np.float32)
    if y.dtype.kind not in "iu":
        raise InputError(f"{path}: y must hold numbers (got {y.dtype}); convert it to int64")
    return y.astype(np.int64)


def as_edges(path: Path, edges: Array, nodes: int) -> tuple[Ints, Ints]:
    """Sources and targets."""
    if edges.ndim != 2 or len(edges) != 2:
        advice = "transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else "give sources, then targets"
        raise InputError(f"{path}: edge_index must have shape [2, edges] (got {_shape(edges)}); {advice}")
    if edges.dtype.kind not in "iu":
        raise InputError(f"{path}: edge_index must hold whole numbers (got {edges.dtype}); convert it to int64")
    if edges.size and (edges.min() < 0 or edges.max() >= nodes):
        worst = edges.min() if edges.min() < 0 else edges.max()
        raise InputError(
            f"{path}: edge_index must hold node numbers from 0 to {nodes - 1} (got {worst}); "
            "number the nodes by their rows in x"
        )
    source, target = edges.astype(np.int64)
    return source, target


def _weights(path: Path, arrays: dict[str, Array], edges: int) -> npt.NDArray[np.float64] | None:
    given = [name for name in WEIGHTS if name in arrays]
    if not given:
        return None
    if len(given) > 1:
        raise InputError(f"{path}: give edge_weight or edge_attr (got both); leave one out")
    (name,), weights = given, arrays[given[0]]
    if weights.shape != (edges,):
        rule = f"{path}: {name} must have shape [{edges}], a number for each edge"
        raise InputError(f"{rule} (got {_shape(weights)}); leave it out, or give weights alone")
    if weights.dtype.kind not in "fiub":
        raise InputError(f"{path}: {name} must hold real numbers (got {weights.dtype}); convert it to float32")
    return weights.astype(np.float64)


def as_masks(path: Path, arrays: dict[str, Array], nodes: int) -> SplitMasks | None:
    """The split, if the arrays have one."""
    given = [name for name in MASKS if name in arrays]
    if not given:
        return None
    for name in MASKS:
        if name not in arrays:
            raise InputError(f"{path}: give all three masks or none (got {', '.join(given)}); add {name}")
        mask = arrays[name]
        if mask.shape != (nodes,):
            raise InputError(
                f"{path}: {name} must have shape [{nodes}] (got {_shape(mask)}); give one value per node"
            )
        if mask.dtype != np.bool_:
            raise InputError(f"{path}: {name} must hold booleans (got {mask.dtype}); convert it to bool")
    return SplitMasks(*(arrays[name] for name in MASKS))


def _shape(array: Array) -> str:
    return str(list(array.shape))
