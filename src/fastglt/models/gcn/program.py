"""GCN, compiled."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from fastglt.graphs.messages import Hop
from fastglt.kernels.frozen import narrow_sums, padded
from fastglt.models.programs import Finish, FixedMessages, Hidden


class GCNProgram(FixedMessages):
    """Â·(relu(Â·z + b)·W + shift) + b."""

    num_layers = 2

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        into, out, bias = state["layer1.weight"], state["layer2.weight"], state["layer1.bias"]
        super().__init__(Hidden.of(into, bias, out, "relu"), into, bias, out)
        self._last, self._classes = padded(state["layer2.bias"]), out.shape[1]

    def prepare(self, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Finish:
        """The hidden units are multiplied by W while they are at hand, and never written down."""
        first, second = hops
        norms = [hop.weigh(hop.symmetric_norm, soft_edge_mask).unsqueeze(1) for hop in hops]
        hidden, last = self.hidden(first, norms[0]), narrow_sums(second.csr, self._last)
        return lambda products: last(norms[1], hidden(products[0]()))[:, : self._classes]
