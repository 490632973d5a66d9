"""Edges by agreement under a spanning forest: what the network's own predictions say about its graph."""

from dataclasses import dataclass

from torch import Tensor

from fastglt.distillation import class_scores
from fastglt.errors import require, unknown_name
from fastglt.forests import keep_forests
from fastglt.records import Snapshot
from fastglt.scores import edge_agreement
from fastglt.training import Training

LOOKS = ("whole", "pruned")


@dataclass(frozen=True, kw_only=True)
class ForestRule:
    """Keep maximum spanning forests of an edge strength, then the strongest of what is left.

    The strength of an edge is p_i·p_j / (d_i·d_j)^degree: how far the predictions for its ends agree, times what
    its message weighs. With degree ½ that is the edge's share of tr(PᵀÂP), the agreement that one round of GCN's
    own averaging holds; with 0 it is the agreement alone.
    """

    forests: int | None = 1  # 0: none, agreement alone; None: as many as fit
    degree: float = 0.0
    look: str = "whole"
    revise: bool = True

    def __post_init__(self) -> None:
        require("not be negative", forests=self.forests or 0, degree=self.degree)
        if self.look not in LOOKS:
            raise unknown_name("graph to look at", self.look, LOOKS)

    def choose(self, training: Training, count: int, *, seed: int, at: Snapshot | None = None) -> Tensor:
        """Which edges of the task's graph to keep, by the network as it is, or as it was at some epoch."""
        graph = training.task.graph
        strength = edge_agreement(graph, class_scores(training, at, whole=self.look == "whole"))
        if self.degree > 0:
            ends = graph.degree.clamp(min=1)[graph.edges].to(strength).prod(0)
            strength = strength * ends.pow(-self.degree)
        return keep_forests(graph.edges, strength, graph.num_nodes, count, forests=self.forests, seed=seed).cpu()
