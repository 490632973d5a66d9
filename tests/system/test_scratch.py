"""Rows in a file take no more memory than they may."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from fastglt.system import scratch
from fastglt.system.scratch import in_file, scratch_table, take_rows

ROWS, WIDTH = 1 << 13, 1 << 10  # 32 MB
MAPS = Path("/proc/self/smaps")


def resident(table: Tensor) -> int:
    """The bytes of a table's file that count as this process's memory."""
    lines = iter(MAPS.read_text().splitlines())
    next(line for line in lines if line.startswith(f"{table.data_ptr():x}-"))
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1]) * 1024


@pytest.mark.skipif(not MAPS.exists(), reason="needs Linux's /proc/self/smaps")
def test_rows_from_all_over_a_file_are_taken_without_mapping_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTGLT_SCRATCH", str(tmp_path))
    table = scratch_table((ROWS, WIDTH), torch.float32, large=1)
    table.copy_(torch.arange(ROWS).unsqueeze(1))
    assert resident(table) == table.nbytes
    release, held = scratch.release_scratch, list[int]()
    release()
    assert resident(table) == 0

    def counted() -> None:
        held.append(resident(table))
        release()

    monkeypatch.setattr(scratch, "MAPPED", table.nbytes // 8)
    monkeypatch.setattr(scratch, "release_scratch", counted)
    rows = torch.arange(3, ROWS, 5)
    assert torch.equal(take_rows(table, rows)[:, 7], rows.float())
    assert len(held) == 8
    assert 0 < max(held) <= table.nbytes // 4, "an eighth, and what the system maps around it"
    assert resident(table) == 0


def test_any_rows_of_any_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MAPPED", 1)
    numbers = torch.arange(14.0).view(7, 2)
    table = scratch_table((7, 2), torch.float32, large=1).copy_(numbers)
    assert in_file(table)
    assert not in_file(numbers)
    for rows in (torch.tensor([0, 2, 2, 6]), torch.tensor([], dtype=torch.int64), torch.arange(7)):
        assert torch.equal(take_rows(table, rows), numbers[rows])
        assert torch.equal(take_rows(numbers, rows), numbers[rows])
