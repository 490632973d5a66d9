"""Tables that are too large to be held in memory: rows in a file that nobody else sees, and that goes with them."""

import mmap
import os
import tempfile
import weakref
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from fastglt.system.storage import disk_errors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

LARGE = 1 << 29  # bytes from which on a table is not held in memory
MAPPED = 1 << 28  # bytes of a file that are mapped at a time where rows are taken from all over it
_open: "weakref.WeakValueDictionary[int, mmap.mmap]" = weakref.WeakValueDictionary()  # by where they begin


def scratch_folder() -> Path:
    """Where such files are: `FASTGLT_SCRATCH`, or the system's folder for temporary ones."""
    return Path(os.environ.get("FASTGLT_SCRATCH") or tempfile.gettempdir()).expanduser()


def scratch_table(shape: tuple[int, ...], dtype: "torch.dtype", *, large: int | None = None) -> "Tensor":
    """A table to be written: in memory, or from so many bytes on in a file.

    >>> import torch
    >>> table = scratch_table((2, 3), torch.float32, large=1)
    >>> table.fill_(1).sum()
    tensor(6.)
    """
    import torch

    size = torch.Size(shape).numel() * dtype.itemsize
    if size < max(1, LARGE if large is None else large):
        return torch.empty(shape, dtype=dtype)
    folder = scratch_folder()
    with disk_errors(folder, "write a table of hidden rows into"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:  # the map keeps it until the table is gone
            os.posix_fallocate(file.fileno(), 0, size)
            mapped = mmap.mmap(file.fileno(), size)
    table = torch.frombuffer(mapped, dtype=dtype).view(shape)
    _open[table.data_ptr()] = mapped
    return table


def in_file(table: "Tensor") -> bool:
    """Whether a table is one in a file."""
    return table.data_ptr() in _open


def take_rows(table: "Tensor", rows: "Tensor") -> "Tensor":
    """Some rows of a table, given in ascending order; of one in a file few pages are mapped at a time.

    The system maps the pages around each one that is read: a few rows from everywhere are soon all of the file.
    """
    if not in_file(table):
        return table.index_select(0, rows)
    import torch

    found, some = table.new_empty((len(rows), *table.shape[1:])), max(1, MAPPED // max(1, table[0].nbytes))
    ends = torch.searchsorted(rows, torch.arange(some, len(table) + some, some, device=rows.device)).tolist()
    for start, stop in pairwise([0, *ends]):
        torch.index_select(table, 0, rows[start:stop], out=found[start:stop])
        release_scratch()
    return found


def release_scratch() -> None:
    """Give back the memory of such tables' pages; they are in their files, and read again when they are needed."""
    for mapped in _open.values():
        mapped.madvise(mmap.MADV_DONTNEED)
