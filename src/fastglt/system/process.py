"""What a fastglt process takes from its machine: memory, and how it runs out of it; modules, and from where."""

import contextlib
import ctypes
import errno
import mmap
import os
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fastglt.errors import InputError, MachineError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = 1 << 30
_LARGEST, _NEVER = (1 << 31) - 1, -1
LARGE_BLOCK = 64 << 20
_NO_LIMIT = 1 << 62
_SAFE_PATH = "PYTHONSAFEPATH"
_RESERVE = 32 << 20  # bytes
_LEAST = 1 << 30
_FROM_LIBRARIES = (RuntimeError, ImportError, OSError, SystemError)
_NO_MEMORY = ("defaultcpuallocator", "failed to map segment", "cannot allocate memory", "std::bad_alloc")
_NO_THREAD = "can't start new thread"
_DEEPEST = 20  # errors that led to one another
_NUMBA_SETTINGS = ".numba_config.yaml"
_thresholds: dict[int, int] = {}  # of the C library, as they were set last


def is_alive(process: int) -> bool:
    """Whether there is a process of that number, whoever's it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is somebody else's, or no number of a process
        return True
    return True


def keep_freed_memory() -> None:
    """Let the C library reuse large blocks instead of returning them to the system.

    Every epoch allocates the same activations; fresh pages for each cost more than what is computed on
    them (a 44 MB product: 2.5 times slower). Without glibc nothing happens.
    """
    _return_blocks_from(_LARGE, when_free=_LARGE)


@cache
def keep_large_memory() -> None:
    """Let the C library reuse blocks of any size from now on, and return none.

    On a large graph activations are so large that `keep_freed_memory` would return them: getting them again took as
    long as computing on them.
    """
    _return_blocks_from(_LARGEST, when_free=_NEVER)


@cache
def return_large_memory() -> None:
    """Have blocks of 64 MB and more returned to the system from now on.

    Where some live long and others do not, those that are reused lie scattered: a deep network on a large graph
    would need twice its memory.
    """
    _return_blocks_from(LARGE_BLOCK)


@contextlib.contextmanager
def returning_large_memory() -> Iterator[None]:
    """Have blocks of 64 MB and more returned meanwhile, as in a process that never asked for anything else."""
    before = dict(_thresholds)
    _return_blocks_from(LARGE_BLOCK)
    try:
        yield
    finally:
        _return_blocks_from(before.get(_M_MMAP_THRESHOLD, LARGE_BLOCK))


def _return_blocks_from(size: int, *, when_free: int | None = None) -> None:
    """Blocks of this size on are the system's again once they are free; smaller ones when so many bytes are."""
    wanted = {_M_MMAP_THRESHOLD: size} | ({} if when_free is None else {_M_TRIM_THRESHOLD: when_free})
    with contextlib.suppress(OSError, AttributeError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        for threshold, number in wanted.items():
            mallopt(threshold, number)
            _thresholds[threshold] = number


def peak_memory() -> int:
    """The most memory this process has had, in bytes.

    Linux's own mark where there is one: `getrusage` begins with the memory of the process that started it.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def current_memory() -> int:
    """The memory this process has now, in bytes; where the system does not tell, the most it has had."""
    return _status("VmRSS") or peak_memory()


def reset_peak() -> int:
    """Let the most memory be counted from now on, where the system can; returns the memory of now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return current_memory()


def _status(mark: str) -> int:
    """What Linux says about this process, in bytes; 0 elsewhere."""
    with contextlib.suppress(OSError, StopIteration):
        with Path("/proc/self/status").open() as status:
            line = next(line for line in status if line.startswith(f"{mark}:"))
        return int(line.split()[1]) * 1024
    return 0


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
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    return isinstance(error, _FROM_LIBRARIES) and any(text in str(error).lower() for text in _NO_MEMORY)


def what_ran_out(error: BaseException) -> str | None:
    """Which of the machine's means an error, or one that led to it, says are used up, and what to do; else None."""
    seen: BaseException | None = error
    for _ in range(_DEEPEST):
        if seen is None:
            break
        if is_out_of_memory(seen):
            return "not enough memory; try {} or a smaller graph"
        if isinstance(seen, BlockingIOError) or (isinstance(seen, RuntimeError) and _NO_THREAD in str(seen)):
            return "the machine allows no more threads or processes (ulimit -u); try fewer --threads, or {}"
        seen = seen.__cause__ or seen.__context__
    return None


class Reserve:
    """Addresses that are set aside, and cost no memory, so that there are some left to say that there are none."""

    def __init__(self) -> None:
        try:
            self._block: mmap.mmap | None = mmap.mmap(-1, _RESERVE)
        except OSError:
            self._block = None

    def release(self) -> None:
        """Let them be used."""
        if self._block is not None:
            self._block.close()


def require_room() -> None:
    """Refuse a limit under which PyTorch and numba cannot even be loaded: that ends in any way, or never."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _LEAST:
        rule = f"fastglt needs {_LEAST >> 20:,} MB of addresses at least, for PyTorch and numba alone"
        raise MachineError(f"{rule} (got a limit of {limit >> 20:,} MB); raise it (ulimit -v)")


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
