import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastglt import InputError
from fastglt.methods.parts.schedules import (
    CosineSwaps,
    RoundSchedule,
    Swap,
    SwapSchedule,
    check_sparsity,
    erdos_renyi_counts,
    intermediate_sparsity,
    kept_count,
)


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


class TestRoundSchedule:
    def test_each_round_takes_its_share_of_what_is_left(self) -> None:
        schedule = RoundSchedule(target=0.5, share=0.2)
        assert [schedule.sparsity(done) for done in range(6)] == pytest.approx([0, 0.2, 0.36, 0.488, 0.5, 0.5])
        assert schedule.rounds == 4

    @pytest.mark.parametrize(
        ("target", "share", "rounds"), [(0.0, 0.2, 0), (0.2, 0.2, 1), (0.36, 0.2, 2), (0.05, 0.2, 1)]
    )
    def test_as_many_rounds_as_it_takes(self, target: float, share: float, rounds: int) -> None:
        schedule = RoundSchedule(target=target, share=share)
        assert schedule.rounds == rounds
        assert schedule.sparsity(rounds) == target

    @pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
    def test_impossible_shares_are_refused(self, share: float) -> None:
        with pytest.raises(InputError, match=rf"share must lie in \(0, 1\) \(got {share}\)"):
            RoundSchedule(target=0.5, share=share)


class TestCosineSwaps:
    @pytest.mark.parametrize(
        ("epoch", "count"),
        [(0, 30), (6, 22), (9, 15), (12, 7), (18, 0), (24, 0)],  # of 100: 30, 22.5, 15, 7.5, 0 and nothing after
    )
    def test_by_hand(self, epoch: int, count: int) -> None:
        schedule = CosineSwaps(swap_fraction=0.3, end=18)
        assert schedule.swap(epoch=epoch, kept=100, total=1000) == Swap(drop=count, grow=count)

    def test_no_more_is_swapped_than_is_pruned(self) -> None:
        assert CosineSwaps(swap_fraction=1.0, end=18).swap(epoch=1, kept=90, total=95) == Swap(drop=5, grow=5)

    @pytest.mark.parametrize(
        ("setting", "value", "rule"),
        [
            ("swap_fraction", 1.1, r"swap_fraction must lie in \[0, 1\]"),
            ("swap_fraction", float("nan"), r"swap_fraction must lie in \[0, 1\]"),
            ("end", 0.0, "end must be positive"),
        ],
    )
    def test_impossible_settings_are_refused(self, setting: str, value: float, rule: str) -> None:
        with pytest.raises(InputError, match=rf"{rule} \(got {value}\)"):
            CosineSwaps(**{"swap_fraction": 0.3, "end": 10, setting: value})


class TestErdosRenyi:
    @pytest.mark.parametrize(
        ("kept", "counts"),
        [
            (31, [20, 11]),  # 12×8 and 8×3: as 20 to 11
            (12, [8, 4]),  # 7.74 and 4.26
            (60, [39, 21]),  # 38.7 and 21.3
            (68, [44, 24]),  # 43.9 and 24.1, one fewer than there are: full
            (100, [76, 24]),
            (120, [96, 24]),
            (1, [1, 0]),
            (0, [0, 0]),
        ],
    )
    def test_two_layers_by_hand(self, kept: int, counts: list[int]) -> None:
        assert erdos_renyi_counts([(12, 8), (8, 3)], kept) == counts

    def test_a_full_layer_can_fill_another(self) -> None:
        """22 as 11, 8 and 4: 10.5 of 10 are too many; of the 12 that are left 4 of 4 are all; 8 remain."""
        assert erdos_renyi_counts([(10, 1), (4, 4), (2, 2)], 22) == [10, 8, 4]

    def test_equal_remainders_go_to_the_first(self) -> None:
        assert erdos_renyi_counts([(3, 3), (3, 3), (3, 3)], 4) == [2, 1, 1]

    @given(
        shapes=st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=6),
        share=st.floats(0, 1),
    )
    def test_counts_are_possible_and_exact(self, shapes: list[tuple[int, int]], share: float) -> None:
        sizes = [one * other for one, other in shapes]
        kept = round(share * sum(sizes))
        counts = erdos_renyi_counts(shapes, kept)
        assert sum(counts) == kept
        assert all(0 <= count <= size for count, size in zip(counts, sizes, strict=True))
