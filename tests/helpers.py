"""Tiny hand-made graphs, tasks and trainings that several tests share."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask, Masks
from fastglt.methods import Budget, Method, Targets, make
from fastglt.models import GCN, Network
from fastglt.tasks import NodeClassification, NodeTask
from fastglt.training.loop import Training

Pairs = Sequence[tuple[int, int]]

# Node 0 is a hub, node 2 has a self-loop in the data, node 6 has no neighbours.
HOUSE: Pairs = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4), (4, 5))
ARROWS: Pairs = ((0, 1), (1, 0), (2, 0), (0, 3), (4, 0), (1, 2), (5, 4))


def columns(pairs: Pairs) -> Tensor:
    """An `edge_index` with just these columns."""
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T.contiguous()


def both_ways(pairs: Pairs) -> Tensor:
    """An `edge_index` with each pair in both directions."""
    return columns([*pairs, *((b, a) for a, b in pairs)])


def house(*, directed: bool = False) -> Graph:
    """Seven nodes with a hub, a self-loop in the data and an isolated node."""
    index = columns([*ARROWS, (2, 2)]) if directed else torch.cat([both_ways(HOUSE), columns([(2, 2)])], dim=1)
    return Graph.from_edge_index(index, num_nodes=7)


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers that do not touch the global generator."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def sparse_features(nodes: int, width: int, *, seed: int = 0) -> Features:
    """One word per node: few enough non-zeros for the sparse product."""
    dense = torch.zeros(nodes, width)
    dense[torch.arange(nodes), torch.arange(nodes) * 3 % width] = randn(nodes, seed=seed)
    features = Features(dense)
    assert features.is_sparse
    return features


def csr_tensor(dense: Tensor) -> Tensor:
    """The same matrix as PyTorch's compressed rows, whose first use warns."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return dense.to_sparse_csr()


def toy_task() -> NodeClassification:
    """Thirty nodes on a ring, each linked to the next two (60 edges); three classes of ten neighbours."""
    nodes = torch.arange(30)
    pairs = [(i, (i + step) % 30) for step in (1, 2) for i in range(30)]
    y, place = nodes // 10, nodes % 10
    x = torch.nn.functional.one_hot(y, 3).repeat(1, 4) + randn(30, 12)
    return NodeClassification(
        graph=Graph.from_edge_index(both_ways(pairs), num_nodes=30),
        x=Features(x),
        y=y,
        train=nodes[place < 4],
        val=nodes[(place >= 4) & (place < 7)],
        test=nodes[place >= 7],
    )


def sparse_task() -> NodeClassification:
    """The toy task with other features: a few words for each node, some of them its class's."""
    words = randn(30, 60, seed=1) * (randn(30, 60, seed=2) > 1.5)
    words[torch.arange(30), torch.arange(30) // 10] = 1
    features = Features(words)
    assert features.is_sparse
    return replace(toy_task(), x=features)


BUDGET = Budget(oneshot_epochs=4, denoise_epochs=20, interval=4, lr=0.01)


# (graph sparsity, weight sparsity) and what is left of 60 edges and 120 weights
GRID = [
    ((0.0, 0.0), (60, 120)),
    ((0.3, 0.0), (42, 120)),
    ((0.0, 0.9), (60, 12)),
    ((0.25, 0.5), (45, 60)),
    ((0.5, 0.95), (30, 6)),
    ((0.9, 0.99), (6, 1)),
]


def method_of(name: str, graph: float, weight: float, *, budget: Budget = BUDGET, **options: object) -> Method:
    """A method with its targets."""
    return make(name, targets=Targets(graph_sparsity=graph, weight_sparsity=weight), budget=budget, **options)


def training_of(
    *,
    seed: int = 0,
    network: Network | None = None,
    masks: Masks | None = None,
    budget: Budget = BUDGET,
    task: NodeClassification | None = None,
) -> Training:
    """A fresh training of a small GCN (120 prunable weights) on the toy task."""
    return Training(network or GCN(12, 8, 3), task or toy_task(), budget.recipe, seed=seed, masks=masks)


def counts(masks: Masks) -> tuple[int, int]:
    """Kept edges and kept weights."""
    return masks.edges.count, masks.weights_kept


def drop(total: int, *gone: int) -> Mask:
    """A mask that keeps all but a few."""
    kept = torch.ones(total, dtype=torch.bool)
    kept[list(gone)] = False
    return Mask(kept)


def values_and_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    """A function's output, then the gradient of a fixed random projection of it in every input."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    out = function(*leaves)
    projection = randn(*out.shape, seed=99, dtype=out.dtype)
    gradients = torch.autograd.grad((out * projection).sum(), leaves)
    return [out.detach(), *gradients]


def node_task(training: Training) -> NodeTask:
    """The task of a training, whose nodes have labels."""
    assert isinstance(training.task, NodeTask)
    return training.task


def train_loss(training: Training) -> Tensor:
    """The loss of all training nodes, as the network is."""
    (step,) = training.task.steps(0)
    return training.task.loss(training.outputs(step.nodes), step)
