"""Several questions about one series of runs: each walks its own way, and all share what has been measured."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastglt.errors import InputError, unknown_name
from fastglt.judge.verdict import Verdict, check_rule
from fastglt.methods import Targets
from fastglt.studies.extreme.walks import Walk, most_left
from fastglt.tickets.phases import DENSE, DISTILLED, SAME_LR

RULES = ("plain", "non-inferior")
SCORES = ("search", "isolated")

Row = Mapping[str, Any]  # one ticket's scores and its twins', as a comparison has them
Trial = tuple[str, Targets]  # a method at a pair of sparsities
Measure = Callable[[Iterable[Trial], Sequence[int]], Iterable[Row]]  # trials, seeds → a row for each of both


@dataclass(frozen=True, kw_only=True)
class Question:
    """Up to which sparsity does a method win, by which rule, in which of its two scores?"""

    method: str
    rule: str  # plain: mean at least the dense mean; non-inferior: shown to be no worse than the margin
    score: str  # search: at its end; isolated: retrained from initial weights

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise unknown_name("rule", self.rule, RULES)
        if self.score not in SCORES:
            raise unknown_name("score", self.score, SCORES)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How a question is decided: the seeds that choose, fresh ones that confirm, and the test."""

    seeds: tuple[int, ...]
    fresh_seeds: tuple[int, ...] = ()  # none: nothing is confirmed
    margin: float = 0.01
    level: float = 0.05

    def __post_init__(self) -> None:
        check_rule(self.margin, self.level)
        if shared := sorted(set(self.seeds) & set(self.fresh_seeds)):
            raise InputError(f"the seeds that confirm must not be among those that chose (got {shared} in both)")

    def check(self, questions: Iterable[Question]) -> None:
        """Refuse a test that could never be passed."""
        few = min(len(seeds) for seeds in (self.seeds, self.fresh_seeds or self.seeds))
        if few < 2 and any(question.rule == "non-inferior" for question in questions):
            raise InputError(
                f"the non-inferior rule needs at least 2 seeds (got {few}); add seeds, or ask for plain"
            )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An extreme sparsity: chosen on validation scores, and the test scores of fresh seeds there."""

    question: Question
    targets: Targets
    chosen: Verdict  # of validation scores
    confirmation: Verdict | None  # of test scores
    is_last: bool  # nothing sparser was tried: the extreme may lie beyond
    against_distilled: Verdict | None = None  # of distilled tickets' test scores, against distilled dense networks
    against_same_lr: Verdict | None = None  # and against plain ones at their own learning rate, if they have one

    @property
    def confirmed(self) -> bool | None:
        """Whether fresh seeds win as well; None where none were asked for, or failed."""
        return self._confirmed(self.confirmation)

    @property
    def confirmed_distilled(self) -> bool | None:
        """Whether fresh seeds win against distilled dense networks; None also where tickets are not distilled."""
        return self._confirmed(self.against_distilled)

    @property
    def confirmed_same_lr(self) -> bool | None:
        """The same against plain dense networks at a distilled ticket's own learning rate."""
        return self._confirmed(self.against_same_lr)

    def _confirmed(self, verdict: Verdict | None) -> bool | None:
        return None if verdict is None else wins(verdict, self.question.rule)


def wins(verdict: Verdict, rule: str) -> bool:
    """What a rule makes of a verdict."""
    return verdict.plain_winning if rule == "plain" else verdict.non_inferior


