import json
from typing import Any

import pytest

from fastglt.bench import scale
from fastglt.bench.scale import Size, read_sizes, run
from fastglt.errors import InputError


def test_a_size_is_measured() -> None:
    size = Size(edges=1200, repeats=1, features=8, hidden=4)
    row = run(size)
    assert (row["edges"], row["nodes"]) == (1200, 200)
    seconds = [value for name, value in row.items() if "seconds" in name]
    assert len(seconds) == 12
    assert all(value >= 0 for value in seconds)
    assert row["prepare_seconds"] >= row["generate_seconds"] > 0
    assert row["seconds_per_epoch"] == pytest.approx((row["soft_seconds"] + row["hard_seconds"]) / 2)
    assert row["peak_mb"] > 50


def test_the_first_epoch_after_a_change_counts_as_preparing_or_swapping() -> None:
    clock = scale._Clock()
    clock.spent = {
        "generate": [(1.0, 0.5)],
        "task": [(2.0, 1.0)],
        "begin": [(0.5, 0.25)],
        "swap": [(3.0, 2.0)],
        "first soft": [(7.0, 4.0)],
        "soft": [(1.0, 1.0), (4.0, 2.0), (2.0, 9.0)],
        "first hard": [(50.0, 50.0), (5.0, 3.0)],
        "hard": [(4.0, 1.0)],
    }
    by_clock, by_processor = clock.row(0), clock.row(1)
    assert by_clock == {
        "soft_seconds": 2.0,
        "hard_seconds": 4.0,
        "seconds_per_epoch": 3.0,
        "generate_seconds": 1.0,
        "prepare_seconds": 8.5,
        "swap_seconds": 4.0,
    }
    assert (by_processor["prepare_seconds"], by_processor["swap_seconds"]) == (3.75, 4.0)


def test_sizes_are_whole_numbers() -> None:
    assert [size.edges for size in read_sizes("2e3,5000", hidden=4)] == [2000, 5000]
    for text in ("", "many", "1e3,", "1000.5", "inf"):
        with pytest.raises(InputError, match="edges must be whole numbers"):
            read_sizes(text)
    with pytest.raises(InputError, match=r"1,000 edges or more \(got 999\)"):
        read_sizes("999")


def test_a_process_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Done:
        returncode, stdout, stderr = 1, "", "Traceback …\nMemoryError: it takes about 99 GiB\n"

    monkeypatch.setattr(scale.subprocess, "run", lambda *_arguments, **_options: Done)
    with pytest.raises(
        scale.MachineError, match=r"2,000 edges could not .* \(MemoryError: it takes about 99 GiB\)"
    ):
        scale.measure(Size(edges=2000))


def test_the_process_is_told_the_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Size] = []

    def note(size: Size) -> dict[str, Any]:
        asked.append(size)
        return {"edges": size.edges}

    monkeypatch.setattr(scale, "run", note)
    scale._main({"edges": 3000, "degree": 6})
    assert asked == [Size(edges=3000, degree=6)]
    assert json.loads(capsys.readouterr().out) == {"edges": 3000}
