"""Dense against ticket over several seeds: who wins, by which rule, how surely, and in words."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from fastglt.errors import InputError, require, unknown_name
from fastglt.judge.paired import PairedTest, power, seeds_for_power
from fastglt.report.wording import OPPONENTS, OUTCOMES, mean_and_deviation, points, signed
from fastglt.system.container import nan_as_null
from fastglt.tickets.phases import DENSE

if TYPE_CHECKING:
    from fastglt.report.charts import Picture

ENOUGH_POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Test scores at the best validation epoch, paired by seed, and by split where there are several; fractions.

    >>> verdict = Verdict(seeds=(0, 1, 2), dense_scores=(0.80, 0.81, 0.82), ticket_scores=(0.81, 0.81, 0.82))
    >>> verdict.non_inferior, verdict.plain_winning, verdict.outcome
    (True, True, 'winning')
    """

    seeds: tuple[int, ...]
    dense_scores: tuple[float, ...]
    ticket_scores: tuple[float, ...]
    margin: float = 0.01  # how much worse than dense still counts as equal
    level: float = 0.05  # how often the test may pass a ticket that is worse by just the margin
    against: str = DENSE  # whose the dense scores are: the plain dense network's, or another opponent's
    distilled: "Verdict | None" = None  # of a distilled ticket, the verdict against the distilled dense network
    same_lr: "Verdict | None" = None  # likewise, against a plain dense network at the ticket's learning rate
    new: "Verdict | None" = None  # of nodes that were hidden from all trainings, with all their edges
    new_kept: "Verdict | None" = None  # likewise; the ticket with the edges that its rule keeps of theirs
    identical: bool = False  # the seeds change nothing, so that all trainings are one and the same
    split_seeds: tuple[int, ...] = ()  # where there are several splits: the one of each pair

    def __post_init__(self) -> None:
        counts = (len(self.seeds), len(self.dense_scores), len(self.ticket_scores))
        if len(set(counts)) > 1 or not self.seeds:
            raise InputError(f"a verdict needs one dense and one ticket score per seed (got {counts})")
        odd = [score for score in (*self.dense_scores, *self.ticket_scores) if not math.isfinite(score)]
        if odd:
            raise InputError(f"a verdict's scores must be finite (got {odd[0]})")
        if self.against not in OPPONENTS:
            raise unknown_name("opponent", self.against, OPPONENTS)
        check_rule(self.margin, self.level)

    @cached_property
    def test(self) -> PairedTest:
        """The paired test behind the verdict."""
        differences = np.subtract(self.ticket_scores, self.dense_scores)
        differences = differences[:1] if self.identical else differences
        return PairedTest(differences=differences, margin=self.margin, level=self.level)

    @property
    def n(self) -> int:
        """How many seeds there are."""
        return len(self.seeds)

    @property
    def differences(self) -> tuple[float, ...]:
        """Ticket score minus dense score, seed by seed."""
        return tuple(ticket - dense for ticket, dense in zip(self.ticket_scores, self.dense_scores, strict=True))

    @property
    def difference(self) -> float:
        """Mean ticket score minus mean dense score."""
        return float(self.test.mean)

    @property
    def plain_winning(self) -> bool:
        """The papers' rule: the ticket's mean is at least the dense mean."""
        return self.difference >= 0

    @property
    def p_value(self) -> float:
        """One-sided paired t-test of "the ticket is worse by the margin or more"; NaN for one seed."""
        return float(self.test.p_value)

    @property
    def non_inferior(self) -> bool:
        """The test rejects, at its level, that the ticket is worse by the margin or more."""
        return bool(self.test.non_inferior)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval of the difference, 90 % for a test at level 5 %; NaN for one seed."""
        low, high = self.test.interval
        return float(low), float(high)

    @property
    def outcome(self) -> str:
        """What is known: "winning" by both rules, "non-inferior" by the test alone, "inferior", or "undecided"."""
        if self.non_inferior:
            return "winning" if self.plain_winning else "non-inferior"
        return "inferior" if bool(self.test.inferior) else "undecided"

    @property
    def power(self) -> float:
        """How probable a pass would be, were the ticket truly as good as dense; NaN without a spread to go by."""
        spread = float(self.test.spread)
        return power(self.n, spread, margin=self.margin, level=self.level) if spread > 0 else math.nan

    @property
    def seeds_for_power(self) -> int | None:
        """About how many seeds such a ticket would need to pass with 80 %; None if there is no telling."""
        spread = float(self.test.spread)
        if not spread > 0:
            return None
        return seeds_for_power(ENOUGH_POWER, spread, margin=self.margin, level=self.level)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, which claims no more than was shown."""
        return f"{OUTCOMES[self.outcome if self._compared > 1 else 'undecided'].capitalize()}: {self._reason}."

    @property
    def power_note(self) -> str:
        """What so few seeds could have shown at all; empty where they are enough, or one alone."""
        if 1 < self._compared < 5 and not self._has_spread:
            return f"Power: unknown, for want of spread; {_EQUAL} may be chance where they are so few."
        if not self.power < ENOUGH_POWER:
            return ""
        needed = self.seeds_for_power
        more = "no number of seeds reaches 80 %" if needed is None else f"80 % would take about {needed:,} seeds"
        return (
            f"Power: a ticket truly as good as {self._dense} would pass this test with {self._pairs} and this "
            f"spread in about {100 * self.power:.0f} % of cases; {more}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values: fractions; what is not a number, for want of seeds, is null.

        Of a distilled ticket, `distilled` is the verdict against the distilled dense network, with the same keys;
        where it has a learning rate of its own, `same_lr` is that against a plain dense network at this rate. Where
        nodes were hidden, `new` and `new_kept` are the verdicts of their scores.
        """
        low, high = self.interval
        other = {name: verdict.as_dict() for name, verdict in self.others.items()}
        same = {"identical_trainings": True} if self.identical else {}
        return dict(
            nan_as_null(
                {
                    "n": self.n,
                    "seeds": list(self.seeds),
                    **({"split_seeds": list(self.split_seeds)} if self.split_seeds else {}),
                    "dense_scores": list(self.dense_scores),
                    "ticket_scores": list(self.ticket_scores),
                    "dense_mean": fmean(self.dense_scores),
                    "dense_std": _deviation(self.dense_scores),
                    "ticket_mean": fmean(self.ticket_scores),
                    "ticket_std": _deviation(self.ticket_scores),
                    "difference": self.difference,
                    "ci_low": low,
                    "ci_high": high,
                    "margin": self.margin,
                    "level": self.level,
                    "p_value": self.p_value,
                    "non_inferior": self.non_inferior,
                    "plain_winning": self.plain_winning,
                    "outcome": self.outcome,
                    "power": self.power,
                    "seeds_for_80_percent_power": self.seeds_for_power,
                    "sentence": self.sentence,
                    **same,
                    **other,
                }
            )
        )

    def plot(self) -> "Picture":
        """A picture of ticket minus dense, seed by seed, with the interval of the mean and the margin."""
        from fastglt.judge.showing import picture

        return picture(self)

    def _repr_html_(self) -> str:
        from fastglt.judge.showing import as_html

        return as_html(self)

    def __str__(self) -> str:
        scores = {self._dense: self.dense_scores, "ticket": self.ticket_scores}
        means = (f"{side} {mean_and_deviation(fmean(s), _deviation(s))} %" for side, s in scores.items())
        others = (f"{_ABOUT.get(name, '')}{verdict}" for name, verdict in self.others.items())
        lines = (f"{', '.join(means)} (test, n = {self.n})", self.sentence, self.power_note, *others)
        return "\n".join(line for line in lines if line)

    @property
    def others(self) -> "dict[str, Verdict]":
        """The verdicts against a taught ticket's other opponents, and of hidden nodes, by name."""
        found = {name: getattr(self, name) for name in ("distilled", "same_lr", "new", "new_kept")}
        return {name: verdict for name, verdict in found.items() if verdict is not None}

    @property
    def interval_in_words(self) -> str:
        """The difference in points, with its interval if there is one."""
        if self._compared < 2:
            return signed(self.difference)
        low, high = map(signed, self.interval)
        return f"{signed(self.difference)}, {100 * (1 - 2 * self.level):g} % interval {low} to {high}"

    @property
    def _compared(self) -> int:
        """How many trainings differ."""
        return 1 if self.identical else self.n

    @property
    def _pairs(self) -> str:
        return f"{self.n} pairs of split and seed" if self.split_seeds else f"{self.n} seeds"

    @property
    def _has_spread(self) -> bool:
        return float(self.test.spread) > 0

    @property
    def _dense(self) -> str:
        return OPPONENTS[self.against]

    @property
    def _reason(self) -> str:
        found = f"{'at least' if self.plain_winning else 'below'} the {self._dense} one"
        found = f"the ticket's mean is {found} ({self.interval_in_words} points)"
        tested = f"({self._p}, level {100 * self.level:g} %)"
        margin = (
            f"a loss of {points(self.margin)} or more" if self.margin else f"being no better than {self._dense}"
        )
        if self.identical and self.n > 1:
            return (
                f"{found}, and {self.n} seeds gave one and the same training, because the model draws no random "
                "numbers while it is trained; fresh initial weights for each seed (fresh_init) can tell"
            )
        if self.n < 2:
            return f"{found}, and one seed proves nothing"
        if self.outcome in ("winning", "non-inferior"):
            link = "and" if self.plain_winning else "but"
            return f"{found}, {link} {margin} is ruled out {tested}"
        if self.outcome == "inferior":
            lost = f"a loss of more than {points(self.margin)}" if self.margin else "a loss"
            by = f"at level {100 * self.level:g} %" if self._has_spread else f"by {_EQUAL}"
            return f"{found}, and {lost} is shown, {by}"
        if not self.margin and not any(self.differences):
            return (
                f"the ticket scores exactly as {self._dense} for every seed, which a margin of 0 does not let pass"
            )
        link = "but" if self.plain_winning else "and"
        return f"{found}, {link} {self._pairs} neither rule out {margin} nor show it {tested}"

    @property
    def _p(self) -> str:
        if not self._has_spread:
            return _EQUAL
        return f"p = {self.p_value:.2g}" if self.p_value >= 0.0001 else "p < 0.0001"


_ABOUT = {"new": "hidden nodes, all their edges: ", "new_kept": "hidden nodes, edges by the ticket's rule: "}
_EQUAL = "equal differences for all seeds"


def check_rule(margin: float, level: float) -> None:
    """Refuse a margin or a level that no test can have."""
    require("lie in [0, 1)", margin=margin)
    if not 0 < level < 0.5:
        raise InputError(f"level must lie in (0, 0.5) (got {level})")


def _deviation(scores: tuple[float, ...]) -> float | None:
    return stdev(scores) if len(scores) > 1 else None
