"""GCN's layers for a strip of nodes at a time."""

from torch import Tensor

from fastglt.graphs.features import FeatureRows
from fastglt.graphs.messages import Hop
from fastglt.models.gcn.network import GCNLayer
from fastglt.models.parts import product
from fastglt.models.strips import StripLayer


class GCNStrips(StripLayer):
    """Nodes send their row times the weight."""

    trains = True

    def __init__(self, layer: GCNLayer, activation: str, p: float = 0.0) -> None:
        self.layer, self.activation, self.p = layer, activation, p

    def send(self, rows: FeatureRows | Tensor) -> tuple[Tensor, ...]:
        """See `StripLayer.send`."""
        return (product(rows, self.layer.weight),)

    def receive(
        self, sent: tuple[Tensor, ...], own: tuple[Tensor, ...], hop: Hop, soft_edge_mask: Tensor | None
    ) -> Tensor:
        """See `StripLayer.receive`."""
        return self.layer.receive(sent[0], hop, soft_edge_mask, activation=self.activation, p=self.p)
