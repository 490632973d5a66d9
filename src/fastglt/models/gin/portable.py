"""GIN in forms that need no fastglt: plain arrays, and a PyG model."""

from pathlib import Path

import torch
from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.models.gin.network import GIN
from fastglt.models.gin.twin import StockGIN
from fastglt.models.portable import FixedFactors, PyGForm, messages_of
from fastglt.models.programs import Hidden


class PortableGIN(FixedFactors):
    """GIN's means or sums, times the soft mask, and (1 + eps) for a node's own row.

    The halves of the mean of layer 2 and the read-out are folded into both.
    """

    readout: Tensor  # [computed units, classes]

    def __init__(self, network: GIN, graph: Graph, soft_edge_mask: Tensor | None) -> None:
        hop, _ = graph.hops(None, depth=2)  # both the same
        one, two, classes = network.layer1, network.layer2, network.out_channels
        out = torch.cat([two.weight, network.weight_readout], 1)
        hidden = Hidden.of(one.weight, one.bias, out, "relu")
        read = one.weight[:, hidden.live].any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        norm = hop.weigh(hop.mean_norm if network.aggregation == "mean" else hop.sum_norm, soft_edge_mask)
        for name, layer in (("values1", one), ("values2", two)):
            self.keep(**{name: (norm + (1 + layer.eps) * hop.is_loop).unsqueeze(1)})
        last = two.bias + network.bias_readout + hidden.shift[classes:]
        self.keep(weight2=two.weight[hidden.live] / 2, shift=hidden.shift[:classes] / 2, bias2=last / 2)
        self.keep(readout=network.weight_readout[hidden.live] / 2)

    def extra(self, hidden: Tensor) -> Tensor | float:
        """The read-out."""
        return hidden @ self.readout


def pyg_form(network: GIN, graph: Graph, soft_edge_mask: Tensor | None) -> PyGForm:
    """Means or sums are in edge_weight; a node's own row is the layer's affair."""
    hop, _ = graph.hops(None, depth=2)
    index, values = messages_of(hop, soft_edge_mask)
    given = hop.sum_norm.bool()  # not the self-loops that only our hops have
    shape = {"features": network.in_channels, "hidden": network.hidden, "classes": network.out_channels}
    return PyGForm(
        code=Path(__file__).with_name("pyg_model.py"),
        kind="GIN",
        arguments={**shape, "depth": network.depth},
        state=StockGIN.of(network.spec).translated(network),
        edge_index=index[:, given],
        edge_weight=(values * (hop.mean_norm if network.aggregation == "mean" else hop.sum_norm))[given],
    )
