"""What a process says of its memory."""

import subprocess
import sys

import numpy as np
import pytest

from fastglt.system.process import is_out_of_memory, peak_memory, what_ran_out

MB = 2**20
ASK = "from fastglt.system.process import peak_memory; print(peak_memory())"
GIVE_BACK = "block = bytearray(b'x') * 200_000_000; del block; "


def answer(code: str) -> int:
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def test_the_peak_stays_when_memory_is_given_back() -> None:
    assert 300 * MB > answer(GIVE_BACK + ASK) > 190 * MB


def test_the_memory_of_the_parent_is_not_the_childs() -> None:
    block = np.ones(200 * MB, dtype=np.uint8)
    assert 1 * MB < answer(ASK) < 100 * MB
    assert block.all()


KEPT = """
import ctypes
from fastglt.system.process import current_memory, keep_large_memory, returning_large_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
def left(size=200_000_000):
    before, block = current_memory(), libc.malloc(size)
    libc.memset(block, 1, size)
    libc.free(block)
    return current_memory() - before
keep_large_memory()
print(returning_large_memory()(left)(), left())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="what is kept is glibc's affair")
def test_large_blocks_are_returned_meanwhile_and_kept_afterwards() -> None:
    command = [sys.executable, "-c", KEPT]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    returned, kept = (int(number) / MB for number in told)
    assert abs(returned) < 10
    assert kept > 180


def test_without_linux_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_there(*arguments: object) -> None:
        raise FileNotFoundError

    here = peak_memory()
    monkeypatch.setattr("fastglt.system.process.Path.open", not_there)
    assert peak_memory() >= here - 64 * MB


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_errors_that_say_memory_is_used_up(error: BaseException, answer: bool) -> None:
    assert is_out_of_memory(error) is answer


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "not enough memory; try less or a smaller graph"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "not enough memory"),
        (OSError(12, "Cannot allocate memory"), "not enough memory"),
        (RuntimeError("can't start new thread"), "the machine allows no more threads or processes (ulimit -u)"),
        (BlockingIOError(11, "Resource temporarily unavailable"), "the machine allows no more threads"),
        (ValueError("cannot allocate memory, says a damaged file"), None),
        (OSError(2, "No such file"), None),
    ],
)
def test_what_the_machine_has_no_more_of_is_told(error: BaseException, told: str | None) -> None:
    """Also where another error has come of it, as those of libraries do."""
    other = KeyError("later")
    other.__context__ = error
    for seen in (error, other):
        found = what_ran_out(seen)
        assert found is None if told is None else found is not None and found.format("less").startswith(told)


def test_a_circle_of_errors_has_an_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__cause__ = other, one
    assert what_ran_out(one) is None


def test_what_is_available_is_no_more_than_what_is_allowed() -> None:
    ask = "from fastglt.system.process import available_memory; print(available_memory())"
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({900 * MB}, {900 * MB})); "
    assert 10 * MB < answer(ask) < 2**48
    assert answer(limit + ask) <= 900 * MB
