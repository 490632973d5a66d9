"""What is left to compute for a trained backbone once nothing changes any more: one program for each of ours.

A hidden unit that no weight leads out of is never computed; one that no weight leads into has the same value at
every node, which is added once where it is read. Features that no weight reads are left out before anything starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from fastglt.kernels import attention, head_dots
from fastglt.kernels.frozen import AT_ONCE, narrow_sums, padded, projection
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

    def places(self, units: int, heads: int = 1) -> tuple[Tensor, tuple[int, ...]]:
        """The live ones' numbers, head by head, and where each head begins; the last bound is their end.

        Each head is filled up with the number `units`, which is nobody's, to a multiple of what is added at once.
        """
        parts = []
        for head in range(heads):
            part = self.live[(self.live * heads).div(units, rounding_mode="floor") == head]
            parts.append(torch.nn.functional.pad(part, (0, -part.numel() % AT_ONCE), value=units))
        return torch.cat(parts), tuple(accumulate((part.numel() for part in parts), initial=0))


def _pick(tensor: Tensor, places: Tensor, dim: int) -> Tensor:
    """Those places of a dimension; the one after its end is zero."""
    zero = torch.zeros_like(tensor.narrow(dim, 0, 1))
    return torch.cat([tensor, zero], dim).index_select(dim, places)


_ACTIVATIONS = {"relu": torch.relu, "elu": torch.nn.functional.elu}


Finish = Callable[[Sequence[Tensor]], Tensor]


class Program(ABC):
    """The features times a few matrices, then two hops.

    `prepare` makes ready once, for a pair of hops, all that depends on them alone.
    """

    matrices: tuple[Tensor, ...]  # [features, columns] each
    live_units: int

    @abstractmethod
    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """From the products' rows of the first hop's senders to the class scores of the second's receivers.

        A soft edge score multiplies each message once more.
        """

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
        places, _ = hidden.places(into.shape[1])
        self.matrices, self.live_units = (_pick(into, places, 1),), hidden.live.numel()
        self._bias, self._out, self._classes = _pick(bias, places, 0), _pick(padded(out), places, 0), out.shape[1]
        self._shift, self._last = padded(hidden.shift), padded(state["layer2.bias"])

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """The hidden units are multiplied by W while they are at hand, and never written down."""
        norms = [_scored(hop.symmetric_norm, hop, score).unsqueeze(1) for hop in (first, second)]
        hidden = projection(first.csr, self._bias, self._out, self._shift, activation="relu")
        last = narrow_sums(second.csr, self._last)
        return lambda products: last(norms[1], hidden(norms[0], products[0]))[:, : self._classes]


class GINProgram(Program):
    """The mean of a read-out of the hidden units and of a second hop over their product with another matrix."""

    def __init__(self, state: State, *, mean: bool) -> None:
        passed, read = padded(state["layer2.weight"]), padded(state["weight_readout"])
        self._classes = state["layer2.weight"].shape[1]
        out = torch.cat([passed, read], 1)
        into, bias = state["layer1.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "relu")
        places, _ = hidden.places(into.shape[1])
        self.matrices, self.live_units = (_pick(into, places, 1),), hidden.live.numel()
        self._bias, self._out = _pick(bias, places, 0), _pick(out, places, 0)
        readout = padded(state["bias_readout"])
        self._shift = hidden.shift + torch.cat([torch.zeros_like(readout), readout])
        self._last, self._mean = padded(state["layer2.bias"]), mean
        self._eps = state["layer1.eps"], state["layer2.eps"]

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """Means or sums, and (1 + eps) times a node's own row; the hidden units' two products are taken at once."""
        norms = []
        for hop, eps in zip((first, second), self._eps, strict=True):
            norm = hop.mean_norm if self._mean else hop.sum_norm
            norms.append((_scored(norm, hop, score) + (1 + eps) * hop.is_loop).unsqueeze(1))
        hidden = projection(first.csr, self._bias, self._out, self._shift, activation="relu")
        last = narrow_sums(second.csr, self._last)

        def finish(products: Sequence[Tensor]) -> Tensor:
            passed, read = hidden(norms[0], products[0]).chunk(2, dim=1)
            total = second.of_receivers(read) + last(norms[1], passed)
            return total[:, : self._classes] / 2

        return finish


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
        places, self._bounds = hidden.places(into.shape[1], heads)
        self.matrices = _pick(into, places, 1), head_dots(into, looks).flatten(1)  # (x·W)·a = x·(W·a)
        self._bias, self._out, self._classes = _pick(bias, places, 0), _pick(padded(out), places, 0), out.shape[1]
        self._shift = padded(hidden.shift)
        self._looks = padded(self._looks)
        self._last, self._slope = padded(state["layer2.bias"]), slope

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """Attention depends on the features; each head's part of the units has as many as are left of it."""
        scores = [None if score is None else hop.spread(score).unsqueeze(1) for hop in (first, second)]
        hidden = projection(first.csr, self._bias, self._out, self._shift, activation="elu", bounds=self._bounds)
        last = narrow_sums(second.csr, self._last)

        def finish(products: Sequence[Tensor]) -> Tensor:
            z, halves = products
            y = hidden(self._attention(halves, first, scores[0]), z)
            halves = head_dots(y, self._looks).flatten(1)
            return last(self._attention(halves, second, scores[1]), y)[:, : self._classes]

        return finish

    def _attention(self, halves: Tensor, hop: Hop, score: Tensor | None) -> Tensor:
        source, target = halves.chunk(2, dim=1)
        values = attention(hop.csr, hop.of_receivers(target), source, self._slope)
        return values if score is None else values * score


def _scored(norm: Tensor, hop: Hop, score: Tensor | None) -> Tensor:
    return norm if score is None else norm * hop.spread(score)
