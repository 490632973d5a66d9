"""The trainings of one seed behind a verdict, and where an evaluation looks them up and writes them down."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fastglt.masks import Masks
from fastglt.methods.base import Budget
from fastglt.models.base import Network
from fastglt.tickets.new_nodes import NEW, NEW_KEPT, NewNodes
from fastglt.tickets.phases import DENSE, SAME_LR, PhaseResult, Progress, teacher_of, train_fixed
from fastglt.training.distillation import Teacher

if TYPE_CHECKING:
    from fastglt.judge.evaluate import Contest

TICKET = "ticket"  # the side that is judged; its opponents are those of `fastglt.tickets.phases`
TEST = "test"


class Ledger:
    """Forgets everything: the ledger of an evaluation that is not written down."""

    def recall(self, settings: dict[str, Any]) -> float | None:
        """The test score of a training that was finished before."""
        return None

    def knows(self, settings: dict[str, Any]) -> bool:
        """Whether a training was finished before."""
        return False

    def recall_new(self, settings: dict[str, Any], names: Sequence[str]) -> dict[str, float] | None:
        """The scores on hidden nodes of a training that was finished before."""
        return None

    def keep(self, settings: dict[str, Any], result: PhaseResult) -> None:
        """Called at the end of each training."""

    def keep_new(self, settings: dict[str, Any], result: PhaseResult, new: Mapping[str, float]) -> None:
        """Called instead where nodes were hidden, with the scores on these."""


class Round:
    """The trainings of one seed, from one start."""

    def __init__(
        self, contest: "Contest", start: Network, seed: int, ledger: Ledger, progress: Progress | None
    ) -> None:
        self._contest, self._start, self._seed = contest, start, seed
        self._ledger, self._progress = ledger, progress
        self._dense: PhaseResult | None = None  # once it is trained

    def scores(self, side: str) -> dict[str, float]:
        """The test score of one side and, where nodes were hidden, those on them; remembered or trained."""
        contest, names = self._contest, (NEW, NEW_KEPT) if side == TICKET else (NEW,)
        settings = contest.settings(side, self._start, self._seed)
        known = self._ledger.recall(settings)
        new = None if contest.inductive is None else self._ledger.recall_new(settings, names)
        if known is not None and (contest.inductive is None or new is not None):
            return {TEST: known, **(new or {})}
        teacher = self._teacher if contest.is_taught(side) else None
        at = replace(contest.budget, lr=contest.budget.distill_lr) if side == SAME_LR else contest.budget
        result = self._train(side.replace("_", " "), contest.masks_of(side), teacher, at)
        if side == DENSE:
            self._dense = result
        test = {TEST: result.best.scores.test}
        if contest.inductive is None:
            self._ledger.keep(settings, result)
            return test
        given: dict[str, Any] = {"network": self._start, "method": contest.method, "seed": self._seed}
        judge = NewNodes(inductive=contest.inductive, **given)
        found = judge.scores(result.best.state, contest.masks_of(side))
        self._ledger.keep_new(settings, result, found)
        return {**test, **found}

    @cached_property
    def _teacher(self) -> Teacher:
        """The plain dense network; trained once more where its score alone is remembered."""
        contest = self._contest
        dense = self._dense or self._train("teacher", None, None, contest.budget)
        return teacher_of(dense.best, self._start, contest.task, contest.budget, seed=self._seed)

    def _train(self, what: str, masks: Masks | None, teacher: Teacher | None, budget: Budget) -> PhaseResult:
        return train_fixed(
            f"{what}, seed {self._seed}",
            self._start,
            self._contest.task,
            budget,
            seed=self._seed,
            masks=masks,
            teacher=teacher,
            progress=self._progress,
        )
