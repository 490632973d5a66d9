"""What a person sees while runs are under way."""

import time

import pytest

from fastglt.report.bars import TimeLeft


def test_time_left_is_that_of_all_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    left = TimeLeft(4)
    assert (left.text, left.count) == ("", "0/4")
    left.after_epoch(1, 10)
    assert (left.text, left.count) == ("", "1/4"), "nothing to go by"
    for epoch in range(2, 11):
        now += 2.0
        left.after_epoch(epoch, 10)
    assert (left.text, left.count) == ("about 60 s left", "1/4"), "thirty epochs of two seconds"
    now += 2.0
    left.after_epoch(1, 10)
    assert (left.text, left.count) == ("about 58 s left", "2/4")
    for epoch in (*range(2, 11), *range(1, 11), *range(1, 11)):
        left.after_epoch(epoch, 10)
    assert (left.text, left.count) == ("", "4/4")
