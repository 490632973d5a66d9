"""Whether our scores agree with a published number, by the rules of a verdict: a margin, a level, an interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fastglt.judge.paired import PairedTest
from fastglt.judge.verdict import Verdict
from fastglt.report.wording import mean_and_deviation, points, signed
from fastglt.studies.compare.results import deviation, mean


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Our scores over seeds and a published one; fractions.

    They agree if the whole interval of the difference lies within the margin on either side, and differ if all of
    it lies outside. A single seed proves nothing.

    >>> Agreement(ours=(0.801, 0.803, 0.802), published=0.8033).outcome
    'agrees'
    """

    ours: Sequence[float]
    published: float
    margin: float = Verdict.margin
    level: float = Verdict.level

    @property
    def test(self) -> PairedTest:
        """Ours minus the published one, with an interval of 1 − 2·level."""
        return PairedTest(differences=np.subtract(self.ours, self.published), margin=self.margin, level=self.level)

    @property
    def outcome(self) -> str:
        """Agrees, higher, lower, or undecided."""
        low, high = map(float, self.test.interval)
        if -self.margin < low and high < self.margin:
            return "agrees"
        return "higher" if low > self.margin else "lower" if high < -self.margin else "undecided"

    @property
    def sentence(self) -> str:
        """In words, which claim no more than was shown."""
        ours = f"ours {mean_and_deviation(mean(self.ours), deviation(self.ours))} (n = {len(self.ours)})"
        told = f"{ours}, the paper's {100 * self.published:.2f}, difference {signed(float(self.test.mean))}"
        if len(self.ours) < 2:
            return f"{told}: undecided, one seed proves nothing."
        low, high = map(signed, map(float, self.test.interval))
        words = {
            "agrees": f"agrees within {points(self.margin)}",
            "higher": f"ours is more than {points(self.margin)} higher",
            "lower": f"ours is more than {points(self.margin)} lower",
            "undecided": "undecided",
        }
        return f"{told} ({100 * (1 - 2 * self.level):g} % interval {low} to {high}): {words[self.outcome]}."
