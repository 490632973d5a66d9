"""Methods side by side: a batch of runs on the same graph, model, seeds and sparsities becomes tables."""

from fastglt.studies.compare.results import Comparison

__all__ = ["Comparison"]
