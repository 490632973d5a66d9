"""What is left to compute for a trained backbone once nothing changes any more: one program for each of ours.

A hidden unit that no weight leads out of is never computed; one that no weight leads into has the same value at
every node, which is added once where it is read. Features that no weight reads are left out before anything starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.kernels import attention, head_dots
from fastglt.kernels.frozen import narrow_sum, padded, project
from fastglt.messages import Hop
from fastglt.models import GAT, GCN, GIN, Network

State = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False, kw_only=True)
class Hidden:
    """The hidden units that are computed, and what the others add to the outputs that read them."""

    live: Tensor  # int64, ascending
    shift: Tensor  # [outputs]

    @staticmethod
    def of(into: Tensor, bias: Tensor, out: Tensor, activation: str) -> "Hidden":
        """From the weights that lead into the units (columns) and out of them (rows)."""
        written, read = into.any(0), out.any(1)
        constant = _ACTIVATIONS[activation](bias[read & ~written])
        return Hidden(live=(read & written).nonzero().squeeze(1), shift=constant @ out[read & ~written])


_ACTIVATIONS = {"relu": torch.relu, "elu": torch.nn.functional.elu}


class Program(ABC):
    """The features times a few matrices, then two hops.

    What depends on the hops alone is `prepare`d once for each pair of them.
    """

    matrices: tuple[Tensor, ...]  # [features, columns] each
    live_units: int

    @abstractmethod
    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> tuple[Tensor, ...]:
        """What each message is multiplied by; a soft edge score multiplies it once more."""

    @abstractmethod
    def finish(self, products: Sequence[Tensor], hops: tuple[Hop, Hop], prepared: tuple[Tensor, ...]) -> Tensor:
        """The class scores of the second hop's receivers from the products' rows of the first's senders."""

    @staticmethod
    def of(network: Network) -> "Program | None":
        """The program of a network as it is now; None if there is none for its kind or shape."""
        state = {name: value.detach() for name, value in network.state_dict().items()}
        if isinstance(network, GCN):
            return GCNProgram(state)
        if isinstance(network, GIN) and network.depth == 1:
            return GINProgram(state, mean=network.aggregation == "mean")
        if isinstance(network, GAT):
            return GATProgram(state, heads=network.heads, slope=network.slope)
        return None


class GCNProgram(Program):
    """Â·(relu(Â·z + b)·W + shift) + b."""

    def __init__(self, state: State) -> None:
        into, out, bias = state["layer1.weight"], state["layer2.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "relu")
        self.matrices, self.live_units = (into[:, hidden.live],), hidden.live.numel()
        self._bias, self._out, self._classes = bias[hidden.live], padded(out[hidden.live]), out.shape[1]
        self._shift, self._last = padded(hidden.shift), padded(state["layer2.bias"])

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> tuple[Tensor, ...]:
        """Symmetric norms."""
        return tuple(_scored(hop.symmetric_norm, hop, score) for hop in (first, second))

    def finish(self, products: Sequence[Tensor], hops: tuple[Hop, Hop], prepared: tuple[Tensor, ...]) -> Tensor:
        """The hidden units are multiplied by W while they are at hand, and never written down."""
        y = project(hops[0].csr, prepared[0], products[0], self._bias, self._out, activation="relu")
        return narrow_sum(hops[1].csr, prepared[1], y.add_(self._shift), self._last)[:, : self._classes]


class GINProgram(Program):
    """The mean of a read-out of the hidden units and of a second hop over their product with another matrix."""

    def __init__(self, state: State, *, mean: bool) -> None:
        passed, read = padded(state["layer2.weight"]), padded(state["weight_readout"])
        self._classes = state["layer2.weight"].shape[1]
        out = torch.cat([passed, read], 1)
        into, bias = state["layer1.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "relu")
        self.matrices, self.live_units = (into[:, hidden.live],), hidden.live.numel()
        self._bias, self._out = bias[hidden.live], out[hidden.live]
        readout = padded(state["bias_readout"])
        self._shift = hidden.shift + torch.cat([torch.zeros_like(readout), readout])
        self._last, self._mean = padded(state["layer2.bias"]), mean
        self._eps = state["layer1.eps"], state["layer2.eps"]

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> tuple[Tensor, ...]:
        """Means or sums, and (1 + eps) times a node's own row."""
        found = []
        for hop, eps in zip((first, second), self._eps, strict=True):
            norm = hop.mean_norm if self._mean else hop.sum_norm
            found.append(_scored(norm, hop, score) + (1 + eps) * hop.is_loop)
        return tuple(found)

    def finish(self, products: Sequence[Tensor], hops: tuple[Hop, Hop], prepared: tuple[Tensor, ...]) -> Tensor:
        """Both products of the hidden units are taken while they are at hand."""
        both = project(hops[0].csr, prepared[0], products[0], self._bias, self._out, activation="relu")
        passed, read = both.add_(self._shift).chunk(2, dim=1)
        total = hops[1].of_receivers(read) + narrow_sum(hops[1].csr, prepared[1], passed, self._last)
        return total[:, : self._classes] / 2


class GATProgram(Program):
    """Attention from the features themselves, so that units nobody reads need not be there to be looked at."""

    def __init__(self, state: State, *, heads: int, slope: float) -> None:
        into, out, bias = state["layer1.weight"], state["layer2.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "elu")
        looks, self._looks = (
            torch.stack([state[f"{layer}.attention_{end}"] for end in ("source", "target")])
            for layer in ("layer1", "layer2")
        )
        self.live_units = hidden.live.numel()
        self.matrices = into[:, hidden.live], head_dots(into, looks).flatten(1)  # (x·W)·a = x·(W·a)
        self._bias, self._out, self._classes = bias[hidden.live], padded(out[hidden.live]), out.shape[1]
        self._shift = padded(hidden.shift)
        edges = torch.arange(heads + 1, device=into.device) * (into.shape[1] // heads)
        self._bounds = tuple(torch.searchsorted(hidden.live, edges).tolist())
        self._looks = padded(self._looks)
        self._last, self._slope = padded(state["layer2.bias"]), slope

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> tuple[Tensor, ...]:
        """The edges' scores alone: attention depends on the features."""
        return () if score is None else tuple(hop.spread(score).unsqueeze(-1) for hop in (first, second))

    def finish(self, products: Sequence[Tensor], hops: tuple[Hop, Hop], prepared: tuple[Tensor, ...]) -> Tensor:
        """Each head's part of the units has as many as are left of it."""
        z, halves = products
        values = self._attention(halves, hops[0], prepared[:1])
        y = project(hops[0].csr, values, z, self._bias, self._out, activation="elu", bounds=self._bounds)
        halves = head_dots(y.add_(self._shift), self._looks).flatten(1)
        values = self._attention(halves, hops[1], prepared[1:]).squeeze(1)
        return narrow_sum(hops[1].csr, values, y, self._last)[:, : self._classes]

    def _attention(self, halves: Tensor, hop: Hop, score: tuple[Tensor, ...]) -> Tensor:
        source, target = halves.chunk(2, dim=1)
        values = attention(hop.csr, hop.of_receivers(target), source, self._slope)
        return values * score[0] if score else values


def _scored(norm: Tensor, hop: Hop, score: Tensor | None) -> Tensor:
    return norm if score is None else norm * hop.spread(score)
