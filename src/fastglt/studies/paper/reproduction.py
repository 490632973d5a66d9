"""What came of a table or figure: rows with our numbers beside the paper's, sentences, and pictures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from fastglt.report.charts import Picture
from fastglt.report.latex import latex_table
from fastglt.report.tables import empty_table, print_text, print_wide
from fastglt.report.wording import counted, mean_and_deviation
from fastglt.studies.compare.results import NOT_RUN, deviation, mean
from fastglt.studies.paper.agreement import Agreement
from fastglt.studies.paper.scope import Answer

_HEADINGS = ("what", "ours", "n", "paper", "outcome")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One number of a table: ours over seeds, the paper's, and whether they agree.

    Scores are fractions. What is no score (a sparsity, a time) has no test, and stands beside the paper's.
    """

    what: str
    ours: Sequence[float] = ()  # scores of each seed
    value: str = ""  # what is no score, as people read it
    paper: str = "–"
    published: float | None = None  # the paper's score, a fraction; None where there is none to stand beside
    note: str = ""

    @property
    def agreement(self) -> Agreement | None:
        """The test of ours against the paper's, where both are there."""
        return (
            Agreement(ours=self.ours, published=self.published)
            if self.ours and self.published is not None
            else None
        )

    @property
    def cells(self) -> list[str]:
        """As a table shows it."""
        ours = mean_and_deviation(mean(self.ours), deviation(self.ours)) if self.ours else self.value or "–"
        paper = self.paper if self.published is None else f"{100 * self.published:.2f}"
        outcome = "–" if self.agreement is None else self.agreement.outcome
        return [self.what, ours, str(len(self.ours) or "–"), paper, self.note or outcome]

    def document(self) -> dict[str, Any]:
        """As plain values."""
        agreement = self.agreement
        return {
            "what": self.what,
            "ours": list(self.ours),
            "mean": mean(self.ours),
            "std": deviation(self.ours),
            "n": len(self.ours),
            "value": self.value or None,
            "published": self.published,
            "paper": None if self.paper == "–" else self.paper,
            "outcome": None if agreement is None else agreement.outcome,
            "sentence": None if agreement is None else agreement.sentence,
            "note": self.note or None,
        }


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """A table or figure of the paper, as it came out here."""

    name: str
    title: str
    lines: Sequence[Line]
    sentences: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    failures: Sequence[Mapping[str, Any]] = field(default=())

    @property
    def summary(self) -> str:
        """Whether it agrees with the paper, in one sentence."""
        outcomes = [line.agreement.outcome for line in self.lines if line.agreement is not None]
        if not outcomes and any(line.published is not None for line in self.lines):
            return "None of ours is there yet to stand beside the published scores."
        if not outcomes and any(line.paper != "–" for line in self.lines):
            return "What the paper has here are no scores: its numbers stand beside ours without a test."
        if not outcomes:
            return "Nothing here has a published score to stand beside."
        counts = {one: outcomes.count(one) for one in ("agrees", "higher", "lower", "undecided") if one in outcomes}
        told = ", ".join(
            f"{count} {'agree' if one == 'agrees' and count > 1 else one}" for one, count in counts.items()
        )
        return f"Of {len(outcomes)} scores beside published ones: {told} (margin 1 point, level 5 %)."

    def document(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "id": self.name,
            "title": self.title,
            "lines": [line.document() for line in self.lines],
            "summary": self.summary,
            "sentences": list(self.sentences),
            "failures": list(self.failures),
        }

    def markdown(self) -> str:
        """The table and what it says, for a page."""
        rows = [[cell.replace("|", "/") for cell in line.cells] for line in self.lines]
        lines = [" | ".join(row) for row in ([*_HEADINGS], ["---"] * len(_HEADINGS), *rows)]
        table = "\n".join(f"| {line} |" for line in lines)
        told = "\n\n".join((self.summary, *self.sentences))
        return f"**{self.name}.** {self.title}.\n\n{table}\n\n{told}\n"

    def latex(self) -> str:
        """The table for a paper."""
        return latex_table(f"{self.title}. {self.summary}", _HEADINGS, [line.cells for line in self.lines])

    def print(self, console: Console) -> None:
        """The table, and what it says."""
        table = empty_table(*_HEADINGS, left=("what", "outcome"))
        for line in self.lines:
            table.add_row(*line.cells)
        print_wide(f"{self.name}: {self.title}", table, console)
        for sentence in (self.summary, *self.sentences):
            print_text(sentence, console)


def made(
    name: str,
    about: object,
    lines: Sequence[Line],
    sentences: Sequence[str],
    pictures: Sequence[Picture],
    answers: Sequence[Answer],
) -> Reproduction:
    """What came of a table or figure; the function that makes it says what it is."""
    failures = [failure for answer in answers for failure in answer.result.failures]
    missing = sum(failure["reason"] == NOT_RUN for failure in failures)
    left_out = [f"Not recorded, and left out here: {counted(missing, 'run')}."] if missing else []
    return Reproduction(
        name=name,
        title=str(about.__doc__).strip().rstrip("."),
        lines=lines,
        sentences=[*sentences, *left_out],
        pictures=pictures,
        failures=[failure for failure in failures if failure["reason"] != NOT_RUN],
    )


def told(lines: Iterable[Line]) -> list[str]:
    """What each comparison with the paper says."""
    return [f"{line.what}: {line.agreement.sentence}" for line in lines if line.agreement is not None]
