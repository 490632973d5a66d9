"""What a hunt found, as plain values and for people: a table of answers, and the curve of every method."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from fastglt.judge.verdict import Verdict
from fastglt.report.tables import empty_table, print_text, print_wide
from fastglt.report.wording import mean_and_deviation, phase_title, points, signed
from fastglt.studies.extreme.hunt import SCORES, Answer, Hunt, Question

_WORDS = ("method", "rule", "score")
_OTHERS = {  # what distilled tickets have besides, and the columns for it
    "distilled": ("dense distilled", "difference to it", "confirmed too"),
    "same_lr": ("dense same lr", "difference", "confirmed too"),
}
_WIDTH = 40  # of a curve, in letters
_TWO = (
    "Distilled tickets: chosen against the plain dense network; the columns after “confirmed” are against a dense "
    "network that was taught in the same way{}. "
)
_THREE = ", and a plain one at the learning rate of the taught ticket"
_YES = {True: "yes", False: "no", None: "–"}
Values = Mapping[str, Any]


def document(hunt: Hunt, answers: Sequence[Answer]) -> dict[str, Any]:
    """Everything as plain values: fractions, not per cent; a question that nothing answers has empty sparsities."""
    found: list[dict[str, Any]] = []
    for question in hunt.questions:
        mine = [answer for answer in answers if answer.question == question]
        others = [name for name in _OTHERS if getattr(hunt, name)]
        nothing = [_nothing(question, failed=question in hunt.open, others=others)]
        fresh = bool(hunt.rules.fresh_seeds)
        found += [_answer(answer, asked=fresh, others=others) for answer in mine] or nothing
    return {**asdict(hunt.rules), "answers": found, "curve": hunt.curve()}


def _answer(answer: Answer, *, asked: bool, others: Sequence[str]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    for name in others:
        more[f"confirmed_{name}"] = getattr(answer, f"confirmed_{name}")
        more[f"confirmation_on_test_{name}"] = _values(getattr(answer, f"against_{name}"))
    return {
        **asdict(answer.question),
        **answer.targets.settings,
        "failed": asked and answer.confirmation is None,
        "nothing_sparser_tried": answer.is_last,
        "confirmed": answer.confirmed,
        "chosen_on_validation": answer.chosen.as_dict(),
        "confirmation_on_test": _values(answer.confirmation),
        **more,
    }


def _values(verdict: Verdict | None) -> dict[str, Any] | None:
    return None if verdict is None else verdict.as_dict()


def _nothing(question: Question, *, failed: bool, others: Sequence[str]) -> dict[str, Any]:
    more = [f"{part}_{name}" for name in others for part in ("confirmed", "confirmation_on_test")]
    verdicts = ("confirmed", "chosen_on_validation", "confirmation_on_test")
    absent = ("graph_sparsity", "weight_sparsity", "nothing_sparser_tried", *verdicts, *more)
    return {**asdict(question), "failed": failed, **dict.fromkeys(absent)}


def print_document(found: Values, console: Console | None = None) -> None:
    """The answers, then the curves they were read from."""
    console = console or Console()
    print_wide(f"{found['dataset']} · {found['model']} · extreme sparsity", _answers(found["answers"]), console)
    fresh = "not confirmed"
    if any(answer["confirmation_on_test"] for answer in found["answers"]):
        fresh = f"looked at again on test scores with seeds {_spelt(found['fresh_seeds'])}"
    others = _others(found["answers"])
    about = _TWO.format(_THREE * ("same_lr" in others)) if others else ""
    print_text(
        f"{about}Chosen on validation scores with seeds {_spelt(found['seeds'])}, {fresh}; test scores in %, mean "
        f"± standard deviation; margin {points(found['margin'])}, level {100 * found['level']:g} %.",
        console,
    )
    console.print()
    for method in dict.fromkeys(point["method"] for point in found["curve"]):
        tried = [point for point in found["curve"] if point["method"] == method]
        for score in SCORES:
            if any(answer["score"] == score for answer in found["answers"]):
                print_wide(
                    f"{method} · {phase_title(score)}, validation scores in %",
                    _curve(tried, f"{score}_val"),
                    console,
                )


def _answers(answers: Sequence[Values]) -> Table:
    headings = ("edges", "weights", "n", "ticket", "dense", "difference", "confirmed")
    others = _others(answers)
    table = empty_table(*_WORDS, *headings, *(part for name in others for part in _OTHERS[name]), left=_WORDS)
    for answer in answers:
        more = "≥ " if answer["nothing_sparser_tried"] else ""
        removed = [
            more * bool(answer[key]) + _removed(answer[key]) for key in ("graph_sparsity", "weight_sparsity")
        ]
        verdict = answer["confirmation_on_test"]
        fresh = (
            ["–"] * 4 if verdict is None else [str(verdict["n"]), *_scores(verdict), signed(verdict["difference"])]
        )
        more_cells = [cell for name in others for cell in _other(answer, name)]
        if answer["graph_sparsity"] is None:
            removed = ["failed" if answer["failed"] else "none wins", ""]
        table.add_row(
            answer["method"],
            answer["rule"],
            phase_title(answer["score"]),
            *removed,
            *fresh,
            "failed" if answer["failed"] and removed[1] else _YES[answer["confirmed"]],
            *more_cells,
        )
    return table


def _others(answers: Sequence[Values]) -> list[str]:
    """Which opponents there are beside the plain dense network."""
    return [name for name in _OTHERS if any(f"confirmed_{name}" in answer for answer in answers)]


def _other(answer: Values, name: str) -> list[str]:
    """How a distilled ticket does against another opponent."""
    verdict = answer[f"confirmation_on_test_{name}"]
    if verdict is None:
        return ["–"] * 3
    scores = mean_and_deviation(verdict["dense_mean"], verdict["dense_std"])
    return [scores, signed(verdict["difference"]), _YES[answer[f"confirmed_{name}"]]]


def _curve(points: Sequence[Values], key: str) -> Table:
    """A row for each sparsity; across it, a line for dense and a dot for the ticket."""
    means: list[float] = [point[key][f"{side}_mean"] for point in points for side in ("ticket", "dense")]
    low, high = min(means), max(means)

    def place(value: float) -> int:
        return round((value - low) / (high - low or 1) * (_WIDTH - 1))

    span = f"{100 * low:.1f} │ dense  ● ticket"
    scale = f"{span:<{_WIDTH - 4}}{100 * high:.1f}"
    table = empty_table("edges", "weights", "n", "ticket", "dense", scale, left=[scale])
    for point in points:
        line = [" "] * _WIDTH
        line[place(point[key]["dense_mean"])] = "│"
        line[place(point[key]["ticket_mean"])] = "●"
        removed = (_removed(point[name]) for name in ("graph_sparsity", "weight_sparsity"))
        table.add_row(*removed, str(point[key]["n"]), *_scores(point[key]), "".join(line))
    return table


def _scores(verdict: Values) -> list[str]:
    return [mean_and_deviation(verdict[f"{side}_mean"], verdict[f"{side}_std"]) for side in ("ticket", "dense")]


def _removed(share: float | None) -> str:
    return "–" if share is None else f"−{100 * share:g} %"


def _spelt(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
