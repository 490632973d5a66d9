"""A graph and its features, prepared once: one id per prunable edge, who sends messages to whom."""

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop

__all__ = ["Features", "Graph", "Hop"]
