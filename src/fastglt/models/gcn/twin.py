"""GCN from PyG's own layers."""

from torch import Tensor
from torch.nn.functional import dropout

from fastglt.models.twins import StockNetwork, of_layers
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.nn import GCNConv


class StockGCN(StockNetwork):
    """Two GCN layers, ReLU and dropout between them; the normalisation is computed once."""

    adds_loops = True

    def __init__(self, in_channels: int, hidden: int, out_channels: int, *, dropout: float) -> None:
        super().__init__(dropout)
        self.conv1 = GCNConv(in_channels, hidden, cached=True)
        self.conv2 = GCNConv(hidden, out_channels, cached=True)
        self.names = of_layers({"weight": "lin.weight", "bias": "bias"})

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """The outputs of all nodes."""
        h = dropout(self.conv1(x, graph).relu(), self.dropout, self.training)
        return self.conv2(h, graph)  # type: ignore[no-any-return]
