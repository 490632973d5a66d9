"""ResGCN's layers for a strip of nodes at a time."""

from torch import Tensor

from fastglt.graphs.features import FeatureRows
from fastglt.graphs.messages import Hop
from fastglt.kernels.drop import Drop
from fastglt.models.parts import product
from fastglt.models.resgcn.layer import GENLayer, aggregated, finished
from fastglt.models.resgcn.network import ResGCN
from fastglt.models.strips import StripLayer


class ResGCNStrips(StripLayer):
    """Nodes send their normalised row; the row itself they keep for the residual."""

    trains = True

    def __init__(self, network: ResGCN, index: int) -> None:
        self.network, self.index = network, index
        layer = network.layers[index]
        assert isinstance(layer, GENLayer)
        self.layer = layer

    def send(self, rows: FeatureRows | Tensor) -> tuple[Tensor, ...]:
        """See `StripLayer.send`."""
        if not isinstance(rows, Tensor):
            return (product(rows, self.network.weight_encoder).add_(self.network.bias_encoder),)
        norm = self.layer.norm
        assert norm is not None, "only the first layer has none"
        return finished(norm, Drop.draw(self.network.dropout, training=self.layer.training), rows), rows

    def receive(
        self, sent: tuple[Tensor, ...], own: tuple[Tensor, ...], hop: Hop, soft_edge_mask: Tensor | None
    ) -> Tensor:
        """See `StripLayer.receive`."""
        network, layer = self.network, self.layer
        size = None if soft_edge_mask is None else soft_edge_mask.abs()
        heard = own[0].new_ones(hop.csr.num_entries) if network.self_loops else hop.sum_norm.to(own[0].dtype)
        learnt = network.temperatures
        t = own[0].new_tensor(network.temperature) if learnt is None else learnt[self.index]
        both = (layer.weight_edges, layer.bias_edges)
        edge = tuple(part for part in both if part is not None)
        norms = [part for norm in layer.norms for part in (norm.weight, norm.bias)]
        heard_rows = aggregated(hop, hop.weigh(heard, size), sent[0], edge, t) + own[0]
        out = layer.mlp(heard_rows, *layer.weights, *layer.biases, *norms)  # type: ignore[arg-type]
        return out if len(own) == 1 else out + own[1]


def layers_in_strips(network: ResGCN) -> tuple[ResGCNStrips, ...]:
    """One for each convolution; the first has the encoder."""
    return tuple(ResGCNStrips(network, index) for index in range(len(network.layers)))
