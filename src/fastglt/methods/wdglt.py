"""WD-GLT (Hui et al., ICLR'23): UGS's rounds with a Wasserstein term, robust against the worst soft edge mask."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.errors import require
from fastglt.methods.base import STRUCTURES
from fastglt.methods.parts.rounds import MASK, Rounds
from fastglt.methods.parts.transport import sinkhorn
from fastglt.system.seeds import derive, permutation
from fastglt.training.loop import Training


@dataclass(frozen=True, kw_only=True)
class WDGLT(Rounds):
    """While masks are trained, loss = CE − λ·Σ_c W(Z^c, Z^¬c): classes are to lie far apart, labelled or not.

    Weights and their masks descend; the edge mask ascends the very same loss, projected into [0, 1]. Z are class
    probabilities, as they are in the paper's cross-entropy: distances between logits would have no bound, and
    the term could outgrow everything else. Classes are the predictions of the moment; one that nobody or
    everybody is predicted as has no distance.
    """

    name = "wdglt"
    summary = "UGS's rounds with a transport distance between classes, robust to the worst edge mask"
    paper = "Hui et al., Rethinking Graph Lottery Tickets: Graph Sparsity Matters, ICLR 2023"
    structures = STRUCTURES

    edge_l1: float = 0.0  # pressure on soft edge masks; the paper has none
    weight_l1: float = 0.0  # pressure on soft weight masks; the paper has none
    transport: float = 0.1  # weight of the distances in the loss [λ]
    transport_eps: float = 1e-3  # how much entropy smooths a distance
    transport_iterations: int = 10  # Sinkhorn's
    transport_nodes: int = 256  # drawn on each side of a distance, at most

    def __post_init__(self) -> None:
        super().__post_init__()
        require("be positive", transport_eps=self.transport_eps)
        require("be positive", transport_iterations=self.transport_iterations, transport_nodes=self.transport_nodes)
        require("not be negative", transport=self.transport)

    @property
    def needs(self) -> tuple[str, ...]:
        """Distances are between the outputs of predicted classes."""
        return ("groups", "distribution") if self.transport > 0 else ()

    def wants_all_nodes(self, training: Training) -> bool:
        """Distances are between all nodes' outputs, labelled or not."""
        return training.stage == MASK and self.transport > 0

    def extra_loss(self, training: Training, outputs: Tensor) -> Tensor | None:
        """The distances count while masks are trained; tickets are trained as in UGS."""
        if not self.wants_all_nodes(training):
            return None
        shares, predicted = training.task.distribution(outputs), training.task.groups(outputs)
        order = permutation(len(shares), derive(training.seed, "transport", training.epoch)).to(shares.device)
        inside = predicted[order] == torch.arange(shares.shape[1], device=shares.device).unsqueeze(1)
        inside = inside[inside.any(1) & ~inside.all(1)]
        if not len(inside):
            return None
        left, left_real = draw(inside, order, self.transport_nodes)
        right, right_real = draw(~inside, order, self.transport_nodes)
        distances = sinkhorn(
            shares[left],
            shares[right],
            eps=self.transport_eps,
            iterations=self.transport_iterations,
            left_real=left_real,
            right_real=right_real,
        )
        return -self.transport * distances.sum()

    def before_step(self, training: Training) -> None:
        """The edge mask ascends the loss that everything else descends."""
        if training.soft_edge_mask is not None and training.soft_edge_mask.grad is not None:
            training.soft_edge_mask.grad.neg_()

    def after_step(self, training: Training) -> None:
        """Project the edge mask back into [0, 1]."""
        if training.soft_edge_mask is not None:
            with torch.no_grad():
                training.soft_edge_mask.clamp_(0, 1)


def draw(wanted: Tensor, order: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """The first `limit` wanted nodes for each row of `wanted`, whose columns are nodes in an order.

    Returns the nodes, a row each, and which of them are real: short rows are filled up.

    >>> nodes, real = draw(torch.tensor([[True, True, True], [False, False, True]]), torch.tensor([7, 5, 6]), 2)
    >>> nodes.tolist(), real.tolist()
    ([[7, 5], [6, 0]], [[True, True], [True, False]])
    """
    rank = wanted.cumsum(1)
    row, place = (wanted & (rank <= limit)).nonzero().unbind(1)
    shape = len(wanted), min(limit, int(rank.max()))
    nodes, real = order.new_zeros(shape), wanted.new_zeros(shape)
    nodes[row, rank[row, place] - 1] = order[place]
    real[row, rank[row, place] - 1] = True
    return nodes, real
