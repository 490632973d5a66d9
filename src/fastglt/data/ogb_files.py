"""The files of a dataset in OGB's layout, from the folder that OGB unpacks or from the zip that it downloads.

``raw/*.csv.gz`` are tables of numbers without a head: edge, num-node-list, num-edge-list and, as a set has them,
node-feat, node-label, edge-feat, node_species, edge_weight, …; ``split/<name>/`` has the official split's parts as
``csv.gz`` or ``pt``. Node sets (`fastglt.data.ogb`) and link sets share this reader: `OGBFiles.at`, `kind`,
`counts`, `table`, `edges`, `split_folder`, `split_nodes`, `pickled`. Nothing is written, no code in a file is run.

Every flaw is an `InputError` of one line: the place, the file, the rule, what it got, what to do.
"""

from __future__ import annotations

import gzip
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from fastglt.data.base import Ints, sorted_distinct
from fastglt.errors import InputError

Array = npt.NDArray[Any]

EDGES = "raw/edge.csv.gz"
PARTS = ("train", "valid", "test")
FRESH = "replace it with a fresh copy"
_LONGEST = 1 << 20  # characters of a line
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError)


@dataclass(frozen=True, kw_only=True)
class OGBFiles:
    """A dataset's folder, or its zip. Files are named as in the folder: ``raw/edge.csv.gz``."""

    path: Path
    names: frozenset[str]  # all the files
    inside: str | None = None  # the folder in a zip, such as "arxiv/"; None: no zip

    @classmethod
    def at(cls, path: Path) -> OGBFiles | None:
        """What lies there; None if it is neither a zip nor a folder with ``raw/`` or ``split/`` in it."""
        if path.is_dir():
            if not any((path / part).is_dir() for part in ("raw", "split")):
                return None
            found = (Path(folder) / file for folder, _, files in os.walk(path) for file in files)
            return cls(path=path, names=frozenset(file.relative_to(path).as_posix() for file in found))
        if path.suffix.lower() != ".zip" or not path.is_file():
            return None
        with _whole(path, path.name), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        inside = next((name.removesuffix(EDGES) for name in names if f"/{name}".endswith(f"/{EDGES}")), "")
        return cls(
            path=path,
            names=frozenset(name[len(inside) :] for name in names if name.startswith(inside)),
            inside=inside,
        )

    @property
    def kind(self) -> str:
        """What the set is for, as its files tell: "links" if its split is of edges, else "nodes"."""
        parts = [name for name in self.names if name.startswith("split/") and name.endswith("/train.pt")]
        return "links" if parts and "raw/node-label.csv.gz" not in self.names else "nodes"

    def require(self, *files: str) -> None:
        """Refuse a set without some of these files, and name all that it lacks."""
        missing = [file for file in files if file not in self.names]
        if missing:
            rule = f"{self.path}: a set in OGB's layout must have {', '.join(files)}"
            raise InputError(f"{rule} (got none of the name {', '.join(missing)}); {FRESH}")

    def table(
        self, file: str, dtype: npt.DTypeLike, *, rows: int | None = None, columns: int | None = None
    ) -> Array:
        """The numbers of a ``csv.gz``, row by row; refused unless there are so many, and all finite or NaN."""
        self.require(file)
        most = None if rows is None else rows + 1
        with (
            _whole(self.path, file),
            self._opened(file) as packed,
            gzip.open(packed, "rt", encoding="ascii") as text,
        ):
            found = self._numbers(file, _lines(text), np.dtype(dtype), most)
        if columns is not None and found.size and found.shape[1] != columns:
            raise self.wrong(file, f"must have {columns} columns", str(found.shape[1]))
        found = found if found.size else found.reshape(0, columns or 0)
        if rows is not None and len(found) != rows:
            got = "more" if len(found) > rows else f"{len(found):,}"
            raise self.wrong(file, f"must have {rows:,} rows, as num-node-list and num-edge-list say", got)
        if found.dtype.kind == "f" and bool(np.isinf(found).any()):
            row, column = np.argwhere(np.isinf(found))[0]
            raise self.wrong(
                file, "must have finite numbers", f"{found[row, column]} in row {row}, column {column}"
            )
        return found

    def pieces(self, file: str, dtype: npt.DTypeLike, rows: int, *, columns: int | None = None) -> Iterator[Array]:
        """The numbers of a ``csv.gz``, so many rows at a time: of files that memory does not hold."""
        self.require(file)
        with (
            _whole(self.path, file),
            self._opened(file) as packed,
            gzip.open(packed, "rt", encoding="ascii") as text,
        ):
            lines = _lines(text)
            while len(found := self._numbers(file, islice(lines, rows), np.dtype(dtype), None)):
                if columns is not None and found.shape[1] != columns:
                    raise self.wrong(file, f"must have {columns} columns", str(found.shape[1]))
                yield found

    def _numbers(self, file: str, lines: Iterator[str], dtype: np.dtype[Any], most: int | None) -> Array:
        options: dict[str, Any] = {"delimiter": ",", "dtype": dtype, "ndmin": 2, "comments": None, "max_rows": most}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)  # a fraction where a whole number should be
                warnings.simplefilter("ignore", UserWarning)  # no numbers at all
                return np.loadtxt(lines, **options)
        except (ValueError, DeprecationWarning, OverflowError) as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            what = "whole numbers" if dtype.kind == "i" else "numbers"
            got = str(error.__cause__ or error).partition(";")[0].rstrip(".")
            raise self.wrong(file, f"must be a table of {what}, in rows of one length", got) from None

    @cached_property
    def counts(self) -> tuple[int, int]:
        """How many nodes the one graph has, and how many edges as they are listed."""
        self.require(EDGES, "raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz")
        found = []
        for file in ("raw/num-node-list.csv.gz", "raw/num-edge-list.csv.gz"):
            numbers = self.table(file, np.int64, columns=1).ravel()
            if len(numbers) != 1 or numbers[0] < 0:
                raise self.wrong(file, "must have one number, that of one graph", str(numbers[:4].tolist()))
            found.append(int(numbers[0]))
        return found[0], found[1]

    def edges(self) -> tuple[Ints, Ints]:
        """Sources and targets as they are listed."""
        nodes, edges = self.counts
        found = self.table(EDGES, np.int64, rows=edges, columns=2)
        self.check_ids(EDGES, found, nodes)
        return np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1])

    def check_ids(self, file: str, ids: Array, nodes: int) -> None:
        """Refuse numbers that are no node's."""
        wrong = np.argwhere((ids < 0) | (ids >= nodes))
        if len(wrong):
            row = int(wrong[0][0])
            got = f"{ids[tuple(wrong[0])]} in row {row}"
            raise self.wrong(file, f"must have node numbers from 0 to {nodes - 1}", got)

    @cached_property
    def split_folder(self) -> str:
        """Where the official split lies, such as ``split/time``; there is one."""
        found = sorted({name.rpartition("/")[0] for name in self.names if name.startswith("split/")})
        complete = [folder for folder in found if any(name.startswith(f"{folder}/train.") for name in self.names)]
        if len(complete) != 1:
            wanted = ", ".join(f"split/<name>/{part}.csv.gz" for part in PARTS)
            got = ", ".join(complete or found) or "none"
            raise InputError(f"{self.path}: a set must have one split, {wanted} (got {got}); {FRESH}")
        return complete[0]

    def split_nodes(self, part: str) -> Ints:
        """The nodes of a part of the split: train, valid or test."""
        nodes, _ = self.counts
        self.require(*(f"{self.split_folder}/{each}.csv.gz" for each in PARTS))
        file = f"{self.split_folder}/{part}.csv.gz"
        found = self.table(file, np.int64, columns=1).ravel()
        self.check_ids(file, found, nodes)
        repeats = len(found) - len(sorted_distinct(found.copy()))
        if repeats:
            raise self.wrong(file, "must name each node once", f"{repeats:,} repeats")
        return found

    def pickled(self, file: str) -> dict[str, Array]:
        """The arrays of a ``pt`` file by name, read without running code: all but plain arrays is refused."""
        import torch

        self.require(file)
        with _whole(self.path, file), self._opened(file) as packed:
            try:
                with torch.serialization.safe_globals(_numpy_parts()):
                    found = torch.load(packed, map_location="cpu", weights_only=True)
            except (MemoryError, *_DAMAGED):
                raise
            except Exception as error:  # a damaged file can fail in any way
                other = re.search(r"GLOBAL (\S+)", str(error))  # PyTorch's words are long, and say how to run it
                raise self.wrong(
                    file, "must hold plain arrays", other[1] if other else type(error).__name__
                ) from None
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
            raise self.wrong(file, "must hold arrays by name", type(found).__name__)
        return {name: np.asarray(value) for name, value in found.items()}

    @contextmanager
    def _opened(self, file: str) -> Iterator[IO[bytes]]:
        if self.inside is None:
            with (self.path / file).open("rb") as packed:
                yield packed
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(self.inside + file) as packed:
                yield packed

    def wrong(self, file: str, rule: str, got: str) -> InputError:
        """What is to be raised for a file that breaks a rule."""
        return InputError(f"{self.path}: {file} {rule} (got {got}); {FRESH}")


