"""GAT (Veličković et al., ICLR'18)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fastglt.errors import require
from fastglt.graphs.features import FeatureRows
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate, attention, dropout, head_dots
from fastglt.models.base import Backbone
from fastglt.models.operations import Aggregation, Attention, Linear, Operation
from fastglt.models.parts import glorot, product, zeros

if TYPE_CHECKING:
    from fastglt.models.portable import Portable, PyGForm
    from fastglt.models.programs import Program
    from fastglt.models.strips import StripLayer


class GATLayer(nn.Module):
    """Heads of attention over the neighbours and the node itself, concatenated."""

    def __init__(
        self,
        in_channels: int,
        width: int,
        heads: int,
        *,
        dropout: float,
        slope: float,
        seed: int,
        purpose: str,
    ) -> None:
        super().__init__()
        self.heads, self.width, self.dropout, self.slope = heads, width, dropout, slope
        self.weight = glorot(in_channels, heads * width, seed, purpose, "weight")
        self.attention_source = glorot(heads, width, seed, purpose, "source")
        self.attention_target = glorot(heads, width, seed, purpose, "target")
        self.bias = zeros(heads * width)

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
        h, source, target = self.send(x)
        return self.receive(h, source, hop.of_receivers(target), hop, soft_edge_mask, activation=activation, p=p)

    def send(self, x: FeatureRows | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What nodes send, and the sender's and the receiver's half of their attention."""
        h = product(x, self.weight)
        return h, *self._logits(x, h)

    def receive(
        self,
        h: Tensor,
        source: Tensor,
        target: Tensor,
        hop: Hop,
        soft_edge_mask: Tensor | None,
        *,
        activation: str,
        p: float,
    ) -> Tensor:
        """The receivers' outputs from what the senders send and from their own half of the attention."""
        values = attention(hop.csr, target, source, self.slope)
        values = dropout(values, self.dropout, training=self.training)
        if soft_edge_mask is not None:
            values = values * hop.spread(soft_edge_mask).unsqueeze(-1)
        return aggregate(hop.csr, values, h, self.bias, activation=activation, p=p, training=self.training)

    def _logits(self, x: FeatureRows | Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The sender's and the receiver's half of each attention logit, one column per head.

        (x·W)·a = x·(W·a): whichever is shorter, a row of x or a head of h, is multiplied by the vector.
        """
        both = torch.stack([self.attention_source, self.attention_target])
        width = x.shape[1] if isinstance(x, Tensor) else x.width
        if width < self.width:
            halves = product(x, head_dots(self.weight, both).flatten(1))
        else:
            halves = head_dots(h, both).flatten(1)
        source, target = halves.chunk(2, dim=1)
        return source, target


class GAT(Backbone):
    """Two GAT layers: `heads` heads of `hidden` concatenated, ELU, dropout, then one head of classes."""

    name = "gat"
    paper = "Veličković et al., Graph Attention Networks, ICLR 2018"
    twin = "fastglt.models.gat.twin:StockGAT"

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.6,  # of the hidden units and of the attention
        seed: int = 0,
        heads: int = 8,  # of the first layer, each with `hidden` units
        slope: float = 0.2,  # of the attention's leaky ReLU below zero
        prune_attention: bool = False,  # whether attention vectors are pruned like weight matrices
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=2)
        require("be at least 1", heads=heads)
        self.heads, self.slope, self.prune_attention = heads, slope, prune_attention
        common = {"dropout": dropout, "slope": slope, "seed": seed}
        self.layer1 = GATLayer(in_channels, hidden, heads, purpose="layer1", **common)  # type: ignore[arg-type]
        self.layer2 = GATLayer(heads * hidden, out_channels, 1, purpose="layer2", **common)  # type: ignore[arg-type]

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """See `Backbone.outputs`."""
        first, second = hops
        h = self.layer1(x, first, soft_edge_mask, activation="elu", p=self.dropout)
        return self.layer2(h, second, soft_edge_mask)  # type: ignore[no-any-return]

    @property
    def prunable(self) -> tuple[str, ...]:
        """The weight matrices and, by option, the attention vectors."""
        vectors = [name for name, _ in self.named_parameters() if "attention" in name]
        return super().prunable + (tuple(vectors) if self.prune_attention else ())

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Each layer's product, attention and aggregation."""
        first = Linear(layer="layer1", weight="layer1.weight", reads="features", writes="hidden")
        second = Linear(layer="layer2", weight="layer2.weight", reads="hidden", writes="classes")
        found: list[Operation] = []
        for linear, part in ((first, self.layer1), (second, self.layer2)):
            name, heads, width = linear.layer, part.heads, part.heads * part.width
            vectors = (f"{name}.attention_source", f"{name}.attention_target")
            found += [
                linear,
                Attention(layer=name, product=linear, parameters=vectors),
                Aggregation(layer=name, width=width, heads=heads, parameters=(f"{name}.bias",)),
            ]
        return tuple(found)

    def layers_in_strips(self) -> "tuple[StripLayer, ...]":
        """See `GATStrips`."""
        from fastglt.models.gat.strips import GATStrips

        return GATStrips(self.layer1, "elu", self.dropout), GATStrips(self.layer2, "none")

    def program(self) -> "Program | None":
        """See `GATProgram`."""
        from fastglt.models.gat.program import GATProgram

        return GATProgram(self.state_dict(), heads=self.heads, slope=self.slope)

    def array_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "Portable | None":
        """See `PortableGAT`."""
        from fastglt.models.gat.portable import PortableGAT

        return PortableGAT(self, graph, soft_edge_mask)

    def pyg_form(self, graph: Graph, soft_edge_mask: Tensor | None) -> "PyGForm":
        """See `pyg_model`."""
        from fastglt.models.gat.portable import pyg_form

        return pyg_form(self, graph, soft_edge_mask)
