"""Memory of large tensors that is taken again instead of being returned: no page is zeroed twice.

The C library can do that too, but where some tensors live long and others do not, what it keeps lies scattered:
a deep network on a large graph would need twice its memory. Here a block is taken whole, by a tensor of its size.
"""

import math
import mmap
import threading
import weakref
from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

from fastglt.system.process import LARGE_BLOCK

_PAGE = 2 << 20  # a large one; memory is taken in multiples of it
_SPARE = 1 << 30  # bytes that may be kept for tensors of other sizes

_free: dict[int, list[mmap.mmap]] = defaultdict(list)  # by their sizes
_lock = threading.Lock()


class _Lease(np.ndarray):
    """An array in a block; when nobody knows it any more, the block is free."""


def reused_empty(like: Tensor, *shape: int) -> Tensor:
    """``like.new_empty(shape)``; a large one, on a CPU, in memory of one that is gone.

    >>> reused_empty(torch.zeros(1), 2, 3).shape
    torch.Size([2, 3])
    """
    size = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or size < LARGE_BLOCK:
        return like.new_empty(shape)
    block = _take(-(-size // _PAGE) * _PAGE)
    array = np.frombuffer(block, np.uint8, size).view(_Lease)
    weakref.finalize(array, _give_back, block).atexit = False
    return torch.from_numpy(array).view(like.dtype).view(shape)


def free_bytes() -> int:
    """How much memory is kept at the moment that no tensor uses."""
    with _lock:
        return sum(size * len(blocks) for size, blocks in _free.items())


def _take(size: int) -> mmap.mmap:
    """A free block of this size, or a new one; too many of other sizes are returned to the system then."""
    with _lock:
        if _free[size]:
            return _free[size].pop()
        if sum(each * len(blocks) for each, blocks in _free.items()) > _SPARE:
            _free.clear()
    block = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _give_back(block: mmap.mmap) -> None:
    with _lock:
        _free[len(block)].append(block)
