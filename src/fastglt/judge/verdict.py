"""Dense against ticket, trained from the same start with the same budget, seed by seed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import torch
from torch import nn

from fastglt.errors import InputError
from fastglt.fitting import check_fits, restore_start
from fastglt.methods.base import Budget
from fastglt.phases import Progress, train_fixed
from fastglt.task import Task
from fastglt.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Test scores at the best validation epoch, paired by seed; fractions.

    >>> verdict = Verdict(seeds=(0, 1, 2), dense_scores=(0.80, 0.81, 0.82), ticket_scores=(0.81, 0.81, 0.82))
    >>> verdict.non_inferior, verdict.plain_winning
    (True, True)
    """

    seeds: tuple[int, ...]
    dense_scores: tuple[float, ...]
    ticket_scores: tuple[float, ...]
    margin: float = 0.01  # how much worse than dense still counts as equal

    def __post_init__(self) -> None:
        counts = (len(self.seeds), len(self.dense_scores), len(self.ticket_scores))
        if len(set(counts)) > 1 or not self.seeds:
            raise InputError(f"a verdict needs one dense and one ticket score per seed (got {counts})")
        if not 0 <= self.margin < 1:
            raise InputError(f"margin must be a fraction in [0, 1) (got {self.margin})")

    @property
    def differences(self) -> tuple[float, ...]:
        """Ticket score minus dense score, seed by seed."""
        return tuple(ticket - dense for ticket, dense in zip(self.ticket_scores, self.dense_scores, strict=True))

    @property
    def difference(self) -> float:
        """Mean ticket score minus mean dense score."""
        return fmean(self.ticket_scores) - fmean(self.dense_scores)

    @property
    def plain_winning(self) -> bool:
        """The papers' rule: the ticket's mean is at least the dense mean."""
        return self.difference >= 0

    @property
    def p_value(self) -> float:
        """One-sided paired t-test of "the ticket is worse by the margin or more"; NaN for one seed."""
        if len(self.seeds) < 2:
            return math.nan
        if len(set(self.differences)) == 1:  # no spread, no test
            return 0.0 if self.difference > -self.margin else 1.0
        from scipy.stats import ttest_rel

        helped = [score + self.margin for score in self.ticket_scores]
        return float(ttest_rel(helped, self.dense_scores, alternative="greater").pvalue)

    @property
    def non_inferior(self) -> bool:
        """The test rejects, at 5 %, that the ticket is worse by the margin or more."""
        return self.p_value < 0.05

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % confidence interval of the difference; NaN for one seed."""
        if len(self.seeds) < 2:
            return math.nan, math.nan
        if len(set(self.differences)) == 1:
            return self.difference, self.difference
        from scipy.stats import ttest_rel

        low, high = ttest_rel(self.ticket_scores, self.dense_scores).confidence_interval(0.9)
        return float(low), float(high)

    def __str__(self) -> str:
        dense, ticket = _mean_and_std(self.dense_scores), _mean_and_std(self.ticket_scores)
        plain = "winning" if self.plain_winning else "not winning"
        tested = "non-inferior" if self.non_inferior else "not shown to be non-inferior"
        if len(self.seeds) < 2:
            tested = "one seed proves nothing"
        return (
            f"{plain} by the plain rule; {tested} (margin {100 * self.margin:g} points, p = {self.p_value:.3g}): "
            f"ticket {ticket}, dense {dense}, difference {100 * self.difference:+.2f} points "
            f"(90 % interval {100 * self.interval[0]:+.2f} to {100 * self.interval[1]:+.2f}), "
            f"n = {len(self.seeds)} (test, alone from the same start)"
        )


def evaluate(
    ticket: Ticket,
    model: nn.Module | str | None,
    data: "Data",
    *,
    seeds: Iterable[int] = range(10),
    margin: float = 0.01,
    metric: str | None = None,
    other_graph: bool = False,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> Verdict:
    """Train dense and ticket in isolation from the ticket's Θ0, once per seed of training noise.

    `model` is the user's model the ticket was found with, or None for one of fastglt's backbones. The
    metric is the ticket's unless another is named.
    """
    seeds = tuple(seeds)
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds must name at least one seed, and none twice (got {seeds})")
    task = Task.from_data(data, metric=metric or ticket.config["metric"]).to(device)
    if not task.test.numel():
        raise InputError("data.test_mask must select at least one node to judge by (got none)")
    ticket.check(task, other_graph=other_graph)
    network, masks = restore_start(ticket, model)
    check_fits(network, task, soft_edges=False)
    budget = Budget(**ticket.config["budget"])
    scores: dict[str, list[float]] = {"dense": [], "ticket": []}
    for seed in seeds:
        for name, kept in (("dense", None), ("ticket", masks)):
            phase = f"{name}, seed {seed}"
            result = train_fixed(phase, network, task, budget, seed=seed, masks=kept, progress=progress)
            scores[name].append(result.best.scores.test)
    dense, alone = tuple(scores["dense"]), tuple(scores["ticket"])
    return Verdict(seeds=seeds, dense_scores=dense, ticket_scores=alone, margin=margin)


def _mean_and_std(scores: tuple[float, ...]) -> str:
    spread = f" ± {100 * stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{100 * fmean(scores):.2f}{spread} %"