class Hunt:
    """Asks all questions at once, so that each round's new points become one series of runs."""

    def __init__(self, questions: Sequence[Question], rules: Rules, measure: Measure) -> None:
        rules.check(questions)
        self.questions, self.rules, self._measure = questions, rules, measure
        self.open: set[Question] = set()  # those that a failed run left without an answer
        self._rows: dict[Trial, dict[int, Row]] = {}
        self._walkers: list[_Walker] = []

    @property
    def most_left(self) -> int | None:
        """How often sparsities may have to be measured still, at most, the present time included; None: unknown."""
        found = [walker.most_left for walker in self._walkers]
        return None if None in found else max((count for count in found if count is not None), default=0)

    @property
    def distilled(self) -> bool:
        """Whether tickets are distilled, and have a second opponent."""
        return self._has(DISTILLED)

    @property
    def same_lr(self) -> bool:
        """Whether distilled tickets have a learning rate of their own, and a third opponent."""
        return self._has(SAME_LR)

    def _has(self, twin: str) -> bool:
        return any(f"{twin}_test" in row for rows in self._rows.values() for row in rows.values())

    def run(self, start: Callable[[], Walk[Targets]]) -> list[Answer]:
        """Walk until every question is answered, then confirm; a question that nothing answers has no entry."""
        walkers = {question: _Walker(start) for question in self.questions}
        self._walkers = list(walkers.values())
        while asking := {
            question: walker.point for question, walker in walkers.items() if walker.point is not None
        }:
            self._see([(question.method, point) for question, point in asking.items()], self.rules.seeds)
            for question, point in asking.items():
                verdict = self._verdict(question, point, "val", self.rules.seeds)
                if verdict is None:
                    walkers[question].give_up()
                    self.open.add(question)
                else:
                    walkers[question].go_on(wins(verdict, question.rule))
        found = [(question, point) for question, walker in walkers.items() for point in walker.found]
        self._see([(question.method, point) for question, point in found], self.rules.fresh_seeds)
        return [self._answer(question, point) for question, point in found]

    def curve(self) -> list[dict[str, Any]]:
        """Every point that was tried, by method and rising sparsity, with the verdicts on validation scores.

        Test scores of these points and seeds would only tempt; they are in the runs themselves.
        """
        found = []
        trials = sorted(self._rows, key=lambda trial: (trial[0], trial[1].weight_sparsity, trial[1].graph_sparsity))
        for method, targets in trials:
            scores = {}
            for score in SCORES:
                question = Question(method=method, rule="plain", score=score)
                scores[f"{score}_val"] = self._verdict(question, targets, "val", self.rules.seeds)
            done = {name: verdict.as_dict() for name, verdict in scores.items() if verdict is not None}
            if len(done) == len(scores):
                found.append({"method": method, **targets.settings, **done})
        return found

    def _see(self, trials: Sequence[Trial], seeds: Sequence[int]) -> None:
        """Have measured what is not measured yet."""
        new = [trial for trial in dict.fromkeys(trials) if not self._rows.get(trial, {}).keys() >= set(seeds)]
        if new and seeds:
            for row in self._measure(new, seeds):
                if row["reason"] or row["dense_val"] is None:  # it, or its twin, failed
                    continue
                targets = Targets(graph_sparsity=row["graph_sparsity"], weight_sparsity=row["weight_sparsity"])
                self._rows.setdefault((row["method"], targets), {})[row["seed"]] = row

    def _answer(self, question: Question, targets: Targets) -> Answer:
        rules = self.rules
        chosen = self._verdict(question, targets, "val", rules.seeds)
        assert chosen is not None  # it won
        return Answer(
            question=question,
            targets=targets,
            chosen=chosen,
            confirmation=self._verdict(question, targets, "test", rules.fresh_seeds),
            against_distilled=self._verdict(question, targets, "test", rules.fresh_seeds, DISTILLED),
            against_same_lr=self._verdict(question, targets, "test", rules.fresh_seeds, SAME_LR),
            is_last=not any(
                _is_sparser(tried, targets) for method, tried in self._rows if method == question.method
            ),
        )

    def _verdict(
        self, question: Question, targets: Targets, part: str, seeds: Sequence[int], twin: str = DENSE
    ) -> Verdict | None:
        """The verdict of some seeds; None if there are none, or one failed."""
        rows = [self._rows.get((question.method, targets), {}).get(seed) for seed in seeds]
        done = [row for row in rows if row is not None and row.get(f"{twin}_{part}") is not None]
        if not done or len(done) < len(rows):
            return None
        return Verdict(
            seeds=tuple(seeds),
            dense_scores=tuple(row[f"{twin}_{part}"] for row in done),
            ticket_scores=tuple(row[f"{question.score}_{part}"] for row in done),
            margin=self.rules.margin,
            level=self.rules.level,
            against=twin,
        )


def _is_sparser(one: Targets, other: Targets) -> bool:
    as_sparse = one.graph_sparsity >= other.graph_sparsity and one.weight_sparsity >= other.weight_sparsity
    return one != other and as_sparse


class _Walker:
    """A walk that is under way: the point it asks about, or, when there is none, what it found."""

    def __init__(self, start: Callable[[], Walk[Targets]]) -> None:
        self._start, self._walk, self._answers = start, start(), list[bool]()
        self.found: list[Targets] = []
        self.point: Targets | None = next(self._walk)

    @property
    def most_left(self) -> int | None:
        return 0 if self.point is None else most_left(self._start, self._answers)

    def go_on(self, won: bool) -> None:
        self._answers.append(won)
        try:
            self.point = self._walk.send(won)
        except StopIteration as end:
            self.point, self.found = None, end.value

    def give_up(self) -> None:
        self.point = None
