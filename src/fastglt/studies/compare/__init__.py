"""Methods side by side: a series of runs on the same graph, model, seeds and sparsities becomes tables."""

from fastglt.studies.compare.results import Comparison
from fastglt.studies.compare.study import compare

__all__ = ["Comparison", "compare"]
