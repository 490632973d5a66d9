"""What the search for an extreme sparsity found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fastglt.report.tables import as_plain_text
from fastglt.studies.extreme.hunt import Answer, Hunt
from fastglt.studies.extreme.report import document, print_document


@dataclass(frozen=True)
class ExtremeResult:
    """Answers, one for each question that has one, and how they were found; printed, it is the command's tables."""

    about: Mapping[str, Any]  # dataset, model and folder
    hunt: Hunt
    answers: Sequence[Answer]
    failures: Sequence[Mapping[str, Any]]  # runs that failed, and why
    warnings: Sequence[Mapping[str, Any]] = ()  # whatever runs have warned of

    @cached_property
    def _document(self) -> dict[str, Any]:
        return {**self.about, **document(self.hunt, self.answers)}

    def document(self) -> dict[str, Any]:
        """Everything as plain values: fractions, not per cent."""
        return dict(self._document)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each method, rule and score: its extreme sparsities, and whether fresh seeds confirm them."""
        return list(self._document["answers"])

    def __str__(self) -> str:
        return as_plain_text(lambda console: print_document(self._document, console))
