"""Pruning at initialisation: rate everything at Θ0 by gradients, cut once, train what is left.

What SNIP and GraSP have in common. An edge is rated as a weight is: by its soft mask m_g, which is 1.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from fastglt.masks import flatten
from fastglt.methods.base import Method, cut_lowest, train_sparse
from fastglt.system.seeds import derive, set_random_state
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training


class Elements(NamedTuple):
    """One number for each edge (None: edges stay as they are) and for each weight, all matrices in order."""

    edges: Tensor | None
    weights: Tensor


@dataclass(frozen=True, kw_only=True)
class Saliency(Method):
    """The base: E + D epochs from Θ0 under masks that stand before the first one."""

    whole_graph = "rates edges and weights by one gradient over the whole graph"

    @abstractmethod
    def strengths(self, training: Training) -> Elements:
        """How much each element is worth at Θ0."""

    def begin(self, training: Training) -> None:
        """Cut the lowest strengths, edges and weights each on their own; nothing happens between epochs."""
        edges = weights = None
        if any((self.targets.graph_sparsity, self.targets.weight_sparsity)):
            edges, weights = self.strengths(training)
        cut_lowest(
            training,
            self.targets.graph_sparsity,
            self.targets.weight_sparsity,
            edges=edges,
            weights=weights,
        )
        train_sparse(training, self.targets, stage="train", soft_edges=False)

    def gradient(self, training: Training, weights: Mapping[str, Tensor] | None = None) -> Elements:
        """`loss_gradient`, of edges only if some are to be pruned."""
        return loss_gradient(training, weights, edges=self.targets.graph_sparsity > 0)


def loss_gradient(
    training: Training, weights: Mapping[str, Tensor] | None = None, *, edges: bool = True
) -> Elements:
    """The training loss's gradient at these weights (None: the network's own), without dropout.

    Every call draws the same random numbers, for a model that draws some even then.
    """
    leaves = {name: part.detach().requires_grad_() for name, part in (weights or training.weights).items()}
    task, device = training.task, training.task.device
    dtype = next((part.dtype for part in leaves.values()), torch.float32)
    ones = torch.ones(task.graph.num_edges, dtype=dtype, device=device, requires_grad=True)
    set_random_state(derive(training.seed, "saliency"), device)
    training.network.eval()
    training.hooks = _Given(ones if edges else None, leaves)
    steps = task.steps(derive(training.seed, "saliency"))
    loss = torch.stack([task.loss(training.outputs(step.nodes), step) for step in steps]).mean()
    training.hooks = Hooks()
    wanted = [ones, *leaves.values()]
    found = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
    return Elements(found[0] if edges else None, flatten(dict(zip(leaves, found[1:], strict=True))))


class _Given(Hooks):
    """Computes with given soft edge masks and weights, and leaves the network's own alone."""

    def __init__(self, edges: Tensor | None, weights: dict[str, Tensor]) -> None:
        self.edges, self.weights = edges, weights

    def soften(self, training: Training) -> tuple[Tensor | None, dict[str, Tensor]]:
        return self.edges, self.weights
