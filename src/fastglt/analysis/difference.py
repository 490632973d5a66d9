"""Two tickets side by side: how far their masks are apart, and what one prunes that the other keeps.

The second half is the paper's motivation figure. It calls what one-shot pruning removes and iterative pruning keeps
structural noise, and finds that one-shot pruning wrongly removes weights of large gradient and edges of low degree.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.analysis.distribution import Distribution, degree_bins, magnitude_bins
from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.methods.parts.ranking import edge_degree
from fastglt.methods.parts.saliency import Elements, loss_gradient
from fastglt.models.base import Network
from fastglt.system.seeds import own_random_state
from fastglt.tasks import Task
from fastglt.tickets.ticket import Ticket
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Two masks of the same elements. What chance gives is what masks of the same counts, drawn at random, would.

    >>> found = overlap(Mask([0, 0, 1, 1]), Mask([0, 1, 0, 1]))
    >>> found.hamming, found.chance_hamming, found.jaccard_pruned
    (2, 2.0, 0.3333333333333333)
    """

    size: int
    pruned_a: int
    pruned_b: int
    pruned_both: int

    @property
    def kept_both(self) -> int:
        """Elements that neither prunes."""
        return self.size - self.pruned_a - self.pruned_b + self.pruned_both

    @property
    def only_a(self) -> int:
        """Elements that A alone prunes."""
        return self.pruned_a - self.pruned_both

    @property
    def only_b(self) -> int:
        """Elements that B alone prunes."""
        return self.pruned_b - self.pruned_both

    @property
    def hamming(self) -> int:
        """Elements on which they differ."""
        return self.only_a + self.only_b

    @property
    def hamming_share(self) -> float | None:
        """The Hamming distance as a share of all elements."""
        return _ratio(self.hamming, self.size)

    @property
    def chance_hamming(self) -> float:
        """On how many elements random masks would differ, on average."""
        kept_a, kept_b = self.size - self.pruned_a, self.size - self.pruned_b
        return (self.pruned_a * kept_b + kept_a * self.pruned_b) / max(1, self.size)

    @property
    def agreement(self) -> float | None:
        """Cohen's kappa: 1 for equal masks, 0 for what chance gives; None where chance alone makes them equal."""
        distance = _ratio(self.hamming, self.chance_hamming)
        return None if distance is None else 1 - distance

    @property
    def jaccard_pruned(self) -> float | None:
        """Of what either prunes, the share that both prune."""
        return _ratio(self.pruned_both, self.size - self.kept_both)

    @property
    def chance_jaccard_pruned(self) -> float | None:
        """`jaccard_pruned` for the mean overlap of random masks."""
        both = self.pruned_a * self.pruned_b / max(1, self.size)
        return _ratio(both, self.pruned_a + self.pruned_b - both)

    @property
    def jaccard_kept(self) -> float | None:
        """Of what either keeps, the share that both keep."""
        return _ratio(self.kept_both, self.size - self.pruned_both)

    @property
    def chance_jaccard_kept(self) -> float | None:
        """`jaccard_kept` for the mean overlap of random masks."""
        kept_a, kept_b = self.size - self.pruned_a, self.size - self.pruned_b
        both = kept_a * kept_b / max(1, self.size)
        return _ratio(both, kept_a + kept_b - both)


