"""What was found, in one sentence, and the ticket that a page looks at more closely."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastglt.pages.cells import Cell
from fastglt.report.wording import OUTCOMES
from fastglt.studies.compare.figures import SCORES, removed

_ORDER = tuple(OUTCOMES)  # the best first
_PREFERRED = ("isolated", "search")  # the definition's score before the papers'


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A sentence, and how it was chosen among others."""

    sentence: str
    note: str = ""
    cell: Cell | None = None


def headline(cells: Sequence[Cell]) -> Headline:
    """The sparsest tickets that pass, or else those nearest to dense, in the words of their verdict.

    A ticket that was retrained alone counts before one at the end of its search, several seeds before one.
    """
    if not cells:
        return Headline(sentence="No ticket has been found yet.")
    for score in _PREFERRED:
        judged = [cell for cell in cells if cell["verdicts"][score] is not None]
        if judged:
            chosen = min(judged, key=lambda cell: _rank(cell, score))
            return Headline(
                sentence=f"{_subject(chosen)}, {SCORES[score]}, is {_lower(chosen['verdicts'][score]['sentence'])}",
                note=_chosen_among(len(judged)),
                cell=chosen,
            )
    chosen = max(cells, key=lambda cell: cell["n"])
    return Headline(sentence=f"{_subject(chosen)}, not compared with a dense network yet.", cell=chosen)


def featured_run(cells: Sequence[Cell], first: Cell | None) -> dict[str, Any] | None:
    """A run whose ticket is still there: of the headline's cell, else of another; the lowest seed first."""
    for cell in (*([] if first is None else [first]), *cells):
        for run in sorted(cell["runs"], key=lambda run: (run["seed"] is None, run["seed"])):
            if run["ticket"] and _is_file(run["ticket"]):
                return dict(run)
    return None


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _rank(cell: Cell, score: str) -> tuple[Any, ...]:
    verdict = cell["verdicts"][score]
    sparsity = (cell["graph_sparsity"] or 0) + (cell["weight_sparsity"] or 0)
    merit = sparsity if verdict["non_inferior"] else verdict["difference"]
    return verdict["n"] < 2, _ORDER.index(verdict["outcome"]), -merit, -verdict["n"]


def _subject(cell: Cell) -> str:
    gone = removed(cell["graph_sparsity"], cell["weight_sparsity"])
    return f"On {cell['dataset'] or 'a graph'} with {cell['model']}, {gone}: a ticket of {cell['label']}"


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _chosen_among(count: int) -> str:
    if count == 1:
        return ""
    return (
        f"Chosen from {count} settings after all of them were seen: the sparsest that passes its test, or else the "
        "nearest to dense. The best of many is flattered by chance; all of them are below."
    )
