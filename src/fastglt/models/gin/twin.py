"""GIN from PyG's own layers."""

from torch import Tensor, nn
from torch.nn.functional import dropout

from fastglt.models.twins import StockNetwork, of_layers
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.nn import GINConv


class StockGIN(StockNetwork):
    """Two GIN layers; the prediction averages layer 2 with a linear read-out of layer 1."""

    adds_loops = False

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float,
        depth: int = 1,
        aggregation: str = "mean",
    ) -> None:
        super().__init__(dropout)
        self.conv1 = GINConv(_mlp(in_channels, hidden, depth), train_eps=True, aggr=aggregation)
        self.conv2 = GINConv(_mlp(hidden, out_channels, depth), train_eps=True, aggr=aggregation)
        self.readout = nn.Linear(hidden, out_channels)
        layer = {"eps": "eps", "weight": "nn.0.weight", "bias": "nn.0.bias"}
        for deeper in range(depth - 1):
            layer[f"weights.{deeper}"] = f"nn.{2 * deeper + 2}.weight"
            layer[f"biases.{deeper}"] = f"nn.{2 * deeper + 2}.bias"
        self.names = of_layers(layer) | {"weight_readout": "readout.weight", "bias_readout": "readout.bias"}

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """The outputs of all nodes."""
        h = dropout(self.conv1(x, graph).relu(), self.dropout, self.training)
        return (self.readout(h) + self.conv2(h, graph)) / 2  # type: ignore[no-any-return]


def _mlp(in_channels: int, out_channels: int, depth: int) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(in_channels, out_channels)]
    for _ in range(depth - 1):
        parts += [nn.ReLU(), nn.Linear(out_channels, out_channels)]
    return nn.Sequential(*parts)
