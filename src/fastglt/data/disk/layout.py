"""The folder of a prepared graph: plain ``.npy`` arrays, and a manifest that says what they are.

The manifest is written last, into a folder that has another name until then: where there is one of a known version,
the graph is whole. Sizes and times of files are compared whenever a folder is opened, checksums of files that were
written after the manifest, and of all when somebody asks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastglt.errors import InputError
from fastglt.system import plain_json
from fastglt.system.storage import disk_errors, read_bytes, write_atomically

Array = npt.NDArray[Any]

SUFFIX = ".fgr"
MANIFEST = "manifest.json"
FORMAT, VERSION = "fastglt-graph", 1
PARTIAL = ".partial"  # follows the name of a folder that is being made
_MOST = 1 << 24  # bytes of a manifest
_CHUNK = 1 << 24  # bytes
_AGAIN = "prepare it again (fastglt data prepare)"
_NUMBERS = ("nodes", "edges", "loops", "columns", "features", "nonzero")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a prepared graph is: how it is known, how large it is, its arrays, and digests of what it says."""

    name: str
    metric: str
    directed: bool
    nodes: int
    edges: int  # that can be pruned
    loops: int  # nodes with a self-loop
    columns: int  # of edge_index
    features: int
    nonzero: int  # features that are not 0
    reversed_edges: int
    split: str  # given, or how it is drawn by its seed
    fingerprints: Mapping[str, str]  # as `Graph` and `Features` have them
    arrays: Mapping[str, Mapping[str, Any]]  # by name: dtype, shape, bytes of the file, sha256 of it
    source: Mapping[str, Any]  # what it was made from

    def write(self, folder: Path) -> None:
        """The last thing that is written."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        text = json.dumps({"format": FORMAT, "version": VERSION, **values}, indent=1)
        write_atomically(folder / MANIFEST, f"{text}\n".encode())

    @staticmethod
    def read(folder: Path) -> Manifest:
        """The manifest of a folder; what is no whole graph, or is of another version, is one clear line."""
        path = folder / MANIFEST
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder; fastglt data prepare SOURCE --out {folder} makes one")
        if not path.is_file():
            rule = f"{folder}: a prepared graph must have a {MANIFEST}"
            raise InputError(f"{rule} (got none, as of one that was not finished); {_AGAIN}")
        try:
            found = plain_json.loads(read_bytes(path, most=_MOST))
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise _damaged(folder, f"{MANIFEST} is not what was written")
        if found.get("version") != VERSION:
            rule = f"{folder}: a prepared graph must be of version {VERSION}"
            raise InputError(f"{rule} (got {found.get('version')!r}); use a newer fastglt, or {_AGAIN}")
        del found["format"], found["version"]
        try:
            made = Manifest(**found)
            counts = [getattr(made, name) for name in _NUMBERS]
            if all(isinstance(count, int) and count >= 0 for count in counts) and _are_entries(made.arrays):
                return made
        except (TypeError, AttributeError):
            pass
        raise _damaged(folder, f"{MANIFEST} is not what was written")


def _are_entries(arrays: Mapping[str, Any]) -> bool:
    """Whether each array is described, and none has a name that leads elsewhere."""
    keys = {"dtype", "shape", "bytes", "sha256"}
    return all(keys <= set(entry) and name.isidentifier() for name, entry in arrays.items())


def _damaged(folder: Path, how: str) -> InputError:
    return InputError(f"{folder}: the prepared graph is damaged ({how}); {_AGAIN}")


class Arrays:
    """The arrays of a whole folder, each mapped into memory when it is asked for."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder, self.manifest = folder, manifest
        self._maps: dict[str, Array] = {}
        for name, entry in manifest.arrays.items():
            path = file_of(folder, name)
            got = f"{path.stat().st_size:,} bytes" if path.is_file() else "no such file"
            if not path.is_file() or path.stat().st_size != entry["bytes"]:
                raise _damaged(folder, f"{path.name} must have {entry['bytes']:,} bytes, got {got}")

    def __contains__(self, name: str) -> bool:
        return name in self.manifest.arrays

    def __getitem__(self, name: str) -> Array:
        if name not in self._maps:
            entry, path = self.manifest.arrays[name], file_of(self.folder, name)
            try:
                with disk_errors(path, "read"):
                    found = np.load(path, mmap_mode="c" if entry["bytes"] else None, allow_pickle=False)
            except ValueError as error:  # a damaged head can say anything
                raise _damaged(self.folder, f"{path.name}: {error}") from None
            if found.dtype.str != entry["dtype"] or list(found.shape) != list(entry["shape"]):
                raise _damaged(self.folder, f"{path.name} is {found.dtype} {list(found.shape)}")
            self._maps[name] = found
        return self._maps[name]

    def get(self, name: str) -> Array | None:
        """An array, if there is one of that name."""
        return self[name] if name in self.manifest.arrays else None

    def verify(self, names: Iterable[str] | None = None) -> None:
        """Compare files with their checksums: all of them, or some."""
        for name in self.manifest.arrays if names is None else names:
            entry, path = self.manifest.arrays[name], file_of(self.folder, name)
            with disk_errors(path, "read"), path.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != entry["sha256"]:
                    raise _damaged(self.folder, f"{path.name} is not what its checksum says")

    def verify_changed(self) -> None:
        """Compare files that were written after the manifest, which is the last to be; the right ones only once."""
        manifest = self.folder / MANIFEST
        with disk_errors(self.folder, "read"):
            written = {name: file_of(self.folder, name).stat().st_mtime_ns for name in self.manifest.arrays}
            last = manifest.stat().st_mtime_ns
        changed = [name for name, when in written.items() if when > last]
        self.verify(changed)
        if changed:
            with contextlib.suppress(OSError):  # in a folder that is only read they are compared every time
                os.utime(manifest, ns=(max(written.values()),) * 2)

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry["bytes"] for entry in self.manifest.arrays.values())

    def release(self) -> None:
        """Give back the memory that pages of these arrays take; they are read again when they are needed."""
        for found in self._maps.values():
            release(found)


def release(array: Array) -> None:
    """Let the system drop the pages of a mapped array; an ordinary array is left alone."""
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def file_of(folder: Path, name: str) -> Path:
    """Where an array lies."""
    return folder / f"{name}.npy"


def create(folder: Path, name: str, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> Array:
    """A new array that is written through a memory map."""
    path = file_of(folder, name)
    with disk_errors(path, "write"):
        if 0 in shape:
            np.save(path, np.empty(shape, dtype))
            return np.empty(shape, dtype)
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)


def entry_of(folder: Path, name: str) -> dict[str, Any]:
    """What the manifest says of an array that is complete."""
    path = file_of(folder, name)
    with disk_errors(path, "read"):
        found = np.load(path, mmap_mode="r" if path.stat().st_size > _CHUNK else None, allow_pickle=False)
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        size = path.stat().st_size
    return {"dtype": found.dtype.str, "shape": list(found.shape), "bytes": size, "sha256": digest}


def is_prepared(path: Path) -> bool:
    """Whether a path names a prepared graph, whole or not."""
    named = path.name.lower().removesuffix(PARTIAL).endswith(SUFFIX)
    return named or (path.is_dir() and (path / MANIFEST).is_file())
