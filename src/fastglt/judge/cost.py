"""Multiply-accumulate counts of one forward pass over all nodes."""

from dataclasses import dataclass

import torch

from fastglt.masks import Masks
from fastglt.models.base import Aggregation, Attention, Backbone, Linear
from fastglt.task import Task


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Two ways to count.

    `macs` is what is really needed: products with the features' zeros and the pruned weights left out,
    messages along kept edges and self-loops, attention. `macs_paper` is what the paper's tables count:
    dense products times the share of kept weights; for GAT also the attention of the kept edges.
    """

    macs: int
    macs_paper: int


def count_macs(network: Backbone, task: Task, masks: Masks) -> Cost:
    """The cost of a network on a graph, both under masks."""
    nodes, directions = task.graph.num_nodes, 1 if task.graph.directed else 2
    messages = masks.edges.count * directions
    used = torch.bincount(task.x.csr.indices, minlength=task.x.num_features)  # nodes that have each feature
    macs = paper = dense = 0
    for operation in network.operations:
        match operation:
            case Linear():
                mask = masks.weights[operation.weight].kept.cpu()
                dense += nodes * mask.numel()
                kept = mask.sum(1) @ used.cpu() if operation.on_features else mask.sum() * nodes
                macs += int(kept)
            case Aggregation():
                loops = nodes if operation.self_loops else task.graph.loops.numel()
                macs += (messages + loops) * operation.width
            case Attention():
                macs += nodes * 2 * operation.heads * operation.width + (messages + nodes) * operation.heads
                paper += messages * 2 * operation.heads * operation.width
    return Cost(macs=macs, macs_paper=paper + round(dense * masks.weights_kept / masks.weights_total))
