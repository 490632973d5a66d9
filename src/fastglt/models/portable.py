"""A network as one module of plain torch operations: what tracers understand, with the graph as a part of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fastglt.graphs.features import DenseRows
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import use_backend
from fastglt.models.programs import Hidden

if TYPE_CHECKING:
    from fastglt.models.base import Backbone


class OnGraph(nn.Module):
    """Any backbone on a fixed graph, as it is, its kernels by gather and scatter."""

    def __init__(self, network: "Backbone", graph: Graph, soft_edge_mask: Tensor | None) -> None:
        super().__init__()
        self.network = network.cpu()
        self.hops = tuple(map(_wide, graph.to("cpu").hops(None, depth=network.num_layers)))
        self.soft_edge_mask = None if soft_edge_mask is None else soft_edge_mask.detach().cpu()
        with torch.no_grad():  # norms and whatever else a hop finds out once are constants of a trace
            self.eval()(torch.zeros(graph.num_nodes, network.in_channels, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        with use_backend("plain"):
            return self.network.outputs(DenseRows(x), self.hops, self.soft_edge_mask)


def _wide(hop: Hop) -> Hop:
    """With column numbers that ONNX can gather by."""
    return replace(hop, csr=replace(hop.csr, indices=hop.csr.indices.long()))


class Portable(nn.Module, ABC):
    """From [nodes, features] to [nodes, classes] on a fixed graph; its buffers are all it knows.

    Dead units and features that nobody reads are gone, constants are folded. Two layers, with messages m:

        hidden = act(m1(x·weight1) + bias1);  y = hidden·weight2 + shift;  out = m2(y) + bias2 (+ hidden·readout)

    GCN and GIN multiply each message by a number of its own, GAT by its attention.
    """

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
        self.keep(source=hop.csr.indices.long(), target=hop.csr.rows.long(), features=features, units=hidden.live)
        self.keep(weight1=into[features][:, hidden.live], bias1=bias[hidden.live])

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
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
        """What multiplies each message of layer 2: one number, or one for each class."""

    def extra(self, hidden: Tensor) -> Tensor | float:
        """What the hidden units add to the scores past layer 2."""
        return 0.0

    def _pass(self, values: Tensor, sent: Tensor) -> Tensor:
        return self.sum(values * sent.index_select(0, self.source), sent.shape[0])

    def sum(self, messages: Tensor, nodes: int) -> Tensor:
        """Each node's messages added up."""
        places = self.target.unsqueeze(1).expand(messages.shape)
        return messages.new_zeros(nodes, messages.shape[1]).scatter_add(0, places, messages)

    def arrays(self, x: Tensor) -> dict[str, Tensor]:
        """All that it computes with, under the names that stand above, and the features that it reads."""
        return {**self.state_dict(), "x": x[:, self.features]}

    def keep(self, **tensors: Tensor) -> None:
        """Make buffers of tensors."""
        for name, value in tensors.items():  # each with storage of its own, as what is written must be
            self.register_buffer(name, value.detach().cpu().clone(memory_format=torch.contiguous_format))


class FixedFactors(Portable):
    """Messages whose factors are known beforehand."""

    values1: Tensor  # [messages, 1]
    values2: Tensor

    def first(self, x: Tensor) -> Tensor:
        """Known beforehand."""
        return self.values1

    def second(self, y: Tensor) -> Tensor:
        """Known beforehand."""
        return self.values2


@dataclass(frozen=True, eq=False, kw_only=True)
class PyGForm:
    """An ordinary PyG model and its data: a class in a file that needs no fastglt, and what it is given."""

    code: Path  # the file, which is handed out; its forward takes x, edge_index and edge_weight
    kind: str  # the class in it
    arguments: Mapping[str, Any]  # of the class
    state: Mapping[str, Tensor]
    edge_index: Tensor
    edge_weight: Tensor  # what multiplies each message
    decoder: Path | None = None  # of links: the file of a class `Links` that is given the model, and sizes
    sizes: tuple[int, ...] = ()  # of the decoder's layers; none: a dot product


def messages_of(hop: Hop, soft_edge_mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Who sends to whom, self-loops included, and the soft mask of each message, 1 if there is none."""
    index = torch.stack([hop.csr.indices.long(), hop.csr.rows.long()])
    values = torch.ones_like(hop.is_loop) if soft_edge_mask is None else hop.spread(soft_edge_mask)
    return index, values
