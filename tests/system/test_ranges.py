import torch

from fastglt.system.ranges import Ranges
from fastglt.system.ranks import World
from tests.processes import run_ranks


def test_three_processes_hand_over_what_they_own() -> None:
    run_ranks(3, "-m", "tests.system.range_checks")


def test_alone_everything_is_ones_own_and_nothing_is_copied() -> None:
    ranges, numbers, mask = Ranges(3), torch.ones(3), torch.ones(3, dtype=torch.bool)
    assert ranges.alone
    for found in (ranges.own(numbers), ranges.fill(numbers, "edges"), ranges.whole(numbers, "edges")):
        assert found is numbers
    assert ranges.to_first(numbers) is numbers
    assert ranges.whole_mask(mask, "masks") is mask
    assert ranges.world.traffic == {}


def test_ranges_are_consecutive_and_as_even_as_can_be() -> None:
    ranges = [Ranges(7, World(rank=rank, size=3)) for rank in range(3)]
    assert ranges[0].bounds == [(0, 3), (3, 5), (5, 7)]
    assert [each.own(torch.arange(7)).tolist() for each in ranges] == [[0, 1, 2], [3, 4], [5, 6]]
    assert ranges[1].own(torch.tensor([8, 9])).tolist() == [8, 9]
