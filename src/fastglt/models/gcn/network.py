"""GCN (Kipf & Welling, ICLR'17)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from fastglt.graphs.features import FeatureRows
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate
from fastglt.models.base import Backbone
from fastglt.models.operations import Aggregation, Linear, Operation
from fastglt.models.parts import columns_of, few_units, glorot, product, rows_of, zeros

if TYPE_CHECKING:
    from fastglt.models.portable import Portable, PyGForm
    from fastglt.models.programs import Program
    from fastglt.models.strips import StripLayer


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
        reads: Tensor | None = None,
        writes: Tensor | None = None,
    ) -> Tensor:
        """The receivers' outputs from the senders' rows, through an activation and dropout.

        `reads` are the units that the senders' rows consist of, `writes` those that are computed; None: all.
        """
        sent = product(x, columns_of(rows_of(self.weight, reads), writes))
        return self.receive(sent, hop, soft_edge_mask, activation=activation, p=p, writes=writes)

    def receive(
        self,
        sent: Tensor,
        hop: Hop,
        soft_edge_mask: Tensor | None,
        *,
        activation: str,
        p: float,
        writes: Tensor | None = None,
    ) -> Tensor:
        """The receivers' outputs from what the senders send."""
        values = hop.weigh(hop.symmetric_norm, soft_edge_mask)
        bias = columns_of(self.bias, writes)
        return aggregate(hop.csr, values, sent, bias, activation=activation, p=p, training=self.training)


class GCN(Backbone):
    """Two GCN layers, ReLU and dropout between them."""

    name = "gcn"
    paper = "Kipf & Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017"
    twin = "fastglt.models.gcn.twin:StockGCN"

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.5,  # of the hidden units
        seed: int = 0,
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=2)
        self.layer1 = GCNLayer(in_channels, hidden, seed, "layer1")
        self.layer2 = GCNLayer(hidden, out_channels, seed, "layer2")

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """See `Backbone.outputs`."""
        (first, second), units = hops, self.only_units
        h = self.layer1(x, first, soft_edge_mask, activation="relu", p=self.dropout, writes=units)
        return self.layer2(h, second, soft_edge_mask, reads=units)  # type: ignore[no-any-return]

    def read_units(self, kept: Mapping[str, Tensor]) -> Tensor | None:
        """Those that layer 2 reads."""
        return few_units(kept["layer2.weight"].any(1))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Two products, two aggregations."""
        return (
            Linear(layer="layer1", weight="layer1.weight", reads="features", writes="hidden"),
            Aggregation(layer="layer1", width=self.hidden, parameters=("layer1.bias",)),
            Linear(layer="layer2", weight="layer2.weight", reads="hidden", writes="classes"),
            Aggregation(layer="layer2", width=self.out_channels, parameters=("layer2.bias",)),
        )

    def layers_in_strips(self) -> "tuple[StripLayer, ...]":
        """See `GCNStrips`."""
        from fastglt.models.gcn.strips import GCNStrips

        return GCNStrips(self.layer1, "relu", self.dropout), GCNStrips(self.layer2, "none")

    def program(self) -> "Program | None":
        """See `GCNProgram`."""
        from fastglt.models.gcn.program import GCNProgram

        return GCNProgram(self.state_dict())

    def array_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "Portable | None":
        """See `PortableGCN`."""
        from fastglt.models.gcn.portable import PortableGCN

        return PortableGCN(self, graph, soft_edge_mask)

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm":
        """See `pyg_model`."""
        from fastglt.models.gcn.portable import pyg_form

        return pyg_form(self, graph, soft_edge_mask)
