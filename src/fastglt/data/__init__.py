"""Graphs to find tickets in: named sets, generated ones, and the user's own files.

>>> toy = load("synthetic:nodes=60,edges=150,classes=3")
>>> toy.data.num_nodes, toy.data.num_edges, toy.metric
(60, 300, 'accuracy')
"""

from fastglt.data.base import Dataset
from fastglt.data.loading import load
from fastglt.data.named import CatalogueRow, catalogue

__all__ = ["CatalogueRow", "Dataset", "catalogue", "load"]
