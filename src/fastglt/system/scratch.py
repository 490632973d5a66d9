"""Tables that are too large to be held in memory: rows in a file that nobody else sees, and that goes with them."""

import mmap
import os
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from fastglt.system.storage import disk_errors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

LARGE = 1 << 29  # bytes from which on a table is not held in memory
_open: "weakref.WeakSet[mmap.mmap]" = weakref.WeakSet()


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
    _open.add(mapped)
    return torch.frombuffer(mapped, dtype=dtype).view(shape)


def release_scratch() -> None:
    """Give back the memory of such tables' pages; they are in their files, and read again when they are needed."""
    for mapped in _open:
        mapped.madvise(mmap.MADV_DONTNEED)
