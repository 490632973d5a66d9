"""Outputs of the whole graph, layer by layer, for a strip of nodes at a time: exact, in bounded memory.

What nodes send is held for all of them; what is computed on the way, messages and hidden units of an MLP, only for
a strip. It is how networks are evaluated whose training steps see parts of the graph; `exact` trains in this way.
Processes that work together have some strips each, and tell the others what their nodes send.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from torch import Tensor, nn

from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.messages import Hop
from fastglt.graphs.strips import Strips
from fastglt.models.base import Backbone, Network
from fastglt.models.links import LinkNetwork
from fastglt.system import ranks


class StripLayer(ABC):
    """One round of message passing in two halves: what each node sends, and what a strip of nodes makes of it."""

    travel: ClassVar[int] = 1  # how many of the tensors that `send` gives are sent; the others nodes keep
    trains: ClassVar[bool] = (
        False  # whether it does in training what training asks for: dropout, norms over all rows
    )

    @abstractmethod
    def send(self, rows: FeatureRows | Tensor) -> tuple[Tensor, ...]:
        """What nodes make of their own rows: first what they send, then what they keep to themselves."""

    @abstractmethod
    def receive(
        self, sent: tuple[Tensor, ...], own: tuple[Tensor, ...], hop: Hop, soft_edge_mask: Tensor | None
    ) -> Tensor:
        """The rows of a hop's receivers, from what all nodes send and all that the receivers themselves made."""


class InStrips(nn.Module):
    """A network whose outputs are computed in strips; a decoder for pairs follows at once."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Features, strips: Strips, soft_edge_mask: Tensor | None, nodes: Tensor | None) -> Tensor:
        """The outputs for some targets (None: of all nodes), under the strips' mask."""
        network = self.network
        encoder = network.encoder if isinstance(network, LinkNetwork) else network
        assert isinstance(encoder, Backbone)
        rows = _outputs(encoder, x, strips, soft_edge_mask)
        if isinstance(network, LinkNetwork):
            return rows if nodes is None else network.decoder(rows, nodes)
        return rows if nodes is None else rows[nodes]


def runs_in_strips(network: Network) -> bool:
    """Whether a network's layers can be computed in strips; others are evaluated on the whole graph at once."""
    encoder = network.encoder if isinstance(network, LinkNetwork) else network
    return isinstance(encoder, Backbone) and encoder.layers_in_strips() is not None


def _outputs(network: Backbone, x: Features, strips: Strips, soft_edge_mask: Tensor | None) -> Tensor:
    layers, world = network.layers_in_strips(), ranks.world()
    assert layers, "it was asked before"
    mine, counts = world.mine(strips.bounds), [_size(part) for part in world.dealt(strips.bounds)]
    rows: Tensor | None = None  # of the nodes of this process's strips
    for layer in layers:
        made = _sent(layer, x, rows, strips, mine)
        some = made or (None,) * layer.travel  # a process without strips has nothing to send
        given = (counts, "rows", x.device, strips.table)
        sent = tuple(world.all_rows(table, *given) for table in some[: layer.travel])
        finish = network.read_out if layer is layers[-1] else _as_they_are
        rows = _received(layer, sent, made, strips, mine, soft_edge_mask, finish)
    return world.all_rows(rows, counts, "rows", x.device)


def _as_they_are(rows: Tensor) -> Tensor:
    return rows


def _size(bounds: Sequence[tuple[int, int]]) -> int:
    return bounds[-1][1] - bounds[0][0] if bounds else 0


def _sent(
    layer: StripLayer, x: Features, rows: Tensor | None, strips: Strips, bounds: Sequence[tuple[int, int]]
) -> tuple[Tensor, ...]:
    tables: list[Tensor] = []
    for start, stop in bounds:
        first = bounds[0][0]
        parts = layer.send(x.strip(start, stop) if rows is None else rows[start - first : stop - first])
        if len(bounds) == 1:
            return parts
        if not tables:
            tables = [strips.table(part, _size(bounds)) for part in parts]
        for table, part in zip(tables, parts, strict=True):
            table[start - first : stop - first] = part
        strips.release()
    return tuple(tables)


def _received(
    layer: StripLayer,
    sent: tuple[Tensor, ...],
    made: tuple[Tensor, ...],
    strips: Strips,
    bounds: Sequence[tuple[int, int]],
    soft_edge_mask: Tensor | None,
    finish: Callable[[Tensor], Tensor],
) -> Tensor | None:
    found: Tensor | None = None
    for start, stop in bounds:
        here = slice(start - bounds[0][0], stop - bounds[0][0])
        heard, hop = strips.heard(sent, strips.hop(start, stop))
        part = finish(layer.receive(heard, tuple(table[here] for table in made), hop, soft_edge_mask))
        if len(bounds) == 1:
            return part
        found = strips.table(part, _size(bounds)) if found is None else found
        found[here] = part
        strips.release()
    return found
