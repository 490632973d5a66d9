"""GAT in forms that need no fastglt: plain arrays, and a PyG model."""

from pathlib import Path

import torch
from torch import Tensor, nn

from fastglt.graphs.graph import Graph
from fastglt.models.gat.network import GAT
from fastglt.models.gat.twin import StockGAT
from fastglt.models.portable import Portable, PyGForm, messages_of
from fastglt.models.programs import Hidden


class PortableGAT(Portable):
    """Attention, of which each half comes straight from what the layer reads: (x·W)·a = x·(W·a)."""

    heads: Tensor  # int64 [computed units], the head of each
    looks1: Tensor  # [read features, 2·heads], each head's half of the sender, then of the receiver
    looks2: Tensor  # [classes, 2]
    score: Tensor  # [messages, 1], multiplies the attention

    def __init__(self, network: GAT, graph: Graph, soft_edge_mask: Tensor | None) -> None:
        hop, _ = graph.hops(None, depth=2)  # both the same
        one, two = network.layer1, network.layer2
        hidden = Hidden.of(one.weight, one.bias, two.weight, "elu")
        parts = one.weight.reshape(-1, network.heads, network.hidden)
        ends = (one.attention_source, one.attention_target)
        looks = torch.cat([torch.einsum("fhw,hw->fh", parts, end) for end in ends], 1)
        read = one.weight[:, hidden.live].any(1) | looks.any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        self.slope = network.slope
        self.keep(score=messages_of(hop, soft_edge_mask)[1].unsqueeze(1))
        self.keep(heads=hidden.live // network.hidden, looks1=looks[read])
        self.keep(looks2=torch.cat([two.attention_source, two.attention_target]).T)
        self.keep(weight2=two.weight[hidden.live], shift=hidden.shift, bias2=two.bias)

    def activate(self, hidden: Tensor) -> Tensor:
        """ELU."""
        return nn.functional.elu(hidden)

    def first(self, x: Tensor) -> Tensor:
        """Each unit has its head's attention."""
        return self._attention(x @ self.looks1).index_select(1, self.heads)

    def second(self, y: Tensor) -> Tensor:
        """One head for all classes."""
        return self._attention(y @ self.looks2)

    def _attention(self, halves: Tensor) -> Tensor:
        sender, receiver = halves.chunk(2, dim=1)
        logits = sender.index_select(0, self.source) + receiver.index_select(0, self.target)
        logits = nn.functional.leaky_relu(logits, self.slope)
        places = self.target.unsqueeze(1).expand(logits.shape)
        top = torch.full_like(receiver, -torch.inf).scatter_reduce(0, places, logits, "amax")
        share = (logits - top.index_select(0, self.target)).exp()
        return self.score * share / self.sum(share, halves.shape[0]).index_select(0, self.target)

    def arrays(self, x: Tensor) -> dict[str, Tensor]:
        """With the slope."""
        return {**super().arrays(x), "slope": torch.tensor(self.slope, dtype=torch.float32)}


def pyg_form(network: GAT, graph: Graph, soft_edge_mask: Tensor | None) -> PyGForm:
    """What multiplies the attention is in edge_weight."""
    hop, _ = graph.hops(None, depth=2)
    index, values = messages_of(hop, soft_edge_mask)
    shape = {"features": network.in_channels, "hidden": network.hidden, "classes": network.out_channels}
    return PyGForm(
        code=Path(__file__).with_name("pyg_model.py"),
        kind="GAT",
        arguments={**shape, "heads": network.heads, "slope": network.slope},
        state=StockGAT.of(network.spec).translated(network),
        edge_index=index,
        edge_weight=values,
    )
