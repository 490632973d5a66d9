"""Networks small or plain enough to know their derivatives: by hand, or by differentiating matrices twice."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.masks import Mask
from fastglt.models import PyGNetwork
from fastglt.tasks import NodeClassification
from fastglt.training.loop import Training
from tests.helpers import BUDGET, both_ways, node_task


class SumOfNeighbours(MessagePassing):  # type: ignore[misc]
    """Σ_j x_j·W."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")
        self.weight = nn.Parameter(torch.tensor([[4.0, 0.0], [1.0, 3.0]]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x @ self.weight)  # type: ignore[no-any-return]

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


def by_hand() -> Training:
    """A triangle of edges 0–1, 0–2, 1–2; only node 0, of class 0, is trained on.

    It hears h = x_1 + x_2 = (1, 2), so its class scores h·W are 6 and 6, and both classes have p = 1/2: the
    gradient in the scores is s = (−1/2, 1/2), that in W is h_f·s_c, that in an edge's mask s·(x_j·W).
    """
    task = NodeClassification(
        graph=Graph.from_edge_index(both_ways([(0, 1), (0, 2), (1, 2)]), num_nodes=3),
        x=Features(torch.tensor([[9.0, 9.0], [1.0, 0.0], [0.0, 2.0]])),
        y=torch.tensor([0, 1, 0]),
        train=torch.tensor([0]),
        val=torch.tensor([1]),
        test=torch.tensor([2]),
    )
    return Training(PyGNetwork(SumOfNeighbours()), task, BUDGET.recipe, seed=0)


def dense_loss(training: Training, weights: Mapping[str, Tensor], edges: Tensor) -> Tensor:
    """The training loss of a GCN on the toy task, from a whole adjacency matrix with a factor on each edge."""
    task, network = node_task(training), training.network
    source, target = task.graph.edges
    loops = torch.eye(task.graph.num_nodes, dtype=edges.dtype)
    adjacency = loops.index_put((source, target), edges).index_put((target, source), edges)
    degree = (adjacency != 0).sum(0).to(edges.dtype)
    mixing = adjacency / (degree[:, None] * degree).sqrt()
    biases = [network.get_parameter(f"layer{layer}.bias").detach() for layer in (1, 2)]
    hidden = (mixing @ task.x.dense.to(edges.dtype) @ weights["layer1.weight"] + biases[0]).relu()
    scores = mixing @ hidden @ weights["layer2.weight"] + biases[1]
    return task.label_loss(scores[task.train], task.y[task.train])


def kept_weights(training: Training) -> list[bool]:
    """All weights in order."""
    return [kept for mask in training.masks.weights.values() for kept in flat(mask)]


def flat(mask: Mask) -> list[bool]:
    """A mask as a list."""
    return mask.kept.flatten().tolist()
