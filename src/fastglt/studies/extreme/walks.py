"""Ways to look for the last sparsity that wins, for answers that are noisy and cost minutes each.

A walk is a generator: it yields a point, is sent whether a ticket there wins, and returns the extreme points it
found: one, none, or a whole front. It trains nothing and remembers nothing: told the same, it walks the same way.

>>> def answer(walk, wins):
...     point = next(walk)
...     while True:
...         try:
...             point = walk.send(wins(point))
...         except StopIteration as end:
...             return end.value
>>> answer(bisect([10, 20, 30, 40], start=3), lambda point: point <= 30)
[30]
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

Point = TypeVar("Point")
Walk = Generator[Point, bool, list[Point]]
_MOST_WAYS = 2000  # that are gone to tell how long a walk may be


def bisect(levels: Sequence[Point], start: int) -> Walk[Point]:
    """Find a level that wins with a loss right above it: first roughly, over rungs, then by halving.

    From the rung next to place `start` it goes up while levels win or, if the first one loses, down until one wins.
    Little pruning can lose where more wins (it regularises), so what lies far below the first win is never asked.
    """
    rungs = _rungs(len(levels))
    rung = min(range(len(rungs)), key=lambda number: abs(rungs[number] - start))
    low, high = -1, len(levels)
    if (yield levels[rungs[rung]]):
        low = rungs[rung]
        for place in rungs[rung + 1 :]:
            if not (yield levels[place]):
                high = place
                break
            low = place
    else:
        high = rungs[rung]
        for place in reversed(rungs[:rung]):
            if (yield levels[place]):
                low = place
                break
            high = place
    while high - low > 1:
        middle = (low + high) // 2
        if (yield levels[middle]):
            low = middle
        else:
            high = middle
    return [levels[low]] if low >= 0 else []


def _rungs(count: int) -> list[int]:
    """Places that halve the way to either end, again and again.

    >>> _rungs(99)  # of 1 % to 99 %: 1, 3, 6, 12, 25, 50, 75, 87, 93, 96, 98 and 99 %
    [0, 2, 5, 11, 24, 49, 74, 86, 92, 95, 97, 98]
    """
    rungs = [(count - 1) // 2]
    while rungs[-1] < count - 1:
        rungs.append((rungs[-1] + count) // 2)
    while rungs[0] > 0:
        rungs.insert(0, (rungs[0] - 1) // 2)
    return rungs


def climb(levels: Sequence[Point]) -> Walk[Point]:
    """Try the rising levels one by one until the first that does not win: the papers' way."""
    found: list[Point] = []
    for level in levels:
        if not (yield level):
            break
        found = [level]
    return found


def descend_front(rows: Sequence[Sequence[Point]]) -> Walk[Point]:
    """The points of a grid that win while both their next ones, across and up, do not: a Pareto front.

    `rows[i][j]` rises in both directions. From the far end of the first row the walk goes along the border of
    what wins: up a row after a win, back along the row after a loss. Rows that lose from end to end are passed over
    until one wins; after that the first such row ends the walk.
    """
    front: list[Point] = []
    column, last = len(rows[0]) - 1, -1  # where the row below had its last win
    for row in rows:
        while column >= 0 and not (yield row[column]):
            column -= 1
        if column < 0 and not front:  # little pruning can lose where more wins
            column = len(row) - 1
            continue
        if column < 0:
            break
        if column == last:  # as far along as the row below, and higher: better than that one
            front.pop()
        front.append(row[column])
        last = column
    return front


def most_left(start: Callable[[], Walk[Point]], answers: Sequence[bool]) -> int | None:
    """How many points a walk may still ask about, at most, after some answers; None if that takes long to tell.

    >>> most_left(lambda: climb([1, 2, 3]), [True])
    2
    """
    most, ways, looked = 0, [tuple(answers)], 0
    while ways:
        way, looked = ways.pop(), looked + 1
        if looked > _MOST_WAYS:
            return None
        if _goes_on(start(), way):
            most = max(most, len(way) + 1 - len(answers))
            ways += [(*way, True), (*way, False)]
    return most


def _goes_on(walk: Walk[Point], answers: Sequence[bool]) -> bool:
    """Whether a walk that is told these answers asks about one more point."""
    try:
        next(walk)
        for answer in answers:
            walk.send(answer)
    except StopIteration:
        return False
    return True
