"""Edges by agreement under a spanning forest: what the network's own predictions say about its graph."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.distillation import class_scores
from fastglt.errors import require, unknown_name
from fastglt.forests import edge_standing, keep_forests
from fastglt.records import Snapshot
from fastglt.scores import edge_agreement, edge_cosine, edge_degree
from fastglt.training import Training

STRENGTHS = ("agreement", "features", "degree", "random")
LOOKS = ("whole", "pruned")
_TIES = 1e-3  # of the agreement is enough to decide between edges that stand alike


@dataclass(frozen=True, kw_only=True)
class ForestRule:
    """Keep maximum spanning forests of an edge strength, then the strongest of what is left.

    An edge is strong if the predictions for its ends agree more than those along the other edges of one of them
    (`edge_standing`); equal ones are told apart by the agreement itself. With `local` false that alone counts. For
    comparison there are strengths that know nothing of the network, so that they stay as they are.
    """

    strength: str = "agreement"
    forests: int | None = 1  # 0: none, by strength alone; None: as many as fit
    local: bool = True
    look: str = "whole"
    revise: bool = True

    def __post_init__(self) -> None:
        require("not be negative", forests=self.forests or 0)
        if self.strength not in STRENGTHS:
            raise unknown_name("strength", self.strength, STRENGTHS)
        if self.look not in LOOKS:
            raise unknown_name("graph to look at", self.look, LOOKS)

    @property
    def revises(self) -> bool:
        """Whether a later choice can differ."""
        return self.revise and self.strength == "agreement"

    def choose(self, training: Training, count: int, *, seed: int, at: Snapshot | None = None) -> Tensor:
        """Which edges of the task's graph to keep, by the network as it is, or as it was at some epoch."""
        graph, strength = training.task.graph, self._strength(training, at)
        if self.local:
            standing = edge_standing(graph.edges, strength, graph.num_nodes, seed=seed)
            strength = standing + _TIES * strength
        return keep_forests(graph.edges, strength, graph.num_nodes, count, forests=self.forests, seed=seed).cpu()

    def _strength(self, training: Training, at: Snapshot | None) -> Tensor:
        graph = training.task.graph
        if self.strength == "agreement":
            return edge_agreement(graph, class_scores(training, at, whole=self.look == "whole"))
        if self.strength == "features":
            return edge_cosine(graph, training.task.x)
        degree = edge_degree(graph, graph)
        return -degree if self.strength == "degree" else torch.zeros_like(degree)  # equals fall at random
