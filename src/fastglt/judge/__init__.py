"""Is it a winning ticket? Dense network and ticket trained alone from the same start, and the verdict."""

from fastglt.judge.evaluate import Contest, evaluate
from fastglt.judge.verdict import Verdict

__all__ = ["Contest", "Verdict", "evaluate"]
