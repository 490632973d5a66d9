"""The paper's settings."""

from fastglt.paper.settings import budget_for

__all__ = ["budget_for"]
