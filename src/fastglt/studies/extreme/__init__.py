"""How sparse a method can go and still win: sparsities tried on validation scores, confirmed on fresh seeds."""

from fastglt.studies.extreme.hunt import Answer, Hunt, Question, Rules
from fastglt.studies.extreme.result import ExtremeResult
from fastglt.studies.extreme.study import extreme
from fastglt.studies.extreme.walks import Walk, bisect, climb, descend_front

__all__ = [
    "Answer",
    "ExtremeResult",
    "Hunt",
    "Question",
    "Rules",
    "Walk",
    "bisect",
    "climb",
    "descend_front",
    "extreme",
]
