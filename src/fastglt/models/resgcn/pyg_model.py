"""ResGCN as an ordinary PyG model. This file is handed out: it needs torch and torch_geometric."""

import torch
from torch import Tensor, nn
from torch_geometric.utils import scatter


class WeightedGENConv(nn.Module):
    """GENConv with softmax aggregation; edge_weight multiplies the softmax's weights before they are normalised."""

    def __init__(self, hidden: int, temperature: float, norm: str, mlp_layers: int) -> None:
        super().__init__()
        widths = [hidden, *[2 * hidden] * (mlp_layers - 1), hidden]
        self.temperature, parts = temperature, list[nn.Module]()
        for i in range(mlp_layers):
            parts.append(nn.Linear(widths[i], widths[i + 1]))
            if i < mlp_layers - 1:
                parts += [_norm(norm, widths[i + 1]), nn.ReLU()]
        self.mlp = nn.Sequential(*parts)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """MLP(own row + the neighbours' weighted mean)."""
        (source, target), nodes = edge_index, x.shape[0]
        sent = (x.relu() + 1e-7)[source]
        scaled = self.temperature * sent
        top = scatter(scaled, target, dim_size=nodes, reduce="max")
        weight = edge_weight.unsqueeze(1) * (scaled - top[target]).exp()
        below = scatter(weight, target, dim_size=nodes, reduce="sum")
        above = scatter(weight * sent, target, dim_size=nodes, reduce="sum")
        out: Tensor = self.mlp(torch.where(below > 0, above / below, 0.0) + x)
        return out


class ResGCN(nn.Module):
    """A linear encoder, GENConv layers in res+ blocks, a norm, a read-out."""

    def __init__(
        self, features: int, hidden: int, classes: int, temperatures: list[float], norm: str, mlp_layers: int
    ) -> None:
        super().__init__()
        self.encoder, self.readout = nn.Linear(features, hidden), nn.Linear(hidden, classes)
        self.convs = nn.ModuleList(WeightedGENConv(hidden, t, norm, mlp_layers) for t in temperatures)
        self.norms = nn.ModuleList(_norm(norm, hidden) for _ in temperatures)  # one before each layer, and the last

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        """The outputs of all nodes."""
        first, *others = self.convs
        *before, last = self.norms
        h = first(self.encoder(x), edge_index, edge_weight)
        for conv, norm in zip(others, before, strict=True):
            h = h + conv(norm(h).relu(), edge_index, edge_weight)
        out: Tensor = self.readout(last(h).relu())
        return out


def _norm(kind: str, width: int) -> nn.Module:
    return nn.BatchNorm1d(width) if kind == "batch" else nn.LayerNorm(width)
