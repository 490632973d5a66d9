"""Walks find the border of what wins, in few steps."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastglt.studies.extreme import Walk, bisect, climb, descend_front
from fastglt.studies.extreme.walks import most_left

Point = TypeVar("Point")


def follow(walk: Walk[Point], wins: Callable[[Point], bool]) -> tuple[list[Point], list[Point]]:
    """What a walk found, and all it asked about."""
    asked = []
    try:
        point = next(walk)
        while True:
            asked.append(point)
            point = walk.send(wins(point))
    except StopIteration as end:
        return end.value, asked


@pytest.mark.parametrize("start", [0, 49, 98])
@pytest.mark.parametrize("last", range(101))
def test_bisection_finds_the_last_that_wins(last: int, start: int) -> None:
    found, asked = follow(bisect(range(1, 100), start), lambda level: level <= last)
    assert found == ([min(last, 99)] if last else [])
    assert len(asked) == len(set(asked)) <= 14


def test_bisection_asks_on_rungs_and_then_between_them() -> None:
    assert follow(bisect(range(1, 100), start=98), lambda level: level <= 94)[1] == [99, 98, 96, 93, 94, 95]
    assert follow(bisect(range(1, 100), start=49), lambda level: level <= 8)[1] == [50, 25, 12, 6, 9, 7, 8]
    assert follow(bisect(range(1, 100), start=49), lambda level: level <= 80)[1] == [50, 75, 87, 81, 78, 79, 80]


def test_bisection_finds_a_win_above_losses() -> None:
    found, asked = follow(bisect(range(1, 100), start=98), lambda level: 70 <= level <= 97)
    assert found == [97]
    assert asked == [99, 98, 96, 97]


@given(st.integers(1, 40), st.data())
def test_any_start_leads_to_the_same_place(count: int, data: st.DataObject) -> None:
    last = data.draw(st.integers(-1, count - 1))
    start = data.draw(st.integers(0, count - 1))
    found, asked = follow(bisect(range(count), start), lambda level: level <= last)
    assert found == ([last] if last >= 0 else [])
    assert len(asked) == len(set(asked))


def test_climbing_ends_at_the_first_loss_even_if_a_later_one_would_win() -> None:
    assert follow(climb([1, 2, 3, 4]), lambda level: level != 3) == ([2], [1, 2, 3])
    assert follow(climb([1, 2]), lambda level: True) == ([2], [1, 2])
    assert follow(climb([1, 2]), lambda level: False) == ([], [1])


def front(border: list[int], columns: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The front of a grid in whose row i the first border[i] columns win."""
    rows = [[(row, column) for column in range(columns)] for row in range(len(border))]
    return follow(descend_front(rows), lambda point: point[1] < border[point[0]])


def test_the_front_leaves_out_what_another_point_beats() -> None:
    found, asked = front([3, 3, 1, 0], columns=4)
    assert found == [(1, 2), (2, 0)]  # (0, 2) wins, but (1, 2) is sparser
    assert asked == [(0, 3), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (3, 0)]


def test_the_front_begins_where_the_first_row_wins() -> None:
    found, asked = front([0, 2, 1, 0, 0], columns=2)
    assert found == [(1, 1), (2, 0)]
    assert asked == [(0, 1), (0, 0), (1, 1), (2, 1), (2, 0), (3, 0)]
    assert front([0, 0], columns=2) == ([], [(0, 1), (0, 0), (1, 1), (1, 0)])


@given(st.integers(1, 6), st.lists(st.integers(1, 6), min_size=1, max_size=6))
def test_the_front_is_what_nothing_beats(columns: int, border: list[int]) -> None:
    border = sorted((min(width, columns) for width in border), reverse=True)
    winning = [(row, column) for row, width in enumerate(border) for column in range(width)]
    best = [
        point
        for point in winning
        if not any(other != point and other[0] >= point[0] and other[1] >= point[1] for other in winning)
    ]
    found, asked = front(border, columns)
    assert found == best
    assert len(asked) == len(set(asked)) <= columns + len(border)


@pytest.mark.parametrize("start", [0, 49, 98])
def test_most_left_bounds_every_walk(start: int) -> None:
    levels = list(range(99))
    most = most_left(lambda: bisect(levels, start), [])
    lengths = set()
    for last in range(-1, 99):
        walk, asked = bisect(levels, start), 1
        point = next(walk)
        try:
            while True:
                point = walk.send(point <= last)
                asked += 1
        except StopIteration:
            lengths.add(asked)
    assert most == max(lengths)


def test_most_left_of_a_large_front_is_not_told() -> None:
    assert most_left(lambda: descend_front([[1, 2], [3, 4]]), []) == 4
    assert most_left(lambda: descend_front([list(range(30))] * 30), []) is None
