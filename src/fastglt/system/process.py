"""What a fastglt process takes from its machine: memory, and how it runs out of it; modules, and from where."""

import contextlib
import ctypes
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from fastglt.errors import InputError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = 1 << 30
_NO_LIMIT = 1 << 62
_SAFE_PATH = "PYTHONSAFEPATH"
_NUMBA_SETTINGS = ".numba_config.yaml"


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


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Python processes that begin meanwhile do not look for modules in the current folder."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def refuse_numba_settings() -> None:
    """numba takes settings from a file in the current folder, and among them where it loads machine code from."""
    if os.path.lexists(_NUMBA_SETTINGS):
        rule = f"the current folder must not have numba's {_NUMBA_SETTINGS}, which can name code to run"
        raise InputError(f"{rule} (got '{os.path.abspath(_NUMBA_SETTINGS)}'); set NUMBA_… variables instead")
