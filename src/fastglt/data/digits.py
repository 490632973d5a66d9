"""Scikit-learn's bundled handwritten digits as a graph: real data that needs no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fastglt.data.base import Parts, seeded_split, tidy_edges

NEIGHBOURS = 10
TRAIN_PER_CLASS = 20
VAL_PER_CLASS = 50


class Digits:
    """1797 images of 8x8 pixels, each linked to the ten images most like it."""

    def where(self, root: Path | None) -> str:
        """Always at hand."""
        return "built in"

    def parts(self, root: Path | None, split_seed: int) -> Parts:
        """The images; 200 nodes to train, 500 to validate and 1097 to test, class by class."""
        from sklearn.datasets import load_digits
        from sklearn.neighbors import NearestNeighbors

        pixels, digits = load_digits(return_X_y=True)
        # A tree, since brute force breaks ties differently with the number of threads.
        near = NearestNeighbors(n_neighbors=NEIGHBOURS, algorithm="kd_tree").fit(pixels).kneighbors_graph()
        labels = digits.astype(np.int64)
        source = np.repeat(np.arange(len(labels)), np.diff(near.indptr))
        edges = tidy_edges(source, near.indices.astype(np.int64), nodes=len(labels))
        masks = seeded_split(labels, split_seed, train=TRAIN_PER_CLASS, val=VAL_PER_CLASS)
        return Parts(x=(pixels / 16).astype(np.float32), y=labels, edges=edges, masks=masks, drawn=True)
