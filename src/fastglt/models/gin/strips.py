"""GIN's layers for a strip of nodes at a time."""

from torch import Tensor

from fastglt.graphs.features import FeatureRows
from fastglt.graphs.messages import Hop
from fastglt.models.gin.network import GIN, GINLayer
from fastglt.models.parts import product
from fastglt.models.strips import StripLayer


class GINStrips(StripLayer):
    """Nodes send their row times the first matrix; those of the last layer keep their read-out for themselves."""

    trains = True

    def __init__(self, layer: GINLayer, last_of: GIN | None, p: float = 0.0) -> None:
        self.layer, self.last_of, self.p = layer, last_of, p

    def send(self, rows: FeatureRows | Tensor) -> tuple[Tensor, ...]:
        """See `StripLayer.send`."""
        sent, network = product(rows, self.layer.weight), self.last_of
        if network is None:
            return (sent,)
        return sent, product(rows, network.weight_readout) + network.bias_readout

    def receive(
        self, sent: tuple[Tensor, ...], own: tuple[Tensor, ...], hop: Hop, soft_edge_mask: Tensor | None
    ) -> Tensor:
        """See `StripLayer.receive`."""
        if self.last_of is None:
            return self.layer.receive(sent[0], hop, soft_edge_mask, activation="relu", p=self.p)
        return (own[1] + self.layer.receive(sent[0], hop, soft_edge_mask, activation="none", p=0.0)) / 2
