"""Copies of a process: threads do not survive a fork."""

import os
import signal
import time
from dataclasses import dataclass

from fastglt.errors import MachineError


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
