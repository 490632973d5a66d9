"""A user's PyG model as a module that can be traced."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.models.pyg import PyGNetwork
from fastglt.models.pyg_checks import message_passing_layers


class UsersModel(nn.Module):
    """A user's model on the pruned graph, which is part of it, with a soft edge mask on its messages.

    Tracing skips PyG's hooks, by which the network itself weighs messages: here the layers' `message` is wrapped.
    """

    def __init__(self, network: PyGNetwork, graph: Graph, soft_edge_mask: Tensor | None) -> None:
        super().__init__()
        self.network, self.graph = network.cpu(), replace(graph.to("cpu"), place=None)  # self-loops last
        self.network.fused.wanted = False  # kernels of ours cannot be traced
        if soft_edge_mask is None:
            return
        edges = self.graph.column_edge[self.graph.column_edge < self.graph.num_edges]  # self-loops come last
        self.register_buffer("factor", soft_edge_mask.cpu()[edges])
        for layer in message_passing_layers(self.network.module):
            layer.message = self._weighed(layer, layer.message)

    def forward(self, x: Tensor) -> Tensor:
        """The outputs."""
        features = cast(Features, SimpleNamespace(dense=x))  # real ones count their zeros, which no tracer can
        return self.network(features, self.graph)  # type: ignore[no-any-return]

    def _weighed(self, layer: Any, message: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def weighed(*inputs: Any, **named: Any) -> Tensor:
            out = message(*inputs, **named)
            factor = cast(Tensor, self.factor)
            loops = factor.new_ones(out.shape[layer.node_dim] - factor.numel())
            shape = [1] * out.dim()
            shape[layer.node_dim] = -1
            return out * torch.cat([factor, loops]).to(out.dtype).view(shape)

        return weighed