@contextmanager
def _whole(path: Path, file: str) -> Iterator[None]:
    """What a damaged or truncated archive fails with, as an error that names it."""
    try:
        yield
    except _DAMAGED as error:
        got = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: {file} must be a whole archive (got {got}); {FRESH}") from None


def _lines(text: IO[str]) -> Iterator[str]:
    """The lines, of which none is endless."""
    while line := text.readline(_LONGEST):
        if len(line) == _LONGEST:
            raise ValueError(f"a line of {_LONGEST:,} characters")
        yield line


def _numpy_parts() -> list[Any]:
    """What an array of numpy's is made of in a ``pt`` file: values, and nothing that acts."""
    multiarray = np.core.multiarray if np.lib.NumpyVersion(np.__version__) < "2.0.0" else np._core.multiarray  # type: ignore[attr-defined]
    kinds = {type(np.dtype(code)) for code in "?bBhHiIlLqQefd"}
    makers = [multiarray._reconstruct, multiarray.scalar]
    as_of_old = [(maker, f"numpy.core.multiarray.{maker.__name__}") for maker in makers]  # what numpy 1 has written
    return [*makers, *as_of_old, np.ndarray, np.dtype, *kinds, _encode()]


def _encode() -> Any:
    import _codecs

    return _codecs.encode
