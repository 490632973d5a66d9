"""What a process says of its memory, and what a copy of it can still compute."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from fastglt import MachineError
from fastglt.system import process
from fastglt.system.process import is_out_of_memory, peak_memory
from tests.toy_data import USER_MODELS, quick_ticket, seeded

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


def test_what_is_available_is_no_more_than_what_is_allowed() -> None:
    ask = "from fastglt.system.process import available_memory; print(available_memory())"
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({900 * MB}, {900 * MB})); "
    assert 10 * MB < answer(ask) < 2**48
    assert answer(limit + ask) <= 900 * MB


def in_a_copy(work: Callable[[], object]) -> str:
    """What a forked process says: "fine", or the error that we raise. One that waits for ever is ended."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            work()
            os.write(theirs, b"fine")
        except MachineError as error:
            os.write(theirs, str(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as said:
        answer = said.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_copy_of_a_process_that_has_searched_says_so() -> None:
    quick_ticket(isolated=False)
    for work in (quick_ticket, lambda: quick_ticket(seeded(USER_MODELS["GraphSAGE"]))):
        said = in_a_copy(work)
        assert said.startswith(
            "a process that was forked from one that had computed already cannot use its threads"
        )
        assert 'multiprocessing.get_context("spawn")' in said
    assert quick_ticket(isolated=False).masks.edges.count == 42  # nothing has changed for this one


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_copy_finds_out_whether_pytorchs_threads_are_left() -> None:
    def check(threads: int) -> None:
        process._pools.used, process._PATIENCE = False, 1.0  # as if fastglt had done nothing yet
        torch.set_num_threads(threads)
        process.check_threads_after_fork()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.ones(1 << 20).neg_()
    try:
        assert "cannot use its threads" in in_a_copy(lambda: check(2))
        assert in_a_copy(lambda: check(1)) == "fine"  # no other thread is asked for anything
    finally:
        torch.set_num_threads(before)
