"""GraphSAGE as somebody outside fastglt would write it: one file, one line that registers it."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

import fastglt
from fastglt.graphs.features import FeatureRows
from fastglt.graphs.messages import Hop
from fastglt.kernels import aggregate, dropout
from fastglt.models.parts import glorot, product, zeros


class SAGELayer(nn.Module):
    """The mean of the neighbours times a matrix, plus the node's own row times another."""

    def __init__(self, in_channels: int, out_channels: int, seed: int, purpose: str) -> None:
        super().__init__()
        self.neighbours = glorot(in_channels, out_channels, seed, purpose, "neighbours")
        self.own = glorot(in_channels, out_channels, seed, purpose, "own")
        self.bias = zeros(out_channels)

    def forward(self, x: FeatureRows | Tensor, hop: Hop, soft_edge_mask: Tensor | None) -> Tensor:
        """The receivers' rows from the senders'."""
        means = hop.weigh(hop.mean_norm, soft_edge_mask)
        heard = aggregate(hop.csr, means, product(x, self.neighbours), self.bias)
        return heard + hop.of_receivers(product(x, self.own))


@fastglt.register
class SAGE(fastglt.Backbone):
    """GraphSAGE layers with batch norm, ReLU and dropout between them."""

    name = "sage"
    paper = "Hamilton et al., Inductive Representation Learning on Large Graphs, NeurIPS 2017"

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float = 0.5,  # of the hidden units
        seed: int = 0,
        num_layers: int = 3,  # rounds of message passing
    ) -> None:
        super().__init__(in_channels, hidden, out_channels, dropout=dropout, seed=seed, num_layers=num_layers)
        widths = [in_channels, *[hidden] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(
            SAGELayer(before, after, seed, f"layer{i}") for i, (before, after) in enumerate(pairwise(widths))
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(num_layers - 1))

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        """Layer by layer, one hop each."""
        first, *others = self.layers
        h: Tensor = first(x, hops[0], soft_edge_mask)
        for norm, layer, hop in zip(self.norms, others, hops[1:], strict=True):
            h = dropout(norm(h).relu(), self.dropout, training=self.training)
            h = layer(h, hop, soft_edge_mask)
        return h
