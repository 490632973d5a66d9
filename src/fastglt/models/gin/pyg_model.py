"""GIN as an ordinary PyG model. This file is handed out: it needs torch and torch_geometric."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class WeightedGINConv(MessagePassing):
    """GINConv with a number for each message."""

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__(aggr="sum")
        self.nn, self.eps = mlp, nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """MLP((1 + eps)·x + weighted sum of the neighbours)."""
        received = self.propagate(edge_index, x=x, edge_weight=edge_weight)
        out: Tensor = self.nn(received + (1 + self.eps) * x)
        return out

    def message(self, x_j: Tensor, edge_weight: Tensor) -> Tensor:
        """The neighbour's row times its number."""
        return edge_weight.unsqueeze(-1) * x_j


class GIN(nn.Module):
    """Two layers; the prediction averages the second with a linear read-out of the first."""

    def __init__(self, features: int, hidden: int, classes: int, depth: int) -> None:
        super().__init__()
        self.conv1 = WeightedGINConv(self._mlp(features, hidden, depth))
        self.conv2 = WeightedGINConv(self._mlp(hidden, classes, depth))
        self.readout = nn.Linear(hidden, classes)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """The outputs of all nodes."""
        h = self.conv1(x, edge_index, edge_weight).relu()
        out: Tensor = (self.readout(h) + self.conv2(h, edge_index, edge_weight)) / 2
        return out

    @staticmethod
    def _mlp(inputs: int, outputs: int, depth: int) -> nn.Sequential:
        deeper = [layer for _ in range(depth - 1) for layer in (nn.ReLU(), nn.Linear(outputs, outputs))]
        return nn.Sequential(nn.Linear(inputs, outputs), *deeper)
