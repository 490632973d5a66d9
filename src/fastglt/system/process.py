"""How a fastglt process uses the machine's memory and threads, and what is left of these in a copy of it."""

import contextlib
import ctypes
import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from fastglt.errors import MachineError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE = 1 << 30
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


@dataclass
class _Pools:
    """Pools of threads do not survive a fork: a child that waits for one waits for ever, or is ended by numba."""

    used: bool = False  # by this process or, before the fork, by the one it is a copy of
    forked: bool = False  # and nobody has seen yet whether threads work

    def after_fork(self) -> None:
        self.forked = True


_pools = _Pools()
os.register_at_fork(after_in_child=_pools.after_fork)
_PATIENCE = 10.0  # seconds for what takes a thousandth


def check_threads_after_fork() -> None:
    """Refuse to compute in a copy of a process whose threads it would wait for; note that threads are in use."""
    if _pools.forked and (_pools.used or _waits_for_threads()):
        _pools.used = True  # and will be, the next time somebody asks
        raise MachineError(
            "a process that was forked from one that had computed already cannot use its threads; "
            'start processes anew: multiprocessing.get_context("spawn") or "forkserver"'
        )
    _pools.used, _pools.forked = True, False


def _waits_for_threads() -> bool:
    """Whether PyTorch waits for ever for threads that another process has; a copy of this one finds out."""
    import torch

    if torch.get_num_threads() == 1:
        return False
    copy = os.fork()
    if copy == 0:
        torch.ones(1 << 18).neg_()  # large enough for several threads
        os._exit(0)
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        ended, _ = os.waitpid(copy, os.WNOHANG)
        if ended:
            return False
        time.sleep(0.001)
    os.kill(copy, signal.SIGKILL)
    os.waitpid(copy, 0)
    return True
