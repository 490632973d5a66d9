"""GCN as an ordinary PyG model. This file is handed out: it needs torch and torch_geometric."""

from torch import Tensor, nn
from torch_geometric.nn import GCNConv


class GCN(nn.Module):
    """Two layers; the norms, self-loops included, are in edge_weight."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(features, hidden, normalize=False)
        self.conv2 = GCNConv(hidden, classes, normalize=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """The outputs of all nodes."""
        out: Tensor = self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)
        return out
