"""Settings that were published for a graph and a backbone: data, not code."""

from fastglt.methods.settings.paper import budget_for
from fastglt.methods.settings.published import options_for

__all__ = ["budget_for", "options_for"]
