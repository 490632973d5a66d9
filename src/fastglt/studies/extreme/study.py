"""`fastglt.extreme`: how sparse a method's tickets can be and still win."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Unpack

from fastglt.errors import require
from fastglt.methods import Targets
from fastglt.report.wording import duration
from fastglt.runs.forecast import DryRun, Forecast
from fastglt.studies.compare.results import Comparison
from fastglt.studies.extreme.hunt import RULES, SCORES, Hunt, Question, Row, Rules, Trial
from fastglt.studies.extreme.levels import Levels, plan_walk
from fastglt.studies.extreme.result import ExtremeResult
from fastglt.studies.extreme.walks import Walk
from fastglt.studies.lists import Numbers, as_text, read_names, read_seeds
from fastglt.studies.shared import Place, Study, StudySettings


def extreme(
    dataset: Place = "digits",
    *,
    methods: str | Sequence[str] = ("fastglt",),
    graph_sparsity: Numbers | None = None,
    weight_sparsity: Numbers | None = None,
    rules: str | Sequence[str] = RULES,
    scores: str | Sequence[str] = SCORES,
    seeds: Iterable[int] | str = range(5),
    fresh_seeds: Iterable[int] | str | None = None,
    margin: float = 0.01,
    level: float = 0.05,
    **settings: Unpack[StudySettings],
) -> ExtremeResult:
    """Find the largest sparsity at which a method's tickets still win, as `fastglt extreme` does.

    >>> import fastglt
    >>> found = fastglt.extreme("cora", methods=["fastglt", "ugs"], graph_sparsity="bisect")  # doctest: +SKIP
    >>> print(found)  # the command's tables  # doctest: +SKIP
    >>> found.rows[0]["graph_sparsity"], found.rows[0]["confirmed"]  # doctest: +SKIP

    Sparsities are tried on validation scores; the last that wins is confirmed on test scores of fresh seeds. What
    is finished is not computed again, an interrupted call goes on, failed runs are in the result's `failures`.

    Args:
        graph_sparsity: The share of edges to remove. A number stays fixed (default 0; bisect if the weights' is a
            number); ``"bisect"`` looks for the extreme to a point (``"bisect:0.3"`` starts there; default 0.5);
            several, or ``"FIRST:LAST:STEP"``, are tried to the first loss.
        weight_sparsity: The share of weights, likewise (default: bisect from 0.99, or 0 while edges vary). Several
            of both give the front of both.
        rules: plain (mean at least dense) and non-inferior (shown to be no worse than the margin).
        scores: search (at its end) and isolated (retrained from initial weights).
        seeds: Those that choose; also as text, ``"0-4"``.
        fresh_seeds: Those that confirm (default: as many, after the last that chooses); ``()``: do not confirm.
        margin: How much worse than dense still counts as equal.
        level: How often a ticket worse by the margin may pass, in (0, 0.5).

    All other arguments are those of `fastglt.compare`.
    """
    study = Study(command="extreme", dataset=dataset, methods=methods, shown="val", **settings)
    start = walk_of(graph_sparsity, weight_sparsity)
    decided = _rules(read_seeds(seeds), fresh_seeds, margin, level)
    asked = product(study.variants, read_names("rules", rules), read_names("scores", scores))
    questions = [Question(method=label, rule=rule, score=score) for label, rule, score in asked]
    return _hunt(study, questions, decided, start)


def _hunt(
    study: Study, questions: Sequence[Question], rules: Rules, start: Callable[[], Walk[Targets]]
) -> ExtremeResult:
    failures: list[dict[str, Any]] = []
    warnings: list[dict[str, Any]] = []
    longest = 0.0  # seconds for the sparsities of one time

    def measure(trials: Iterable[Trial], seeds: Sequence[int]) -> Iterable[Row]:
        nonlocal longest
        choosing = tuple(seeds) != rules.fresh_seeds  # other opponents are for what was chosen
        left, began = hunt.most_left, time.monotonic()
        if longest and left and study.series.tell is not None:
            most = duration((left + bool(rules.fresh_seeds)) * longest)
            study.series.tell(f"at most {left} more sparsities for each question, at most about {most}")
        try:
            found = Comparison(*study.run(trials, seeds, plain_twins=choosing))
        except DryRun as planned:
            raise DryRun(_with_the_rest(planned.forecast, left, rules)) from None
        longest = max(longest, time.monotonic() - began)
        failures.extend(found.failures)
        warnings.extend(found.warnings)
        return found.rows

    hunt = Hunt(questions, rules, measure)
    about = {"dataset": str(study.dataset), "model": study.model_name, "out": str(study.series.out)}
    if rules.fresh_seeds:
        rule = "an extreme sparsity needs test nodes to be confirmed on"
        study.require_test_nodes(rule, "--fresh-seeds none leaves it unconfirmed")
    answers = hunt.run(start)
    return ExtremeResult(about=about, hunt=hunt, answers=answers, failures=failures, warnings=warnings)


def _with_the_rest(first: Forecast, most: int | None, rules: Rules) -> Forecast:
    """What the first sparsities would take, and at most all others with the seeds that confirm."""
    if most is None:
        return first
    more = {"at_most_more_sparsities": most - 1, "fresh_seeds": len(rules.fresh_seeds)}
    share = most + len(rules.fresh_seeds) / len(rules.seeds)
    return replace(first, more={**more, "at_most_seconds": first.seconds * share})


def walk_of(graph: Numbers | None, weight: Numbers | None) -> Callable[[], Walk[Targets]]:
    """What was said of the two sparsities; what was not said varies if the other does not."""
    edges = None if graph is None else Levels.read("graph_sparsity", as_text(graph), start=0.5)
    weights = None if weight is None else Levels.read("weight_sparsity", as_text(weight))
    if edges is None:
        free = weights is not None and weights.fixed
        edges = Levels.read("graph_sparsity", "bisect" if free else "0", start=0.5)
    if weights is None:
        weights = Levels.read("weight_sparsity", "bisect" if edges.fixed else "0")
    return plan_walk(edges, weights)


def _rules(seeds: list[int], fresh: Iterable[int] | str | None, margin: float, level: float) -> Rules:
    if fresh is None:
        confirming = list(range(max(seeds) + 1, max(seeds) + 1 + len(seeds)))
        require("lie below 2^63", fresh_seeds=confirming[-1])
    else:
        fresh = fresh if isinstance(fresh, str) else list(fresh)
        confirming = [] if fresh in ("none", []) else read_seeds(fresh)
    return Rules(seeds=tuple(seeds), fresh_seeds=tuple(confirming), margin=margin, level=level)
