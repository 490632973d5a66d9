"""How a fastglt process uses the machine's memory, and how it runs out of it."""

import contextlib
import ctypes
import os
import resource
from functools import cache
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = 1 << 30
LARGE_BLOCK = 64 << 20
_NO_LIMIT = 1 << 62


def keep_freed_memory() -> None:
    """Let the C library reuse large blocks instead of returning them to the system.

    Every epoch allocates the same activations; fresh pages for each cost more than what is computed on
    them (a 44 MB product: 2.5 times slower). Without glibc nothing happens.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGE)
    mallopt(_M_TRIM_THRESHOLD, _LARGE)


@cache
def return_large_memory() -> None:
    """Have blocks of 64 MB and more returned to the system from now on.

    Where some live long and others do not, those that are reused lie scattered: a deep network on a large graph
    would need twice its memory.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BLOCK)


def peak_memory() -> int:
    """The most memory this process has had, in bytes.

    Linux's own mark where there is one: `getrusage` begins with the memory of the process that started it.
    """
    with contextlib.suppress(OSError, StopIteration):
        with Path("/proc/self/status").open() as status:
            mark = next(line for line in status if line.startswith("VmHWM:"))
        return int(mark.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def available_memory() -> int:
    """How many bytes this process can still have, as far as the system says so."""
    with contextlib.suppress(OSError, StopIteration):
        with Path("/proc/meminfo").open() as facts:
            line = next(line for line in facts if line.startswith("MemAvailable:"))
        return min(int(line.split()[1]) * 1024, *_limits())
    return min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), *_limits())


def _limits() -> list[int]:
    """What `ulimit` allows of addresses and of data."""
    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [_NO_LIMIT if limit == resource.RLIM_INFINITY else limit for limit in limits]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory is used up; torch has its own ways, on a CPU and on a GPU."""
    return (
        isinstance(error, MemoryError)
        or "DefaultCPUAllocator" in str(error)
        or type(error).__name__ == "OutOfMemoryError"
    )
