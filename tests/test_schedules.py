import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastglt import InputError
from fastglt.schedules import Swap, SwapSchedule, check_sparsity, intermediate_sparsity, kept_count


@pytest.mark.parametrize(
    ("sparsity", "total", "kept"),
    [
        (0.0, 10, 10),
        (0.25, 10, 8),  # 2.5 go: half to even, 2
        (0.35, 10, 6),  # 3.5 go: half to even, 4
        (0.5, 5, 3),  # 2.5 go: 2
        (0.5, 7, 3),  # 3.5 go: 4
        (0.99, 100, 1),
        (0.2, 5278, 4222),  # 1055.6 go: 1056
    ],
)
def test_kept_count_rounds_what_goes_half_to_even(sparsity: float, total: int, kept: int) -> None:
    assert kept_count(sparsity, total) == kept


@pytest.mark.parametrize(("target", "cut"), [(0.99, 0.9801), (0.0, 0.0), (0.5, 0.4956), (0.2, 0.1986)])
def test_the_one_shot_cut_stops_short_of_the_target(target: float, cut: float) -> None:
    assert intermediate_sparsity(target) == pytest.approx(cut, abs=5e-5)


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, 1.5, float("nan")])
def test_a_sparsity_outside_zero_to_one_is_refused(sparsity: float) -> None:
    with pytest.raises(InputError, match=rf"graph_sparsity must lie in \[0, 1\) \(got {sparsity}\)"):
        check_sparsity("graph_sparsity", sparsity, 10)


def test_a_sparsity_that_leaves_nothing_is_refused() -> None:
    message = r"weight_sparsity must leave at least one of 10 elements \(got 0.96, which leaves none\)"
    with pytest.raises(InputError, match=message):
        check_sparsity("weight_sparsity", 0.96, 10)
    check_sparsity("weight_sparsity", 0.94, 10)
    check_sparsity("weight_sparsity", 0.0, 0)


def test_a_whole_trajectory_by_hand() -> None:
    """100 elements from 50 to 70 % in five intervals, ramp 0.8: 55, 60, 65, 70, 70 % gone.

    Offered for a swap: 0.3·(1 − μ/5) = 0.24, 0.18, 0.12, 0.06, 0 of the 50, 45, 40, 35, 30 kept,
    so 12, 8.1, 4.8, 2.1 and 0, rounded down.
    """
    schedule = SwapSchedule(start=0.5, target=0.7, intervals=5)
    expected = [Swap(drop=17, grow=12), Swap(13, 8), Swap(9, 4), Swap(7, 2), Swap(0, 0)]
    kept, swaps = 50, []
    for interval in range(1, 6):
        swaps.append(schedule.swap(interval=interval, kept=kept, total=100))
        kept += swaps[-1].grow - swaps[-1].drop
    assert swaps == expected
    assert kept == 30


def test_decay_bends_the_share() -> None:
    schedule = SwapSchedule(start=0.5, target=0.5, intervals=2, swap_fraction=0.8, decay=2)
    assert schedule.swap(interval=1, kept=50, total=100) == Swap(10, 10)  # 0.8 · (1/2)² = 0.2 of 50


def test_no_more_returns_than_is_pruned() -> None:
    schedule = SwapSchedule(start=0.1, target=0.1, intervals=10, swap_fraction=1.0)
    assert schedule.swap(interval=1, kept=90, total=100) == Swap(10, 10)


def test_no_more_returns_than_is_kept_next() -> None:
    schedule = SwapSchedule(start=0.5, target=0.98, intervals=10, swap_fraction=1.0, ramp=0.1)
    assert schedule.swap(interval=1, kept=50, total=100) == Swap(drop=50, grow=2)


@pytest.mark.parametrize(
    ("ramp", "intervals", "reached"), [(1.0, 40, 40), (0.8, 40, 32), (0.8, 5, 4), (0.8, 1, 1), (0.5, 10, 5)]
)
def test_ramp_is_the_share_of_intervals_before_the_target(ramp: float, intervals: int, reached: int) -> None:
    schedule = SwapSchedule(start=0.9, target=0.99, intervals=intervals, ramp=ramp)
    at_target = [schedule.sparsity(interval) == 0.99 for interval in range(1, intervals + 1)]
    assert at_target == [interval >= reached for interval in range(1, intervals + 1)]


@settings(deadline=None, max_examples=200)
@given(
    target=st.floats(0, 0.999),
    total=st.integers(0, 5000),
    intervals=st.integers(1, 60),
    swap_fraction=st.floats(0, 1),
    decay=st.floats(0.1, 4),
    ramp=st.floats(0.01, 1),
)
def test_every_trajectory_is_possible_and_ends_at_the_exact_count(
    target: float, total: int, intervals: int, swap_fraction: float, decay: float, ramp: float
) -> None:
    start = intermediate_sparsity(target)
    schedule = SwapSchedule(
        start=start, target=target, intervals=intervals, swap_fraction=swap_fraction, decay=decay, ramp=ramp
    )
    kept = total - round(start * total)
    swap = Swap(0, 0)
    for interval in range(1, intervals + 1):
        swap = schedule.swap(interval=interval, kept=kept, total=total)
        assert 0 <= swap.drop <= kept
        assert 0 <= swap.grow <= min(total - kept, swap_fraction * kept)
        assert swap.drop >= swap.grow
        kept += swap.grow - swap.drop
    assert kept == total - round(target * total)
    assert swap.grow == 0


@pytest.mark.parametrize(
    ("setting", "value", "rule"),
    [
        ("intervals", 0, "intervals must be at least 1"),
        ("swap_fraction", -0.1, r"swap_fraction must lie in \[0, 1\]"),
        ("swap_fraction", 1.1, r"swap_fraction must lie in \[0, 1\]"),
        ("swap_fraction", float("nan"), r"swap_fraction must lie in \[0, 1\]"),
        ("decay", 0.0, "decay must be positive"),
        ("decay", float("nan"), "decay must be positive"),
        ("ramp", 0.0, r"ramp must lie in \(0, 1\]"),
        ("ramp", 1.5, r"ramp must lie in \(0, 1\]"),
    ],
)
def test_impossible_settings_are_refused(setting: str, value: float, rule: str) -> None:
    settings: dict[str, float] = {"start": 0.1, "target": 0.2, "intervals": 5, setting: value}
    with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
        SwapSchedule(**settings)  # type: ignore[arg-type]
