"""GAT (Veličković et al., ICLR'18)."""

from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import require
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate, attention, dropout, head_dots
from fastglt.models.base import Aggregation, Attention, Backbone, Linear, Operation, glorot, product, zeros


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
        h = product(x, self.weight)
        source, target = self._logits(x, h)
        values = attention(hop.csr, hop.of_receivers(target), source, self.slope)
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

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.6,
        seed: int = 0,
        heads: int = 8,
        slope: float = 0.2,
        prune_attention: bool = False,
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed)
        require("be at least 1", heads=heads)
        self.heads, self.slope, self.prune_attention = heads, slope, prune_attention
        common = {"dropout": dropout, "slope": slope, "seed": seed}
        self.layer1 = GATLayer(in_channels, hidden, heads, purpose="layer1", **common)  # type: ignore[arg-type]
        self.layer2 = GATLayer(heads * hidden, out_channels, 1, purpose="layer2", **common)  # type: ignore[arg-type]

    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Class scores."""
        first, second = graph.hops(nodes, depth=2)
        h = self.layer1(x.of(first.senders), first, soft_edge_mask, activation="elu", p=self.dropout)
        return self.layer2(h, second, soft_edge_mask)  # type: ignore[no-any-return]

    @property
    def prunable(self) -> tuple[str, ...]:
        """The weight matrices and, by option, the attention vectors."""
        vectors = [name for name, _ in self.named_parameters() if "attention" in name]
        return super().prunable + (tuple(vectors) if self.prune_attention else ())

    @property
    def spec(self) -> dict[str, Any]:
        """The recipe."""
        extra = {"heads": self.heads, "slope": self.slope, "prune_attention": self.prune_attention}
        return {**super().spec, **extra}

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
