"""GAT from PyG's own layers."""

from torch import Tensor
from torch.nn.functional import dropout, elu

from fastglt.models.twins import StockNetwork, of_layers
from fastglt.system.quiet import quiet_import

with quiet_import():
    from torch_geometric.nn import GATConv


class StockGAT(StockNetwork):
    """Two GAT layers: several heads, ELU and dropout, then one head of classes."""

    adds_loops = True
    unused = (*StockNetwork.unused, "prune_attention")

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float,
        heads: int = 8,
        slope: float = 0.2,
    ) -> None:
        super().__init__(dropout)
        common = {"dropout": dropout, "negative_slope": slope}
        self.conv1 = GATConv(in_channels, hidden, heads, **common)
        self.conv2 = GATConv(heads * hidden, out_channels, 1, **common)
        self.names = of_layers(
            {"weight": "lin.weight", "attention_source": "att_src", "attention_target": "att_dst", "bias": "bias"}
        )

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """The outputs of all nodes."""
        h = dropout(elu(self.conv1(x, graph)), self.dropout, self.training)
        return self.conv2(h, graph)  # type: ignore[no-any-return]
