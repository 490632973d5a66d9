"""ResGCN, compiled: batch norms are numbers, and channels that no weight reads are never computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fastglt.graphs.messages import Hop
from fastglt.kernels.frozen import STRIP, Product, times
from fastglt.kernels.genconv import Norm, Sent, Statistics, serves
from fastglt.kernels.softmax import softmax_aggregate
from fastglt.models.programs import Finish, Products, Program


@dataclass(frozen=True, eq=False, kw_only=True)
class _Layer:
    """A layer with the channels that it reads, out of those that flow from layer to layer."""

    reads: Tensor  # int64, places among the channels that come in
    all_read: bool
    norm: Norm | None  # None: the first layer, which has no residual either
    temperature: float
    weight: Tensor  # [read channels, channels that go out]
    bias: Tensor

    def run(self, h: Tensor, hop: Hop, values: Tensor) -> Tensor:
        """The receivers' rows from the senders'."""
        out = self.bias.expand(hop.csr.num_rows, -1)
        out = out + hop.of_receivers(h) if self.norm is not None else out.clone()
        if not self.reads.numel():
            return out
        return times(self._heard(self._picked(h), hop, values), self.weight, out)

    def activated(self, h: Tensor) -> Tensor:
        """What is read, through norm and ReLU."""
        rows = self._picked(h)
        return rows if self.norm is None else _activated(self.norm, rows)

    def _picked(self, h: Tensor) -> Tensor:
        return h if self.all_read else h.index_select(1, self.reads)

    def _heard(self, h: Tensor, hop: Hop, values: Tensor) -> Tensor:
        norm = Norm.none(h) if self.norm is None else self.norm
        if serves(h):
            sent = Sent.of(h, norm, None, Statistics.of(h))
            return sent.hear(hop.csr, values, hop.receiver_columns, self.temperature, keep=False).rows
        z = h if self.norm is None else _activated(norm, h)
        return softmax_aggregate(hop.csr, values, z, h.new_tensor(self.temperature)) + hop.of_receivers(z)


class ResGCNProgram(Program):
    """The layers one after the other; for a batch norm and one matrix in each.

    A channel is live if some layer, or the read-out, has a weight that reads it.
    """

    near = True
    needed_whole, strip = 1, STRIP

    def __init__(
        self, state: Mapping[str, Tensor], *, eps: float, temperatures: Sequence[float], self_loops: bool
    ) -> None:
        self.num_layers, self._self_loops = len(temperatures), self_loops
        weights = [state[f"layers.{i}.weights.0"] for i in range(self.num_layers)]
        last = state["weight_readout"]
        live = torch.stack([matrix.any(1) for matrix in (*weights[1:], last)]).any(0).nonzero().squeeze(1)
        first = weights[0].any(1).nonzero().squeeze(1)
        self.live_units, self.matrices = live.numel(), (state["weight_encoder"][:, first],)
        self._start = state["bias_encoder"][first]
        self._layers = []
        for i, (weight, t) in enumerate(zip(weights, temperatures, strict=True)):
            come, norm = (live, _norm(state, f"layers.{i}.norm", eps)) if i else (first, None)
            out = weight[:, live], state[f"layers.{i}.biases.0"][live]
            self._layers.append(_layer(come, *out, norm, t))
        self._last = _layer(live, last, state["bias_readout"], _norm(state, "last_norm", eps), 0.0)

    def prepare(self, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Finish:
        """Values of messages are known once the hops are."""
        size = None if soft_edge_mask is None else soft_edge_mask.abs()
        values = {id(hop): self._values(hop, size) for hop in hops}

        def finish(products: Products) -> Tensor:
            h = _whole(products[0]()) + self._start
            for layer, hop in zip(self._layers, hops, strict=True):
                h = layer.run(h, hop, values[id(hop)])
            return torch.addmm(self._last.bias, self._last.activated(h), self._last.weight)

        return finish

    def _values(self, hop: Hop, size: Tensor | None) -> Tensor:
        ones = torch.ones_like(hop.csr.indices, dtype=torch.float32) if self._self_loops else hop.sum_norm
        return hop.weigh(ones, size)


def _layer(come: Tensor, weight: Tensor, bias: Tensor, norm: Norm | None, temperature: float) -> _Layer:
    """From whole matrices, of which some channels come in."""
    used = weight[come].any(1)
    read = come[used]
    return _Layer(
        reads=used.nonzero().squeeze(1),
        all_read=bool(used.all()),
        norm=None if norm is None else norm.take(read),
        temperature=temperature,
        weight=weight[read].contiguous(),
        bias=bias,
    )


def _norm(state: Mapping[str, Tensor], name: str, eps: float) -> Norm:
    mean, variance, weight, bias = (
        state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")
    )
    return Norm.batch(mean, variance, eps, weight, bias, counts=False)


def _activated(norm: Norm, h: Tensor) -> Tensor:
    return torch.addcmul(norm.bias, h * norm.factor + norm.shift, norm.weight).relu_()


def _whole(product: Product) -> Tensor:
    assert isinstance(product, Tensor), "it is needed whole"
    return product
