"""The statistics of a verdict, against theory and against simulated score pairs."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import nct, t, ttest_rel

from fastglt.judge.paired import PairedTest, power, seeds_for_power

MARGIN, LEVEL, SPREAD, TRIALS = 0.01, 0.05, 0.012, 40_000


def simulate(n: int, true: float, *, seed: int = 0, level: float = LEVEL, trials: int = TRIALS) -> PairedTest:
    """Many experiments of n seeds each, whose scores are normal and correlated within a pair."""
    rng = np.random.default_rng(seed)
    dense = 0.8 + 0.02 * rng.standard_normal((trials, n))
    ticket = dense + true + SPREAD * rng.standard_normal((trials, n))
    return PairedTest(differences=ticket - dense, margin=MARGIN, level=level)


def assert_share(found: Any, expected: float) -> None:
    """A share of all trials, within four standard errors of what it should be."""
    error = max(np.sqrt(expected * (1 - expected) / TRIALS), 1e-4)
    assert float(np.mean(found)) == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("n", [2, 5, 10, 30])
def test_a_ticket_worse_by_the_margin_passes_as_often_as_the_level_says(n: int) -> None:
    shown = simulate(n, -MARGIN).non_inferior
    assert 0.04 <= shown.mean() <= 0.06
    assert_share(shown, LEVEL)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_so_it_does_at_other_levels(level: float) -> None:
    assert_share(simulate(5, -MARGIN, level=level).non_inferior, level)


def test_a_ticket_worse_by_more_passes_less_often() -> None:
    assert simulate(10, -1.5 * MARGIN).non_inferior.mean() < 0.01


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("true", [-0.005, 0.0, 0.004])
def test_power_is_that_of_theory(n: int, true: float) -> None:
    shown = simulate(n, true).non_inferior
    # by the definition of the noncentral t distribution
    theory = nct.sf(t.ppf(1 - LEVEL, n - 1), n - 1, (true + MARGIN) / (SPREAD / np.sqrt(n)))
    assert power(n, SPREAD, margin=MARGIN, level=LEVEL, true=true) == pytest.approx(theory, rel=1e-9)
    assert_share(shown, theory)


@pytest.mark.parametrize(("n", "level"), [(5, 0.05), (10, 0.05), (5, 0.005)])
@pytest.mark.parametrize("true", [-MARGIN, 0.003])
def test_the_interval_covers_as_often_as_it_says(n: int, level: float, true: float) -> None:
    low, high = simulate(n, true, level=level).interval
    assert_share((low <= true) & (true <= high), 1 - 2 * level)
    assert_share(true < low, level)


def test_the_interval_and_the_test_say_the_same() -> None:
    found = simulate(5, -0.004)
    low, high = found.interval
    np.testing.assert_array_equal(low > -MARGIN, found.non_inferior)
    np.testing.assert_array_equal(high < -MARGIN, found.inferior)
    assert found.inferior.any()
    assert not (found.inferior & found.non_inferior).any()


def test_worse_is_shown_falsely_no_oftener_than_the_level() -> None:
    assert_share(simulate(5, -MARGIN).inferior, LEVEL)


def test_p_values_and_intervals_are_scipys() -> None:
    rng = np.random.default_rng(3)
    dense, ticket = rng.normal(0.8, 0.02, (2, 6))
    found = PairedTest(differences=ticket - dense, margin=0.02, level=0.1)
    expected = ttest_rel(ticket + 0.02, dense, alternative="greater")
    assert float(found.p_value) == pytest.approx(expected.pvalue, rel=1e-9)
    assert tuple(map(float, found.interval)) == pytest.approx(
        tuple(ttest_rel(ticket, dense).confidence_interval(0.8)), rel=1e-9
    )


def test_seeds_needed_are_the_fewest() -> None:
    for spread in (0.003, 0.01, 0.05):
        needed = seeds_for_power(0.8, spread, margin=MARGIN, level=LEVEL)
        assert needed is not None
        assert power(needed, spread, margin=MARGIN, level=LEVEL) >= 0.8
        assert needed == 2 or power(needed - 1, spread, margin=MARGIN, level=LEVEL) < 0.8
    assert seeds_for_power(0.8, 1e-5, margin=MARGIN, level=LEVEL) == 2


def test_no_number_of_seeds_shows_what_a_margin_of_nothing_asks_for() -> None:
    assert power(10, 0.01, margin=0, level=LEVEL) == pytest.approx(LEVEL)
    assert seeds_for_power(0.8, 0.01, margin=0, level=LEVEL) is None


@pytest.mark.parametrize(
    ("differences", "p_value"),
    [
        ([0.81 - 0.80, 0.82 - 0.81, 0.83 - 0.82], 0.0),  # equal but for the last bits
        ([0.79 - 0.80, 0.80 - 0.81], 1.0),  # worse by just the margin
        ([0.7900001 - 0.80, 0.8000001 - 0.81], 0.0),
        ([0.75 - 0.80, 0.76 - 0.81], 1.0),
    ],
)
def test_rounding_is_no_spread(differences: list[float], p_value: float) -> None:
    found = PairedTest(differences=np.array(differences), margin=MARGIN, level=LEVEL)
    assert (float(found.spread), float(found.p_value)) == (0.0, p_value)
    assert found.interval[0] == found.interval[1] == found.mean
    assert bool(found.inferior) == (found.mean < -MARGIN)
