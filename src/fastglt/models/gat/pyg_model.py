"""GAT as an ordinary PyG model. This file is handed out: it needs torch and torch_geometric."""

from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import GATConv
from torch_geometric.typing import OptTensor


class WeightedGATConv(GATConv):
    """GATConv whose attention is multiplied by a number for each message."""

    def edge_update(
        self,
        alpha_j: Tensor,
        alpha_i: Tensor,
        edge_attr: Tensor,
        index: Tensor,
        ptr: OptTensor,
        dim_size: Any,  # PyG reads these types, and "int | None" it cannot
    ) -> Tensor:
        """The softmax, then the number."""
        alpha: Tensor = super().edge_update(alpha_j, alpha_i, None, index, ptr, dim_size)
        return alpha * edge_attr.unsqueeze(-1)


class GAT(nn.Module):
    """Several heads, then one; the self-loops are in edge_index."""

    def __init__(self, features: int, hidden: int, classes: int, heads: int, slope: float) -> None:
        super().__init__()
        common = {"add_self_loops": False, "negative_slope": slope}
        self.conv1 = WeightedGATConv(features, hidden, heads, **common)
        self.conv2 = WeightedGATConv(heads * hidden, classes, 1, **common)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """The outputs of all nodes."""
        h = nn.functional.elu(self.conv1(x, edge_index, edge_weight))
        out: Tensor = self.conv2(h, edge_index, edge_weight)
        return out
