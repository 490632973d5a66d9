"""A ticket as one module of plain torch operations: what tracers understand, and what its arrays mean.

Dead units and features that nobody reads are gone, constants are folded, and the graph is part of the module. All
backbones compute the same thing, with messages m between them:

    hidden = act(m1(x·weight1) + bias1);  y = hidden·weight2 + shift;  scores = m2(y) + bias2 (+ hidden·readout)

GCN and GIN multiply each message by a number of its own, GAT by its attention.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from fastglt.deploy.programs import Hidden
from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.models import GAT, GCN, GIN, Network


class Portable(nn.Module, ABC):
    """From [nodes, features] to [nodes, classes] on a fixed graph; its buffers are all it knows."""

    features: Tensor  # int64, the features that are read
    units: Tensor  # int64, the hidden units that are computed
    source: Tensor  # int64 [messages]
    target: Tensor  # int64 [messages], ascending; each node has one message from itself at least
    weight1: Tensor  # [read features, computed units]
    bias1: Tensor
    weight2: Tensor  # [computed units, classes]
    shift: Tensor  # [classes], what units that are the same at every node add
    bias2: Tensor

    def __init__(self, hop: Hop, *, into: Tensor, read: Tensor, bias: Tensor, hidden: Hidden) -> None:
        super().__init__()
        features = read.nonzero().squeeze(1)
        self._keep(source=hop.csr.indices.long(), target=hop.csr.rows.long(), features=features, units=hidden.live)
        self._keep(weight1=into[features][:, hidden.live], bias1=bias[hidden.live])

    def forward(self, x: Tensor) -> Tensor:
        """Class scores."""
        x = x.index_select(1, self.features)
        hidden = self.activate(self._pass(self.first(x), x @ self.weight1) + self.bias1)
        y = hidden @ self.weight2 + self.shift
        return self._pass(self.second(y), y) + self.bias2 + self.extra(hidden)

    def activate(self, hidden: Tensor) -> Tensor:
        """The function between the layers."""
        return hidden.relu()

    @abstractmethod
    def first(self, x: Tensor) -> Tensor:
        """What multiplies each message of layer 1: one number, or one for each unit."""

    @abstractmethod
    def second(self, y: Tensor) -> Tensor:
        """The same for layer 2."""

    def extra(self, hidden: Tensor) -> Tensor | float:
        """What the hidden units add to the scores past layer 2."""
        return 0.0

    def _pass(self, values: Tensor, sent: Tensor) -> Tensor:
        return self._sum(values * sent.index_select(0, self.source), sent.shape[0])

    def _sum(self, messages: Tensor, nodes: int) -> Tensor:
        places = self.target.unsqueeze(1).expand(messages.shape)
        return messages.new_zeros(nodes, messages.shape[1]).scatter_add(0, places, messages)

    def _keep(self, **tensors: Tensor) -> None:
        for name, value in tensors.items():  # each with storage of its own, as what is written must be
            self.register_buffer(name, value.detach().cpu().clone(memory_format=torch.contiguous_format))


class FixedMessages(Portable):
    """GCN and GIN; halves of GIN's mean of two parts are folded into the parts."""

    values1: Tensor  # [messages, 1]
    values2: Tensor

    def first(self, x: Tensor) -> Tensor:
        """Known beforehand."""
        return self.values1

    def second(self, y: Tensor) -> Tensor:
        """Known beforehand."""
        return self.values2


class PortableGCN(FixedMessages):
    """GCN's norms, times the edges' scores."""

    def __init__(self, network: GCN, hop: Hop, score: Tensor | None) -> None:
        one, two = network.layer1, network.layer2
        hidden = Hidden.of(one.weight, one.bias, two.weight, "relu")
        read = one.weight[:, hidden.live].any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        values = hop.weigh(hop.symmetric_norm, score).unsqueeze(1)
        self._keep(values1=values, values2=values)
        self._keep(weight2=two.weight[hidden.live], shift=hidden.shift, bias2=two.bias)


class PortableGIN(FixedMessages):
    """GIN's means or sums, times the edges' scores, and (1 + eps) for a node's own row."""

    readout: Tensor  # [computed units, classes]

    def __init__(self, network: GIN, hop: Hop, score: Tensor | None) -> None:
        one, two, classes = network.layer1, network.layer2, network.out_channels
        out = torch.cat([two.weight, network.weight_readout], 1)
        hidden = Hidden.of(one.weight, one.bias, out, "relu")
        read = one.weight[:, hidden.live].any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        norm = hop.weigh(hop.mean_norm if network.aggregation == "mean" else hop.sum_norm, score)
        for name, layer in (("values1", one), ("values2", two)):
            self._keep(**{name: (norm + (1 + layer.eps) * hop.is_loop).unsqueeze(1)})
        last = two.bias + network.bias_readout + hidden.shift[classes:]
        self._keep(weight2=two.weight[hidden.live] / 2, shift=hidden.shift[:classes] / 2, bias2=last / 2)
        self._keep(readout=network.weight_readout[hidden.live] / 2)

    def extra(self, hidden: Tensor) -> Tensor | float:
        """The read-out."""
        return hidden @ self.readout


class PortableGAT(Portable):
    """Attention, of which each half comes straight from what the layer reads: (x·W)·a = x·(W·a)."""

    heads: Tensor  # int64 [computed units], the head of each
    looks1: Tensor  # [read features, 2·heads], each head's half of the sender, then of the receiver
    looks2: Tensor  # [classes, 2]
    score: Tensor  # [messages, 1], multiplies the attention

    def __init__(self, network: GAT, hop: Hop, score: Tensor | None) -> None:
        one, two = network.layer1, network.layer2
        hidden = Hidden.of(one.weight, one.bias, two.weight, "elu")
        parts = one.weight.reshape(-1, network.heads, network.hidden)
        ends = (one.attention_source, one.attention_target)
        looks = torch.cat([torch.einsum("fhw,hw->fh", parts, end) for end in ends], 1)
        read = one.weight[:, hidden.live].any(1) | looks.any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        self.slope = network.slope
        ones = looks.new_ones(hop.csr.num_entries)
        self._keep(score=(ones if score is None else hop.spread(score)).unsqueeze(1))
        self._keep(heads=hidden.live // network.hidden, looks1=looks[read])
        self._keep(looks2=torch.cat([two.attention_source, two.attention_target]).T)
        self._keep(weight2=two.weight[hidden.live], shift=hidden.shift, bias2=two.bias)

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
        return self.score * share / self._sum(share, halves.shape[0]).index_select(0, self.target)


@torch.no_grad()
def portable(network: Network, graph: Graph, score: Tensor | None) -> Portable:
    """One of our backbones on a graph, as it is now."""
    hop, _ = graph.hops(None, depth=2)  # both the same
    if isinstance(network, GCN):
        return PortableGCN(network, hop, score).eval()
    if isinstance(network, GAT):
        return PortableGAT(network, hop, score).eval()
    if isinstance(network, GIN) and network.depth == 1:
        return PortableGIN(network, hop, score).eval()
    got = f"gin with depth {network.depth}" if isinstance(network, GIN) else "a user's model"
    raise InputError(f"compact arrays are there for gcn, gat and gin with depth 1 (got {got}); try another format")
