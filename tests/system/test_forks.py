"""What a copy of a process can still compute."""

import os
import signal
from collections.abc import Callable

import pytest
import torch

from fastglt import MachineError
from fastglt.system import forks
from tests.toy_data import USER_MODELS, quick_ticket, seeded


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
        forks._pools.used, forks._PATIENCE = False, 1.0  # as if fastglt had done nothing yet
        torch.set_num_threads(threads)
        forks.check_threads_after_fork()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.ones(1 << 20).neg_()
    try:
        assert "cannot use its threads" in in_a_copy(lambda: check(2))
        assert in_a_copy(lambda: check(1)) == "fine"  # no other thread is asked for anything
    finally:
        torch.set_num_threads(before)
