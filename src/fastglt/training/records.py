"""What a training leaves behind: one line of history per epoch, the network at its best."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from fastglt.masks import Masks
from fastglt.tasks.base import Scores


@dataclass(frozen=True, kw_only=True)
class EpochRecord:
    """One line of a run's history."""

    epoch: int
    stage: str
    loss: float
    val: float
    val_loss: float
    test: float
    graph_sparsity: float
    weight_sparsity: float
    edges_dropped: int = 0
    edges_grown: int = 0
    weights_dropped: int = 0
    weights_grown: int = 0


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The network as it was at its best epoch."""

    epoch: int
    scores: Scores
    state: dict[str, Tensor]
    masks: Masks
    soft_edge_mask: Tensor | None  # while several processes train, of the edges that this one owns
    soft_weight_masks: dict[str, Tensor] = field(default_factory=dict)
    round: int = 0  # of an iterative search, from 1
    findings: dict[str, Any] = field(default_factory=dict)  # what the method has found out besides, as plain values
