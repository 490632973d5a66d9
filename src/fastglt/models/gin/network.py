"""GIN (Xu et al., ICLR'19) as the graph lottery ticket papers use it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from torch import Tensor, nn

from fastglt.errors import require, unknown_name
from fastglt.graphs.features import FeatureRows
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate, dropout
from fastglt.models.base import Backbone
from fastglt.models.operations import Aggregation, Linear, Operation
from fastglt.models.parts import columns_of, few_units, product, rows_of, zeros
from fastglt.system.seeds import derive, uniform

if TYPE_CHECKING:
    from fastglt.models.portable import Portable, PyGForm
    from fastglt.models.programs import Program
    from fastglt.models.strips import StripLayer


_AGGREGATIONS = ("mean", "sum")


class GINLayer(nn.Module):
    """MLP((1 + eps)·x + Σ or mean of the neighbours); the MLP's first matrix is applied before aggregating."""

    def __init__(
        self, in_channels: int, out_channels: int, *, depth: int, aggregation: str, seed: int, purpose: str
    ) -> None:
        super().__init__()
        self.mean = aggregation == "mean"
        self.eps = zeros(1)
        widths = [in_channels] + [out_channels] * depth
        self.weight = _matrix(widths[0], widths[1], seed, purpose, 0)
        self.bias = _vector(widths[0], widths[1], seed, purpose, 0)
        pairs = list(pairwise(widths[1:]))
        self.weights = nn.ParameterList([_matrix(a, b, seed, purpose, i) for i, (a, b) in enumerate(pairs, 1)])
        self.biases = nn.ParameterList([_vector(a, b, seed, purpose, i) for i, (a, b) in enumerate(pairs, 1)])

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

        The hop's self-loops carry a node's own row. `reads` are the units that the senders' rows consist of,
        `writes` those that are computed, where the MLP has one matrix; None: all.
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
        norm = hop.mean_norm if self.mean else hop.sum_norm
        values = hop.weigh(norm, soft_edge_mask) + (1 + self.eps) * hop.is_loop
        finish = {"activation": activation, "p": p}
        last = len(self.weights)
        h = aggregate(
            hop.csr,
            values,
            sent,
            columns_of(self.bias, writes),
            training=self.training,
            **(finish if last == 0 else {"activation": "relu"}),
        )
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True), 1):
            h = product(h, weight) + bias
            h = h.relu() if i < last or activation == "relu" else h
        return h if last == 0 else dropout(h, p, training=self.training)


class GIN(Backbone):
    """Two GIN layers; the prediction averages layer 2 with a linear read-out of layer 1."""

    name = "gin"
    paper = "Xu et al., How Powerful are Graph Neural Networks?, ICLR 2019"
    twin = "fastglt.models.gin.twin:StockGIN"

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.5,  # of the hidden units
        seed: int = 0,
        depth: int = 1,  # matrices of each layer's MLP
        aggregation: str = "mean",  # of the neighbours: mean or sum
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=2)
        if aggregation not in _AGGREGATIONS:
            raise unknown_name("aggregation", aggregation, _AGGREGATIONS)
        require("be at least 1", depth=depth)
        self.depth, self.aggregation = depth, aggregation
        common = {"depth": depth, "aggregation": aggregation, "seed": seed}
        self.layer1 = GINLayer(in_channels, hidden, purpose="layer1", **common)  # type: ignore[arg-type]
        self.weight_readout = _matrix(hidden, out_channels, seed, "readout", 0)
        self.bias_readout = _vector(hidden, out_channels, seed, "readout", 0)
        self.layer2 = GINLayer(hidden, out_channels, purpose="layer2", **common)  # type: ignore[arg-type]

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """See `Backbone.outputs`."""
        (first, second), units = hops, self.only_units
        h = self.layer1(x, first, soft_edge_mask, activation="relu", p=self.dropout, writes=units)
        read = product(second.of_receivers(h), rows_of(self.weight_readout, units)) + self.bias_readout
        return (read + self.layer2(h, second, soft_edge_mask, reads=units)) / 2  # type: ignore[no-any-return]

    def read_units(self, kept: Mapping[str, Tensor]) -> Tensor | None:
        """Those that layer 2 or the read-out reads; a deeper MLP computes all of them."""
        if self.depth > 1:
            return None
        return few_units(kept["layer2.weight"].any(1) | kept["weight_readout"].any(1))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Each layer's products and its aggregation, and the read-out.

        (1 + eps)·self is a message from each node to itself.
        """
        readout = Linear(
            layer="readout", weight="weight_readout", reads="hidden", writes="classes", bias="bias_readout"
        )
        first = self._layer_operations("layer1", self.hidden, reads="features", writes="hidden")
        second = self._layer_operations("layer2", self.out_channels, reads="hidden", writes="classes")
        return (*first, readout, *second)

    def _layer_operations(self, layer: str, width: int, *, reads: str, writes: str) -> tuple[Operation, ...]:
        units = [reads, *(f"{layer}.{i}" for i in range(self.depth - 1)), writes]
        deeper = [
            Linear(layer=layer, weight=f"{layer}.weights.{i}", reads=a, writes=b, bias=f"{layer}.biases.{i}")
            for i, (a, b) in enumerate(pairwise(units[1:]))
        ]
        return (
            Linear(layer=layer, weight=f"{layer}.weight", reads=reads, writes=units[1]),
            Aggregation(layer=layer, width=width, parameters=(f"{layer}.bias", f"{layer}.eps")),
            *deeper,
        )

    def layers_in_strips(self) -> "tuple[StripLayer, ...]":
        """See `GINStrips`."""
        from fastglt.models.gin.strips import GINStrips

        return GINStrips(self.layer1, None, self.dropout), GINStrips(self.layer2, self)

    def program(self) -> "Program | None":
        """See `GINProgram`; a deeper MLP has none."""
        from fastglt.models.gin.program import GINProgram

        return GINProgram(self.state_dict(), mean=self.aggregation == "mean") if self.depth == 1 else None

    def array_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "Portable | None":
        """See `PortableGIN`; a deeper MLP has none."""
        from fastglt.models.gin.portable import PortableGIN

        return PortableGIN(self, graph, soft_edge_mask) if self.depth == 1 else None

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm":
        """See `pyg_model`."""
        from fastglt.models.gin.portable import pyg_form

        return pyg_form(self, graph, soft_edge_mask)


def _matrix(rows: int, columns: int, seed: int, *purpose: object) -> nn.Parameter:
    return nn.Parameter(uniform((rows, columns), rows**-0.5, derive(seed, "init", *purpose, "weight")))


def _vector(rows: int, columns: int, seed: int, *purpose: object) -> nn.Parameter:
    return nn.Parameter(uniform((columns,), rows**-0.5, derive(seed, "init", *purpose, "bias")))
