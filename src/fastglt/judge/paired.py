"""The arithmetic of a paired comparison with a margin: test, interval, power. Numbers in, numbers out.

Everything works on rows of paired differences (ticket minus dense, one for each seed), so that one verdict and
ten thousand simulated ones go through the same lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_DIGITS = 12  # scores are shares of at most millions of nodes: what lies below is rounding, not a difference
_MOST_SEEDS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """A one-sided t-test of "worse by the margin or more", and the two-sided interval that belongs to it.

    The interval has confidence 1 − 2·level, so that its lower end lies above −margin exactly if the test rejects.
    Where all differences of a row are equal there is no spread to test by, and the difference is taken as it is.
    Needs two differences at least; with fewer, p-values and intervals are NaN.
    """

    differences: Floats  # […, seeds]
    margin: float
    level: float

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return int(self.differences.shape[-1])

    @cached_property
    def mean(self) -> Floats:
        """The mean difference."""
        return np.asarray(_rounded(_rounded(self.differences).mean(-1)))

    @cached_property
    def spread(self) -> Floats:
        """The standard deviation (n − 1) of the differences."""
        if self.n < 2:
            return np.full(self.mean.shape, np.nan)
        return np.asarray(_rounded(_rounded(self.differences).std(-1, ddof=1)))

    @property
    def p_value(self) -> Floats:
        """How probable so good a mean would be if the ticket were worse by just the margin."""
        from scipy.stats import t

        ahead = _rounded(self.mean + self.margin)
        with np.errstate(divide="ignore", invalid="ignore"):
            tested = t.sf(ahead / self._error, self.n - 1)
        return np.where(self.spread == 0, np.where(ahead > 0, 0.0, 1.0), tested)

    @property
    def interval(self) -> tuple[Floats, Floats]:
        """The lower and the upper end."""
        half = self._quantile * self._error
        return self.mean - half, self.mean + half

    @property
    def non_inferior(self) -> npt.NDArray[np.bool_]:
        """The test rejects: a loss of the margin or more is ruled out."""
        return np.asarray(self.p_value < self.level)

    @property
    def inferior(self) -> npt.NDArray[np.bool_]:
        """The opposite is shown: the whole interval lies below −margin."""
        return np.asarray(_rounded(self.interval[1] + self.margin) < 0)

    @property
    def _error(self) -> Floats:
        return np.asarray(self.spread / np.sqrt(self.n))

    @property
    def _quantile(self) -> float:
        from scipy.stats import t

        return float(t.isf(self.level, self.n - 1)) if self.n > 1 else np.nan


def two_sided(test: PairedTest) -> float:
    """How probable a mean so far from 0, on either side, would be if there were no difference; NaN below two pairs.

    >>> round(two_sided(PairedTest(differences=np.array([0.01, 0.02, 0.03]), margin=0.0, level=0.05)), 4)
    0.0742
    """
    signs = (test.differences, -test.differences)
    ways = [PairedTest(differences=signed, margin=0.0, level=test.level) for signed in signs]
    return min(1.0, 2 * min(float(way.p_value) for way in ways)) if test.n > 1 else np.nan


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number by Holm's procedure; one that is NaN stays so and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, so_far = list(map(float, p_values)), 0.0
    order = sorted((place for place, p in enumerate(p_values) if not np.isnan(p)), key=p_values.__getitem__)
    for rank, place in enumerate(order):
        so_far = max(so_far, min(1.0, (len(order) - rank) * p_values[place]))
        corrected[place] = so_far
    return corrected


def power(n: int, spread: float, *, margin: float, level: float, true: float = 0.0) -> float:
    """How probable it is that n pairs show non-inferiority, for normal differences of a true mean and spread.

    >>> round(power(10, 0.01, margin=0.01, level=0.05), 3)
    0.898
    """
    from scipy.stats import nct, t

    return float(nct.sf(t.isf(level, n - 1), n - 1, (true + margin) * np.sqrt(n) / spread))


def seeds_for_power(wanted: float, spread: float, *, margin: float, level: float) -> int | None:
    """The fewest pairs that show a ticket as good as dense with the wanted probability; None if a million do not.

    >>> seeds_for_power(0.8, 0.01, margin=0.01, level=0.05)
    8
    """
    high = 2
    while power(high, spread, margin=margin, level=level) < wanted:
        high *= 2
        if high > _MOST_SEEDS:
            return None
    low = high // 2  # too few, unless it is less than a test needs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle, spread, margin=margin, level=level) >= wanted else (middle, high)
    return high


def _rounded(values: Any) -> Any:
    return np.round(values, _DIGITS)
