"""GCN (Kipf & Welling, ICLR'17)."""

from torch import Tensor, nn

from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate
from fastglt.models.base import Aggregation, Backbone, Linear, Operation, glorot, product, zeros


class GCNLayer(nn.Module):
    """Â·(x·W) + b, with Â = D^-1/2 (A + I) D^-1/2 and messages multiplied by their edge's score."""

    def __init__(self, in_channels: int, out_channels: int, seed: int, purpose: str) -> None:
        super().__init__()
        self.weight = glorot(in_channels, out_channels, seed, purpose)
        self.bias = zeros(out_channels)

    def forward(
        self,
        x: FeatureRows | Tensor,
        hop: Hop,
        soft_edge_mask: Tensor | None = None,
        *,
        activation: str = "none",
        p: float = 0.0,
    ) -> Tensor:
        """The receivers' outputs from the senders' rows, through an activation and dropout."""
        values = hop.weigh(hop.symmetric_norm, soft_edge_mask)
        h = product(x, self.weight)
        return aggregate(hop.csr, values, h, self.bias, activation=activation, p=p, training=self.training)


class GCN(Backbone):
    """Two GCN layers, ReLU and dropout between them."""

    name = "gcn"

    def __init__(
        self, in_channels: int, hidden: int, out_channels: int, *, dropout: float = 0.5, seed: int = 0
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed)
        self.layer1 = GCNLayer(in_channels, hidden, seed, "layer1")
        self.layer2 = GCNLayer(hidden, out_channels, seed, "layer2")

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Class scores."""
        first, second = graph.hops(nodes, depth=2)
        h = self.layer1(x.of(first.senders), first, soft_edge_mask, activation="relu", p=self.dropout)
        return self.layer2(h, second, soft_edge_mask)  # type: ignore[no-any-return]

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Two products, two aggregations."""
        return (
            Linear(layer="layer1", weight="layer1.weight", reads="features", writes="hidden"),
            Aggregation(layer="layer1", width=self.hidden, parameters=("layer1.bias",)),
            Linear(layer="layer2", weight="layer2.weight", reads="hidden", writes="classes"),
            Aggregation(layer="layer2", width=self.out_channels, parameters=("layer2.bias",)),
        )
