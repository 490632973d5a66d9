"""GIN, compiled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from fastglt.graphs.messages import Hop
from fastglt.kernels.frozen import narrow_sums, padded
from fastglt.models.programs import Finish, FixedMessages, Hidden, Products


class GINProgram(FixedMessages):
    """The mean of a read-out of the hidden units and of a second hop over their product with another matrix."""

    num_layers = 2

    def __init__(self, state: Mapping[str, Tensor], *, mean: bool) -> None:
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

    def prepare(self, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Finish:
        """Means or sums, and (1 + eps) times a node's own row; the hidden units' two products are taken at once."""
        (first, second), norms = hops, []
        for hop, eps in zip(hops, self._eps, strict=True):
            norm = hop.mean_norm if self._mean else hop.sum_norm
            norms.append((hop.weigh(norm, soft_edge_mask) + (1 + eps) * hop.is_loop).unsqueeze(1))
        hidden, last = self.hidden(first, norms[0]), narrow_sums(second.csr, self._last)

        def finish(products: Products) -> Tensor:
            passed, read = hidden(products[0]()).chunk(2, dim=1)
            total = second.of_receivers(read) + last(norms[1], passed)
            return total[:, : self._classes] / 2

        return finish