@dataclass(frozen=True, kw_only=True)
class Groups:
    """A number that each element has, for the elements that A alone prunes, B alone, both, and neither."""

    only_a: Distribution
    only_b: Distribution
    both: Distribution
    neither: Distribution


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where two tickets differ; None for edges on different graphs, for weights of different models."""

    edges: Overlap | None
    weights: Overlap | None  # all matrices together
    matrices: dict[str, Overlap]
    same_start: bool  # from one Θ0; else weights are compared by their places alone


def compare_tickets(a: Ticket, b: Ticket) -> Difference:
    """How far the masks of two tickets are apart. They share their graph, their model or both."""
    same_graph = a.graph_fingerprint == b.graph_fingerprint
    shapes = [{name: mask.shape for name, mask in ticket.masks.weights.items()} for ticket in (a, b)]
    same_model = a.model["name"] == b.model["name"] and shapes[0] == shapes[1]
    if not (same_graph or same_model):
        got = f"{a.model['name']} on {a.graph_fingerprint[:8]}…, {b.model['name']} on {b.graph_fingerprint[:8]}…"
        raise InputError(f"two tickets must share their graph or their model's shape to be compared (got {got})")
    matrices = {name: overlap(mask, b.masks.weights[name]) for name, mask in a.masks.weights.items() if same_model}
    return Difference(
        edges=overlap(a.masks.edges, b.masks.edges) if same_graph else None,
        weights=overlap(_all_weights(a.masks), _all_weights(b.masks)) if same_model else None,
        matrices=matrices,
        same_start=same_model and a.initial_hash == b.initial_hash,
    )


def overlap(a: Mask, b: Mask) -> Overlap:
    """How far two masks are apart."""
    if a.shape != b.shape:
        raise InputError(f"two masks must have one shape to be compared (got {a.shape} and {b.shape})")
    both = int((~(a.kept | b.kept)).sum())
    return Overlap(size=a.size, pruned_a=a.size - a.count, pruned_b=b.size - b.count, pruned_both=both)


def groups(a: Mask, b: Mask, values: Tensor, bin_edges: Sequence[float]) -> Groups:
    """How a number is distributed among the elements that one, the other, both or neither prunes."""
    if not a.shape == b.shape == tuple(values.shape):
        got = f"{a.shape}, {b.shape} and {tuple(values.shape)}"
        raise InputError(f"two masks and their elements' values must have one shape (got {got})")
    values, kept_a, kept_b = values.detach().cpu(), a.kept.cpu(), b.kept.cpu()

    def among(chosen: Tensor) -> Distribution:
        return Distribution.of(values[chosen], bin_edges)

    return Groups(
        only_a=among(~kept_a & kept_b),
        only_b=among(kept_a & ~kept_b),
        both=among(~kept_a & ~kept_b),
        neither=among(kept_a & kept_b),
    )


def edge_degree_groups(a: Masks, b: Masks, task: Task) -> Groups:
    """Edge degrees, (|N(i)| + |N(j)|) / 2 on the whole graph, of the edges that one, the other or both prune."""
    degree = edge_degree(task.graph, task.graph)
    largest = float(degree.max()) if degree.numel() else 0.0
    return groups(a.edges, b.edges, degree, degree_bins(largest))


def start_gradients(network: Network, task: Task) -> Elements:
    """|∂L/∂m_g| of every edge and |∂L/∂θ| of every weight at the start of the dense network.

    L is the mean loss of the training nodes at the network's own weights (Θ0), with the whole graph, soft edge
    masks m_g = 1 and no dropout. The weights are in one vector, all matrices in order.
    """
    with own_random_state(task.device):
        edges, weights = loss_gradient(Training(network, task, Recipe(), seed=0))
    assert edges is not None
    return Elements(edges.abs(), weights.abs())


def edge_gradient_groups(a: Masks, b: Masks, gradients: Elements) -> Groups:
    """Gradient sizes (`start_gradients`) of the edges that one, the other or both prune."""
    assert gradients.edges is not None
    return groups(a.edges, b.edges, gradients.edges, magnitude_bins(gradients.edges))


def weight_gradient_groups(a: Masks, b: Masks, gradients: Elements) -> Groups:
    """Gradient sizes (`start_gradients`) of the weights that one, the other or both prune, over all matrices."""
    return groups(_all_weights(a), _all_weights(b), gradients.weights, magnitude_bins(gradients.weights))


def _all_weights(masks: Masks) -> Mask:
    parts = [mask.kept.flatten() for mask in masks.weights.values()]
    return Mask(torch.cat(parts) if parts else torch.empty(0, dtype=torch.bool))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
