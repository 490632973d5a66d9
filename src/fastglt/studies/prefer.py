"""`fastglt find --prefer`: the smallest, fastest or sparsest network that is no worse than dense.

Ways to find tickets (whole units or single weights, taught or not) walk along a ladder of sparsities, from mild to
extreme, on validation scores. Of what each of them reaches, that with the least of what is not wanted is chosen. No
test score is looked at: the proof is for fresh seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Unpack

from fastglt.errors import InputError, unknown_name
from fastglt.judge.verdict import Verdict
from fastglt.methods import Targets
from fastglt.methods.base import UNITS, WEIGHTS
from fastglt.studies.compare.results import Comparison
from fastglt.studies.extreme.hunt import Answer, Hunt, Question, Row, Rules, Trial
from fastglt.studies.extreme.walks import bisect
from fastglt.studies.lists import read_seeds
from fastglt.studies.shared import Place, Study, StudySettings


@dataclass(frozen=True, kw_only=True)
class Way:
    """How tickets are found."""

    structure: str
    taught: bool
    method: str = "forest"

    @property
    def label(self) -> str:
        """What people read."""
        return f"{self.structure}{', taught' * self.taught}"


@dataclass(frozen=True, kw_only=True)
class Preference:
    """What somebody wants: the ways that may lead there, the sparsities to try, and what is compared in the end."""

    about: str
    structures: tuple[str, ...]
    ladder: tuple[tuple[float, float], ...]  # shares of edges and of weights to remove, from mild to extreme
    least: str  # of what a ticket is to have little

    @property
    def ways(self) -> tuple[Way, ...]:
        """Those without a teacher first: of equals they are taken."""
        return tuple(Way(structure=one, taught=taught) for taught in (False, True) for one in self.structures)


PREFERENCES = {
    "small": Preference(
        about="the fewest bytes",
        structures=(UNITS,),
        ladder=((0.2, 0.8), (0.35, 0.9), (0.5, 0.95), (0.5, 0.97), (0.5, 0.98), (0.5, 0.985), (0.5, 0.99)),
        least="bytes",
    ),
    "fast": Preference(
        about="the fewest multiplications once it is compiled",
        structures=(UNITS,),
        ladder=((0.2, 0.8), (0.35, 0.9), (0.5, 0.95), (0.75, 0.96), (0.75, 0.97), (0.9, 0.98), (0.95, 0.99)),
        least="macs",
    ),
    "sparse": Preference(
        about="the fewest edges and weights",
        structures=(WEIGHTS, UNITS),
        ladder=((0.2, 0.8), (0.35, 0.9), (0.5, 0.95), (0.75, 0.97), (0.85, 0.98), (0.9, 0.98), (0.95, 0.99)),
        least="shares",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Preferred:
    """What was chosen on validation scores, if anything was, and all that was tried."""

    preference: str
    way: Way | None  # None: nothing is as good as dense
    targets: Targets | None
    chosen: Verdict | None  # of validation scores
    tried: Sequence[Mapping[str, Any]]  # every way at every pair of sparsities, with verdicts on validation scores
    refused: Mapping[str, str]  # ways that cannot be gone, and why
    failures: Sequence[Mapping[str, Any]] = ()

    def document(self) -> dict[str, Any]:
        """As plain values: fractions, not per cent."""
        way, targets = self.way, self.targets
        picked = None
        if way is not None and targets is not None and self.chosen is not None:
            shares = {"graph_sparsity": targets.graph_sparsity, "weight_sparsity": targets.weight_sparsity}
            how = {"method": way.method, "structure": way.structure, "taught": way.taught}
            picked = {**how, **shares, "validation": self.chosen.as_dict()}
        return {
            "preference": self.preference,
            "chosen": picked,
            "tried": list(self.tried),
            "refused": dict(self.refused),
            "failures": list(self.failures),
        }


def prefer(
    preference: str,
    dataset: Place = "digits",
    *,
    seeds: Iterable[int] | str = range(3),
    **settings: Unpack[StudySettings],
) -> Preferred:
    """Choose structure, teacher and sparsities on validation scores; the ticket itself is for `find_ticket`.

    >>> from fastglt.studies.prefer import prefer
    >>> found = prefer("small", "cora")  # doctest: +SKIP
    >>> found.way, found.targets  # doctest: +SKIP

    A ticket counts as no worse than dense if the mean of its validation scores, retrained from initial weights, is
    at least the dense network's. What is finished is not computed again, and an interrupted call goes on.

    Args:
        preference: small, fast or sparse.
        dataset: As of `fastglt.compare`.
        seeds: Those that choose; those that prove must be others.

    All other arguments are those of `fastglt.compare`, but for structure and distill, which are chosen here.
    """
    if preference not in PREFERENCES:
        raise unknown_name("preference", preference, PREFERENCES)
    for name in ("structure", "distill"):
        if name in settings:
            raise InputError(f"{name} must be left to the preference (got one); find_ticket takes it")
    wanted = PREFERENCES[preference]
    studies, refused = _studies(wanted.ways, dataset, settings)
    return _choose(preference, wanted, studies, refused, read_seeds(seeds))


def _studies(
    ways: Sequence[Way], dataset: Place, settings: StudySettings
) -> tuple[dict[Way, Study], dict[str, str]]:
    """A study for each way that can be gone; the forest rule is for tasks that know what it asks for."""
    found, refused = dict[Way, Study](), dict[str, str]()
    for way in ways:
        reason = None
        for method in ("forest", "fastglt"):
            gone = replace(way, method=method)
            given: dict[str, Any] = {**settings, "structure": way.structure, "distill": way.taught or None}
            study = Study(command="prefer", dataset=dataset, methods=method, shown="val", **given)
            try:
                study.experiment(study.variants[method], Targets(), 0, study.split_seed).prepare()
            except InputError as error:
                reason = reason or str(error)
                continue
            found[gone], reason = study, None
            break
        if reason is not None:
            refused[way.label] = reason
    if not found:
        raise InputError(next(iter(refused.values())))
    return found, refused


def _choose(
    preference: str, wanted: Preference, studies: Mapping[Way, Study], refused: dict[str, str], seeds: Sequence[int]
) -> Preferred:
    ways = {way.label: way for way in studies}
    rows: list[Row] = []
    failures: list[Mapping[str, Any]] = []

    def measure(trials: Iterable[Trial], asked: Sequence[int]) -> Iterable[Row]:
        trials, found = list(trials), list[Row]()
        for label, way in ways.items():
            if points := [(way.method, targets) for one, targets in trials if one == label]:
                done = Comparison(*studies[way].run(points, asked, plain_twins=True))
                failures.extend(done.failures)
                found += [{**row, "method": label} for row in done.rows]
        rows.extend(found)
        return found

    questions = [Question(method=label, rule="plain", score="isolated") for label in ways]
    line = [Targets(graph_sparsity=graph, weight_sparsity=weight) for graph, weight in wanted.ladder]
    hunt = Hunt(questions, Rules(seeds=tuple(seeds)), measure)
    answers = hunt.run(lambda: bisect(line, start=len(line) // 2))
    best = min(answers, key=lambda one: _cost(wanted.least, one, rows), default=None)
    return Preferred(
        preference=preference,
        way=None if best is None else ways[best.question.method],
        targets=None if best is None else best.targets,
        chosen=None if best is None else best.chosen,
        tried=hunt.curve(),
        refused=refused,
        failures=failures,
    )


def _cost(least: str, answer: Answer, rows: Sequence[Row]) -> float:
    """What a ticket is to have little of, as a mean over the seeds that chose."""
    targets = answer.targets
    own = [
        row
        for row in rows
        if row["method"] == answer.question.method
        and (row["graph_sparsity"], row["weight_sparsity"]) == (targets.graph_sparsity, targets.weight_sparsity)
    ]
    if least == "macs":
        return fmean(row["macs_ticket"] for row in own)
    if least == "bytes":  # four for a weight; edges are bits
        return fmean(4 * row["weights_kept"] + row["edges_total"] / 8 for row in own)
    return 2 - targets.graph_sparsity - targets.weight_sparsity
