"""Memory of large tensors is taken again once nobody knows them."""

import pytest
import torch

from fastglt.system import blocks
from fastglt.system.blocks import free_bytes, reused_empty
from fastglt.system.process import LARGE_BLOCK

LIKE = torch.zeros(1)
ROWS = LARGE_BLOCK // 4


def test_memory_is_free_when_no_tensor_has_it_and_taken_again() -> None:
    first = reused_empty(LIKE, ROWS, 1)
    where, part, before = first.data_ptr(), first[3:5], free_bytes()
    del first
    assert free_bytes() == before  # a view still has it
    del part
    assert free_bytes() == before + LARGE_BLOCK
    second = reused_empty(torch.zeros(1, dtype=torch.float64), ROWS // 2)
    assert second.data_ptr() == where
    assert second.dtype == torch.float64
    assert reused_empty(LIKE, ROWS).data_ptr() != where


def test_small_tensors_are_pytorchs_own() -> None:
    before = free_bytes()
    small = reused_empty(LIKE, 2, 3)
    assert small.shape == (2, 3)
    del small
    assert free_bytes() == before


def test_too_much_of_another_size_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_SPARE", 0)
    del_me = reused_empty(LIKE, ROWS + 2**20)
    del del_me
    assert free_bytes() > 0
    other = reused_empty(LIKE, 2 * ROWS)
    assert free_bytes() == 0
    del other
