"""A graph lottery ticket as an ordinary PyG model. It needs torch, torch_geometric, numpy and safetensors.

    python model.py                  # node, class and its probability, a line for each node
    python model.py scores.npz       # the same as arrays: scores, classes

`load(folder)` gives the model and its data. Pruned weights are zero, pruned edges are gone. What multiplies each
message is data.edge_weight: GCN's norm or GIN's mean, times the edge's score; in GAT the score, after the softmax.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, MessagePassing
from torch_geometric.typing import OptTensor


class GCN(nn.Module):
    """Two layers; the norms, self-loops included, are in edge_weight."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.conv1 = GCNConv(features, hidden, normalize=False)
        self.conv2 = GCNConv(hidden, classes, normalize=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """Class scores."""
        out: Tensor = self.conv2(self.conv1(x, edge_index, edge_weight).relu(), edge_index, edge_weight)
        return out


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
        """Class scores."""
        h = self.conv1(x, edge_index, edge_weight).relu()
        out: Tensor = (self.readout(h) + self.conv2(h, edge_index, edge_weight)) / 2
        return out

    @staticmethod
    def _mlp(inputs: int, outputs: int, depth: int) -> nn.Sequential:
        deeper = [layer for _ in range(depth - 1) for layer in (nn.ReLU(), nn.Linear(outputs, outputs))]
        return nn.Sequential(nn.Linear(inputs, outputs), *deeper)


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
        """Class scores."""
        h = nn.functional.elu(self.conv1(x, edge_index, edge_weight))
        out: Tensor = self.conv2(h, edge_index, edge_weight)
        return out


KINDS: dict[str, Any] = {"gcn": GCN, "gin": GIN, "gat": GAT}


def load(folder: Path) -> tuple[nn.Module, Data]:
    """The model and the data that lie beside this file."""
    with safe_open(folder / "model.safetensors", "pt") as file:
        about = file.metadata()
    model: nn.Module = KINDS[about["kind"]](**json.loads(about["arguments"]))
    model.load_state_dict(load_file(folder / "model.safetensors"), assign=True)  # float32 whatever the default is
    return model.eval(), Data(**load_file(folder / "data.safetensors"))


def main() -> None:
    """Print the predictions, or write them to the file that is named."""
    model, data = load(Path(__file__).parent)
    with torch.no_grad():
        scores = model(data.x, data.edge_index, data.edge_weight)
    top, classes = scores.softmax(1).max(1)
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], scores=scores.numpy(), classes=classes.numpy())
        return
    for node, (kind, probability) in enumerate(zip(classes.tolist(), top.tolist(), strict=True)):
        print(f"{node}\t{kind}\t{probability:.4f}")


if __name__ == "__main__":
    main()
