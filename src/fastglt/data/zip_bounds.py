"""How large the arrays of a numpy archive are, known before any of them is read.

A zip file's directory and the head of each array say so. An archive may be made to say little and hold much, or to
say much and hold little: what is read is what both say, and no more than fits.
"""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from fastglt.system.process import available_memory

ANYWAY = 1 << 28  # bytes that are never too many
MOST_TIMES = 400  # how often as large as its file an archive may be; zeros of bag-of-words features reach 300
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_SUFFIX = ".npy"
_END = 22  # bytes of the record at the end of a zip file's directory


@dataclass(frozen=True, kw_only=True)
class Member:
    """One array of an archive, as its head describes it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def count(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


def check_directory(archive: zipfile.ZipFile) -> None:
    """Refuse an archive that lists fewer arrays than it says: those after a damaged one are silently left out."""
    assert archive.fp is not None, "it is open"
    archive.fp.seek(-_END - len(archive.comment), io.SEEK_END)
    end = archive.fp.read(_END)
    announced, listed = int.from_bytes(end[10:12], "little"), len(archive.infolist())
    if announced != listed:
        raise ValueError(f"{listed} arrays where {announced} are announced")


def member(archive: zipfile.ZipFile, name: str) -> Member:
    """An array's size; ValueError for what is none, or is packed in a way that numpy does not use."""
    infos = [info for info in archive.infolist() if info.filename in (name, f"{name}{_SUFFIX}")]
    if len(infos) != 1:
        raise ValueError(f"{len(infos)} of that name")
    (info,) = infos
    if info.flag_bits & 0x1:
        raise ValueError("an encrypted one")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("one that is compressed in another way than numpy's")
    with archive.open(info) as file:
        found, start = _head(file)
    told, holds = found.count * found.dtype.itemsize, info.file_size - start
    if told != holds:
        raise ValueError(f"{holds:,} bytes where {told:,} are announced")
    return found


def _head(file: IO[bytes]) -> tuple[Member, int]:
    """What an array's head says, and where its numbers begin."""
    version = np.lib.format.read_magic(file)
    if version not in _READERS:
        raise ValueError(f"numpy's format {version}, which is for fields with names")
    shape, _, dtype = _READERS[version](file)
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded when allow_pickle=False")
    if any(size < 0 for size in shape):
        raise ValueError("a negative size")
    return Member(shape=shape, dtype=dtype), file.tell()


def check_size(arrays: dict[str, Member], file_bytes: int) -> None:
    """Refuse what would take more memory than there is, or than its file can mean; MemoryError and ValueError.

    Numbers are counted as they are stored and as they are used, by four or eight bytes.
    """
    stored = sum(member.count * member.dtype.itemsize for member in arrays.values())
    needed = stored + sum(member.count * (4 if name == "x" else 8) for name, member in arrays.items())
    if needed > ANYWAY and stored > MOST_TIMES * file_bytes:
        rule = f"its arrays may be {MOST_TIMES} times as large as the file"
        raise ValueError(f"{rule}, and are {stored // max(1, file_bytes):,} times as large")
    if needed > max(ANYWAY, available_memory()):
        raise MemoryError(f"it takes about {needed / 2**30:.1f} GiB, and {available_memory() / 2**30:.1f} are free")
