"""What is left to compute for a trained backbone once nothing changes any more: one program for each of ours.

A hidden unit that no weight leads out of is never computed; one that no weight leads into has the same value at
every node, which is added once where it is read. Features that no weight reads are left out before anything starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from fastglt.graphs.messages import Hop
from fastglt.kernels import attention, head_dots
from fastglt.kernels.frozen import HiddenUnits, Product, narrow_sums, padded, projection, strip_width
from fastglt.models import GAT, GCN, GIN, Network

State = Mapping[str, Tensor]
_UNITS = 1024  # that are computed at a time


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

    def parts(self, into: Tensor, bias: Tensor, out: Tensor, heads: int = 1) -> "list[Part]":
        """The live ones' weights, a few heads at a time, each filled up with zeros to whole strips."""
        units = into.shape[1]
        into, bias, out = pad(into, (0, 1)), pad(bias, (0, 1)), pad(padded(out), (0, 0, 0, 1))  # one more, of zeros
        by_head = [self.live[self.live * heads // units == head] for head in range(heads)]
        strip = strip_width([live.numel() for live in by_head])
        filled = [pad(live, (0, -live.numel() % strip), value=units) for live in by_head]
        at_a_time = max(1, _UNITS // max(1, *(live.numel() for live in filled)))
        found = []
        for first in range(0, heads, at_a_time):
            members = filled[first : first + at_a_time]
            places, counts = torch.cat(members), torch.tensor([member.numel() // strip for member in members])
            found.append(
                Part(
                    into=into[:, places],
                    bias=bias[places],
                    out=out[places],
                    shift=padded(self.shift if first == 0 else torch.zeros_like(self.shift)),
                    heads=(first + torch.repeat_interleave(counts)).to(into.device),
                    strip=strip,
                )
            )
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """Some of the hidden units: a few heads', so few that what they hold of all nodes stays near."""

    into: Tensor  # [features, units]
    bias: Tensor  # [units]
    out: Tensor  # [units, outputs]
    shift: Tensor  # [outputs], what is added once
    heads: Tensor  # int64, one for each strip of units
    strip: int  # how many units it has

    def projection(self, hop: Hop, activation: str) -> Callable[[Tensor, Product], Tensor]:
        """What these units add to the outputs, from the messages' factors and the features times `into`."""
        return projection(hop.csr, self.bias, self.out, self.shift, activation=activation, heads=self.heads)


_ACTIVATIONS = {"relu": torch.relu, "elu": torch.nn.functional.elu}


Products = Sequence[Callable[[], Product]]  # each is computed when it is needed
Finish = Callable[[Products], Tensor]


class Program(ABC):
    """The features times a few matrices, then two hops.

    `prepare` makes ready once, for a pair of hops, all that depends on them alone.
    """

    matrices: tuple[Tensor, ...]  # [features, columns] each
    needed_whole: int = 0  # the first ones, whose products are; those of the others may be read strip by strip
    strip: int  # columns of a strip
    live_units: int

    @abstractmethod
    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """From the products' rows of the first hop's senders to the class scores of the second's receivers.

        A soft edge score multiplies each message once more.
        """

    def summing_first(self) -> "Program | None":
        """The same with features summed up before they are multiplied; None if messages depend on products."""
        return None

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


class FixedMessages(Program):
    """Messages that are known before the features are: A·(X·W) may as well be computed as (A·X)·W.

    The features that are read come in the products' place then. Their sums are kept, and as long as the features
    stay the same, a call starts from them.
    """

    _units: HiddenUnits | None = None  # that read sums of features; None: sums of products

    def __init__(self, hidden: Hidden, into: Tensor, bias: Tensor, out: Tensor) -> None:
        (self._part,) = hidden.parts(into, bias, out)
        self.matrices, self.strip, self.live_units = (self._part.into,), self._part.strip, hidden.live.numel()

    def summing_first(self) -> "FixedMessages":
        """The same with features summed up before they are multiplied."""
        found, part = copy(self), self._part
        used, live = part.into.any(1).nonzero().squeeze(1), part.into.any(0)
        picks = part.into.new_zeros(part.into.shape[0], used.numel())
        picks[used, torch.arange(used.numel(), device=used.device)] = 1
        found._part = replace(part, into=part.into[used])
        found._units = HiddenUnits(
            into=found._part.into[:, live], bias=part.bias[live], out=part.out[live], shift=part.shift
        )
        found.matrices = (picks,)
        return found

    def _hidden(self, hop: Hop, values: Tensor) -> Callable[[Product], Tensor]:
        """From products, or features, of the senders to what the receivers' hidden units add to the outputs."""
        if self._units is not None:
            return _KeptSums(self._units, hop, values)
        run = self._part.projection(hop, "relu")
        return lambda product: run(values, product)


class _KeptSums:
    """From features to what the hidden units that read their sums add; sums of the last features are kept."""

    def __init__(self, units: HiddenUnits, hop: Hop, values: Tensor) -> None:
        self._units, self._hop, self._values = units, hop, values
        self._kept: tuple[Tensor, Callable[[], Tensor]] | None = None

    def __call__(self, x: Product) -> Tensor:
        assert isinstance(x, Tensor)
        if self._kept is None or self._kept[0] is not x:
            self._kept = (x, self._units.prepare(self._hop.csr, self._values, x))
        return self._kept[1]()


class GCNProgram(FixedMessages):
    """Â·(relu(Â·z + b)·W + shift) + b."""

    def __init__(self, state: State) -> None:
        into, out, bias = state["layer1.weight"], state["layer2.weight"], state["layer1.bias"]
        super().__init__(Hidden.of(into, bias, out, "relu"), into, bias, out)
        self._last, self._classes = padded(state["layer2.bias"]), out.shape[1]

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """The hidden units are multiplied by W while they are at hand, and never written down."""
        norms = [hop.weigh(hop.symmetric_norm, score).unsqueeze(1) for hop in (first, second)]
        hidden, last = self._hidden(first, norms[0]), narrow_sums(second.csr, self._last)
        return lambda products: last(norms[1], hidden(products[0]()))[:, : self._classes]


class GINProgram(FixedMessages):
    """The mean of a read-out of the hidden units and of a second hop over their product with another matrix."""

    def __init__(self, state: State, *, mean: bool) -> None:
        passed, read = padded(state["layer2.weight"]), padded(state["weight_readout"])
        self._classes = state["layer2.weight"].shape[1]
        out = torch.cat([passed, read], 1)
        into, bias = state["layer1.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "relu")
        readout = padded(state["bias_readout"])
        hidden = replace(hidden, shift=hidden.shift + torch.cat([torch.zeros_like(readout), readout]))
        super().__init__(hidden, into, bias, out)
        self._last, self._mean = padded(state["layer2.bias"]), mean
        self._eps = state["layer1.eps"], state["layer2.eps"]

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """Means or sums, and (1 + eps) times a node's own row; the hidden units' two products are taken at once."""
        norms = []
        for hop, eps in zip((first, second), self._eps, strict=True):
            norm = hop.mean_norm if self._mean else hop.sum_norm
            norms.append((hop.weigh(norm, score) + (1 + eps) * hop.is_loop).unsqueeze(1))
        hidden, last = self._hidden(first, norms[0]), narrow_sums(second.csr, self._last)

        def finish(products: Products) -> Tensor:
            passed, read = hidden(products[0]()).chunk(2, dim=1)
            total = second.of_receivers(read) + last(norms[1], passed)
            return total[:, : self._classes] / 2

        return finish


class GATProgram(Program):
    """Attention from the features themselves, so that units nobody reads need not be there to be looked at."""

    needed_whole = 1

    def __init__(self, state: State, *, heads: int, slope: float) -> None:
        into, out, bias = state["layer1.weight"], state["layer2.weight"], state["layer1.bias"]
        hidden = Hidden.of(into, bias, out, "elu")
        looks, last_looks = (
            torch.stack([state[f"{layer}.attention_{end}"] for end in ("source", "target")])
            for layer in ("layer1", "layer2")
        )
        self._parts, self.live_units = hidden.parts(into, bias, out, heads), hidden.live.numel()
        self.strip = self._parts[0].strip
        looked_at = head_dots(into, looks).flatten(1)  # (x·W)·a = x·(W·a)
        self.matrices, self._classes = (looked_at, *(part.into for part in self._parts)), out.shape[1]
        self._looks = padded(last_looks)
        self._last, self._heads, self._slope = padded(state["layer2.bias"]), heads, slope

    def prepare(self, first: Hop, second: Hop, score: Tensor | None) -> Finish:
        """Attention depends on the features; the heads' units are computed and read a few heads at a time."""
        scores = [None if score is None else hop.spread(score).unsqueeze(1) for hop in (first, second)]
        hidden, last = [part.projection(first, "elu") for part in self._parts], narrow_sums(second.csr, self._last)

        def finish(products: Products) -> Tensor:
            halves = products[0]()
            assert isinstance(halves, Tensor)
            values = self._attention(halves.view(-1, 2, self._heads), first, scores[0])
            y = reduce(torch.Tensor.add_, (one(values, z()) for one, z in zip(hidden, products[1:], strict=True)))
            return last(self._attention(head_dots(y, self._looks), second, scores[1]), y)[:, : self._classes]

        return finish

    def _attention(self, halves: Tensor, hop: Hop, score: Tensor | None) -> Tensor:
        source, target = halves.unbind(1)
        values = attention(hop.csr, hop.of_receivers(target), source, self._slope)
        return values if score is None else values * score
