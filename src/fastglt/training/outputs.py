"""What a network says about all nodes, and which edges it owes that to: as it is, or as it was at some epoch."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from fastglt.models.base import Network
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot


def network_outputs(training: Training, at: Snapshot | None = None, *, whole: bool = False) -> Tensor:
    """The class scores of all nodes on the pruned graph, or on the whole. No edge scores count."""
    graph = training.task.graph if whole else training.graph
    with _network_at(training, at) as network, torch.no_grad():
        found: Tensor = network(training.task.x, graph, None, None)
    return found


def network_outputs_and_support(training: Training, at: Snapshot | None = None) -> tuple[Tensor, Tensor]:
    """The class scores of all nodes on the whole graph, and how far each edge speaks for the classes they name.

    That is the gradient of Σ log p(the class that is named) over all nodes by the edge's score, where all are 1. It
    is large where a node would not be so sure without its neighbour, about 0 where it has many that say the same,
    and negative where the neighbour speaks for another class.
    """
    score = torch.ones(
        training.task.graph.num_edges, dtype=torch.float32, device=training.task.y.device, requires_grad=True
    )
    with _network_at(training, at) as network, torch.enable_grad():
        logits: Tensor = network(training.task.x, training.task.graph, score, None)
        named = logits.log_softmax(-1).amax(-1).sum()
        (support,) = torch.autograd.grad(named, score)
    return logits.detach(), support


@contextmanager
def _network_at(training: Training, at: Snapshot | None) -> Iterator[Network]:
    """The network in evaluation mode, with the weights of some epoch and its soft masks; then as it was."""
    network = training.network
    now = {name: value.clone() for name, value in network.state_dict().items()}
    if at is not None:
        soft = {name: at.state[name] * score for name, score in at.soft_weight_masks.items()}
        network.load_state_dict({**at.state, **soft})
    try:
        yield network.eval()
    finally:
        network.load_state_dict(now)
