"""GAT's layers for a strip of nodes at a time."""

from torch import Tensor

from fastglt.graphs.features import FeatureRows
from fastglt.graphs.messages import Hop
from fastglt.models.gat.network import GATLayer
from fastglt.models.strips import StripLayer


class GATStrips(StripLayer):
    """Nodes send their row times the weight, and their half of the attention."""

    travel = 2  # the receiver's half stays
    trains = True

    def __init__(self, layer: GATLayer, activation: str, p: float = 0.0) -> None:
        self.layer, self.activation, self.p = layer, activation, p

    def send(self, rows: FeatureRows | Tensor) -> tuple[Tensor, ...]:
        """See `StripLayer.send`."""
        return tuple(part.contiguous() for part in self.layer.send(rows))

    def receive(
        self, sent: tuple[Tensor, ...], own: tuple[Tensor, ...], hop: Hop, soft_edge_mask: Tensor | None
    ) -> Tensor:
        """See `StripLayer.receive`."""
        common = {"activation": self.activation, "p": self.p}
        return self.layer.receive(sent[0], sent[1], own[2], hop, soft_edge_mask, **common)  # type: ignore[arg-type]
