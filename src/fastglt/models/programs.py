"""What is left to compute for a trained backbone once nothing changes any more.

A hidden unit that no weight leads out of is never computed; one that no weight leads into has the same value at
every node, which is added once where it is read. Features that no weight reads are left out before anything starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from fastglt.graphs.messages import Hop
from fastglt.kernels.frozen import HiddenUnits, Product, padded, projection, strip_width

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
    """The features times a few matrices, then the hops.

    `prepare` makes ready once, for some hops, all that depends on them alone.
    """

    matrices: tuple[Tensor, ...]  # [features, columns] each
    needed_whole: int = 0  # the first ones, whose products are; those of the others may be read strip by strip
    strip: int  # columns of a strip
    live_units: int
    num_layers: int  # rounds of message passing, one hop each
    near: bool = False  # whether it wants the nodes of large graphs in an order in which neighbours lie close

    @abstractmethod
    def prepare(self, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Finish:
        """From the products' rows of the first hop's senders to the outputs of the last one's receivers.

        A soft edge mask multiplies each message once more.
        """

    def summing_first(self) -> "Program | None":
        """This program with features summed up before they are multiplied; None if messages depend on products."""
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
        """This program with features summed up before they are multiplied."""
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

    def hidden(self, hop: Hop, values: Tensor) -> Callable[[Product], Tensor]:
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
