"""Loops are compiled by one process of the tests; others that want the same one wait, and read what was kept."""

import fcntl
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.processes import FOLDER


def compile_once() -> None:
    """From now on. numba itself looks into its cache and compiles without asking who else is doing so."""
    from numba.core.caching import NullCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    folder, compile_anyhow = Path(os.environ[FOLDER].rpartition(":")[0]), Dispatcher.compile
    held: set[Any] = set()  # by the one thread that compiles

    def compile_or_wait(self: Any, signature: Any) -> Any:
        with global_compiler_lock:
            if isinstance(self._cache, NullCache) or self in held:
                return compile_anyhow(self, signature)
            held.add(self)
            try:
                with (folder / f"{self.py_func.__module__}.{self.py_func.__qualname__}.lock").open("w") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    return compile_anyhow(self, signature)
            finally:
                held.remove(self)

    patch.object(Dispatcher, "compile", compile_or_wait).start()
