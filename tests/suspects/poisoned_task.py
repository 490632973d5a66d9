"""A small graph of three classes to which edges were added, at labelled nodes or anywhere."""

import numpy as np
import numpy.typing as npt
import torch

from fastglt.data import load
from fastglt.tasks import NodeClassification

RECIPE = "synthetic:nodes=400,edges=1500,features=48,classes=3,homophily=0.9"


def poisoned(
    added: int = 60, *, at_labelled: bool = True, seed: int = 0
) -> tuple[NodeClassification, npt.NDArray[np.bool_]]:
    """The task, and which of its edges were added: between classes, with a labelled end if asked for."""
    tensors = dict(load(RECIPE).tensors)
    rng = np.random.default_rng(seed)
    y, nodes = tensors["y"].numpy(), len(tensors["y"])
    known = {(a, b) for a, b in tensors["edge_index"].T.tolist()}
    first = tensors["train_mask"].nonzero().flatten().numpy() if at_labelled else np.arange(nodes)
    new: set[tuple[int, int]] = set()
    while len(new) < added:
        a, b = int(rng.choice(first)), int(rng.integers(nodes))
        if y[a] != y[b] and (a, b) not in known:
            new.add((min(a, b), max(a, b)))
    pairs = torch.tensor(sorted(new), dtype=torch.int64).reshape(-1, 2).T
    tensors["edge_index"] = torch.cat([tensors["edge_index"], pairs, pairs.flip(0)], 1)
    task = NodeClassification.from_tensors(tensors)
    return task, np.array([tuple(edge) in new for edge in task.graph.edges.T.tolist()])
