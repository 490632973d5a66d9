"""A small link task that several tests share."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fastglt.tasks import LinkPrediction
from tests.helpers import both_ways, randn

NODES, FEATURES = 40, 6


def link_tensors(**more: Tensor) -> dict[str, Tensor]:
    """Forty nodes in four cliques of ten, without a split of its own: 180 edges."""
    pairs = [(i, j) for i in range(NODES) for j in range(i) if i // 10 == j // 10]
    block = torch.nn.functional.one_hot(torch.arange(NODES) // 10, 4).float()
    x = torch.cat([block, randn(NODES, FEATURES - 4)], 1)
    return {"x": x, "edge_index": both_ways(pairs), **more}


def link_data(**more: Any) -> Data:
    """The same as PyG has it."""
    return Data(**link_tensors(**more))


def link_task(**options: Any) -> LinkPrediction:
    """The task, split at random: 153 edges to train on, 9 and 18 links, 180 negatives each."""
    return LinkPrediction.from_tensors(link_tensors(), **options)
