"""Imported by a process of which others will be copies: all that compiled loops need, but for threads.

Threads do not survive a fork, and numba ends a process that was copied after they had started.
"""

from numba.core.registry import cpu_target

from fastglt.kernels import (  # noqa: F401
    _edge_loops,
    _element_loops,
    _frozen_loops,
    _genconv_loops,
    _loops,
    _pattern_loops,
    _softmax_loops,
)
from fastglt.kernels._ready import make_ready

make_ready()
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
