"""What several processes choose together is what one chooses, bit for bit."""

import pytest
import torch

from fastglt.errors import InputError
from fastglt.methods.parts.schedules import Swap
from fastglt.methods.parts.selection import swapped_of_all
from fastglt.system.ranges import Ranges
from tests.methods.parts.selections import check_cuts, check_degrees, check_many, check_swaps
from tests.processes import run_ranks


def test_a_process_alone_chooses_by_digits_as_by_sorting() -> None:
    check_cuts()
    check_swaps()
    check_many()
    check_degrees()


@pytest.mark.parametrize("size", [2, 3])
def test_several_processes_choose_what_one_does(size: int) -> None:
    run_ranks(size, "-m", "tests.methods.parts.selections")


def test_what_is_no_number_is_neither_weak_nor_promising() -> None:
    kept, numbers = torch.tensor([True, True, False]), torch.tensor([float("nan"), 1.0, 2.0])
    given = {"strength": numbers, "potential": numbers, "seed": 0}
    assert swapped_of_all(Ranges(3), kept, Swap(drop=1, grow=1), **given).tolist() == [True, False, True]  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be numbers"):
        swapped_of_all(Ranges(3), kept, Swap(drop=2, grow=0), **given)  # type: ignore[arg-type]
