"""GAT, compiled."""

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from fastglt.graphs.messages import Hop
from fastglt.kernels import attention, head_dots
from fastglt.kernels.frozen import narrow_sums, padded
from fastglt.models.programs import Finish, Hidden, Products, Program


class GATProgram(Program):
    """Attention from the features themselves, so that units nobody reads need not be there to be looked at."""

    num_layers = 2
    needed_whole = 1

    def __init__(self, state: Mapping[str, Tensor], *, heads: int, slope: float) -> None:
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

    def prepare(self, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Finish:
        """Attention depends on the features; the heads' units are computed and read a few heads at a time."""
        first, second = hops
        factors = [None if soft_edge_mask is None else hop.spread(soft_edge_mask).unsqueeze(1) for hop in hops]
        hidden, last = [part.projection(first, "elu") for part in self._parts], narrow_sums(second.csr, self._last)

        def finish(products: Products) -> Tensor:
            halves = products[0]()
            assert isinstance(halves, Tensor)
            values = self._attention(halves.view(-1, 2, self._heads), first, factors[0])
            y = reduce(torch.Tensor.add_, (one(values, z()) for one, z in zip(hidden, products[1:], strict=True)))
            return last(self._attention(head_dots(y, self._looks), second, factors[1]), y)[:, : self._classes]

        return finish

    def _attention(self, halves: Tensor, hop: Hop, factor: Tensor | None) -> Tensor:
        source, target = halves.unbind(1)
        values = attention(hop.csr, hop.of_receivers(target), source, self._slope)
        return values if factor is None else values * factor
