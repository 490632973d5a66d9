"""GCN in forms that need no fastglt: plain arrays, and a PyG model."""

from pathlib import Path

from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.models.gcn.network import GCN
from fastglt.models.gcn.twin import StockGCN
from fastglt.models.portable import FixedFactors, PyGForm, messages_of
from fastglt.models.programs import Hidden


class PortableGCN(FixedFactors):
    """GCN's norms, times the soft mask."""

    def __init__(self, network: GCN, graph: Graph, soft_edge_mask: Tensor | None) -> None:
        hop, _ = graph.hops(None, depth=2)  # both the same
        one, two = network.layer1, network.layer2
        hidden = Hidden.of(one.weight, one.bias, two.weight, "relu")
        read = one.weight[:, hidden.live].any(1)
        super().__init__(hop, into=one.weight, read=read, bias=one.bias, hidden=hidden)
        values = hop.weigh(hop.symmetric_norm, soft_edge_mask).unsqueeze(1)
        self.keep(values1=values, values2=values)
        self.keep(weight2=two.weight[hidden.live], shift=hidden.shift, bias2=two.bias)


def pyg_form(network: GCN, graph: Graph, soft_edge_mask: Tensor | None) -> PyGForm:
    """The norms are in edge_weight."""
    hop, _ = graph.hops(None, depth=2)
    index, values = messages_of(hop, soft_edge_mask)
    return PyGForm(
        code=Path(__file__).with_name("pyg_model.py"),
        kind="GCN",
        arguments={"features": network.in_channels, "hidden": network.hidden, "classes": network.out_channels},
        state=StockGCN.of(network.spec).translated(network),
        edge_index=index,
        edge_weight=values * hop.symmetric_norm,
    )
