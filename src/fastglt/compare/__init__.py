"""Methods side by side: the same graph, model, seeds and sparsities; each run in its own process and folder."""

from fastglt.compare.plan import Run, plan
from fastglt.compare.results import Results
from fastglt.compare.workers import Outcome, Workers

__all__ = ["Outcome", "Results", "Run", "Workers", "plan"]
