"""What a network says about all nodes or pairs, and which edges it owes that to: as it is, or was at some epoch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models.base import Network
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot


def network_outputs(
    training: Training,
    at: Snapshot | None = None,
    *,
    whole: bool = False,
    seen: Tensor | None = None,
    targets: Tensor | None = None,
) -> Tensor:
    """The outputs for some targets (None: all nodes) on the pruned graph or the whole; no soft edge mask counts.

    Of the whole, only the edges that are `seen` may be there.
    """
    with _network_at(training, at) as network, torch.no_grad():
        if whole and seen is not None:
            found: Tensor = network(training.task.x, _seen(training, seen), None, targets)
            return found
        return training.outputs_unweighted(targets, whole=whole)


def network_outputs_and_support(
    training: Training, at: Snapshot | None = None, *, seen: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The outputs that tell of agreement on the whole graph, and how far each edge speaks for what they predict.

    That is the gradient of the outputs' certainty by a soft edge mask of ones. It is large where a node would not
    be so sure without its neighbour, about 0 where it has many that say the same, and negative where the
    neighbour speaks for something else. Edges that are not `seen`, if that is given, are not there: they have 0.
    """
    graph = _seen(training, seen)
    ones = torch.ones(graph.num_edges, dtype=torch.float32, device=training.task.device, requires_grad=True)
    with _network_at(training, at) as network, torch.enable_grad():
        outputs: Tensor = network(training.task.x, graph, ones, training.task.edge_targets)
        certainty = training.task.certainty(outputs)
        (support,) = torch.autograd.grad(certainty, ones)
    if seen is not None:
        support = torch.zeros(seen.numel(), device=support.device).masked_scatter_(seen.to(support.device), support)
    return outputs.detach(), support


def _seen(training: Training, seen: Tensor | None) -> Graph:
    """The task's graph, or the part of it that may be seen."""
    return training.task.graph if seen is None else training.task.graph.prune(Mask(seen))


@contextmanager
def _network_at(training: Training, at: Snapshot | None) -> Iterator[Network]:
    """The network in evaluation mode, with the weights of some epoch and its soft masks; then as it was."""
    network = training.network
    now = {name: value.clone() for name, value in network.state_dict().items()}
    if at is not None:
        soft = {name: at.state[name] * mask for name, mask in at.soft_weight_masks.items()}
        network.load_state_dict({**at.state, **soft})
    try:
        yield network.eval()
    finally:
        network.load_state_dict(now)
