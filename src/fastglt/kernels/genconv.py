"""A residual GENConv layer around its dense products: norm, ReLU, dropout, softmax aggregation; and gradients.

What a node sends is made of its row of the layer's input whenever it is needed and held for a moment only. For
gradients the messages are gone through once, for those of rows and of values alike. Compiled loops alone do this;
where they do not serve (`serves`), the same is put together of `kernels.softmax` and PyTorch's norms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels import _chosen_backend
from fastglt.kernels.csr import CSR
from fastglt.kernels.drop import Drop
from fastglt.kernels.softmax import EPS, LEAST, heard_but_lost
from fastglt.system.blocks import reused_empty

_NONE, _BATCH, _LAYER = 0, 1, 2  # as in _genconv_loops


def serves(x: Tensor) -> bool:
    """Whether compiled loops compute with such a tensor."""
    if torch.compiler.is_exporting() or x.device.type != "cpu":
        return False
    return _chosen_backend("spmm", x).__name__.endswith("_numba") and x.shape[0] > 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Statistics:
    """Of each channel of a matrix."""

    mean: Tensor
    variance: Tensor  # of these numbers, not of those that they are a sample of
    largest: Tensor
    smallest: Tensor

    @staticmethod
    def of(h: Tensor) -> "Statistics":
        """In one pass."""
        from fastglt.kernels import _genconv_loops as loops
        from fastglt.kernels._loops import _ROWS
        from fastglt.kernels._numba import _arrays, _run

        found = h.new_empty(-(-h.shape[0] // _ROWS), 4, h.shape[1])
        _run(6 * h.numel(), loops.statistics, *_arrays(h, found))
        counts = torch.full((found.shape[0], 1), _ROWS, dtype=torch.float64)
        counts[-1] = h.shape[0] - _ROWS * (found.shape[0] - 1)
        means, squares = found[:, 0].double(), found[:, 1].double()
        mean = (means * counts).sum(0) / h.shape[0]
        variance = (squares.sum(0) + (counts * (means - mean).square()).sum(0)) / h.shape[0]
        extremes = found[:, 2].amax(0), found[:, 3].amin(0)
        return Statistics(
            mean=mean.to(h.dtype), variance=variance.to(h.dtype), largest=extremes[0], smallest=extremes[1]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Norm:
    """x̂ = factor·h + shift, channel by channel or, of a layer norm, row by row; then weight·x̂ + bias."""

    kind: int
    eps: float = 0.0
    factor: Tensor
    shift: Tensor
    weight: Tensor
    bias: Tensor
    counts: bool = False  # whether factor and shift come from the rows themselves, so that gradients go there

    @staticmethod
    def none(h: Tensor) -> "Norm":
        """The rows as they are, without ReLU."""
        nothing = h.new_empty(0)
        return Norm(kind=_NONE, factor=nothing, shift=nothing, weight=nothing, bias=nothing)

    @staticmethod
    def batch(mean: Tensor, variance: Tensor, eps: float, weight: Tensor, bias: Tensor, *, counts: bool) -> "Norm":
        """With mean and variance of each channel, which come from the rows or were counted before."""
        factor = (variance + eps).rsqrt()
        shift = -mean * factor
        return Norm(kind=_BATCH, eps=eps, factor=factor, shift=shift, weight=weight, bias=bias, counts=counts)

    @staticmethod
    def layer(eps: float, weight: Tensor, bias: Tensor) -> "Norm":
        """With those of each row."""
        one = torch.ones_like(weight)
        return Norm(kind=_LAYER, eps=eps, factor=one, shift=torch.zeros_like(one), weight=weight, bias=bias)

    def take(self, channels: Tensor) -> "Norm":
        """That of some channels, of a norm that treats each on its own."""
        parts = {name: getattr(self, name)[channels] for name in ("factor", "shift", "weight", "bias")}
        return replace(self, **parts)

    def bound(self, found: Statistics) -> Tensor:
        """A number for each channel that no row's weight·x̂ + bias exceeds, 0 at least."""
        if self.kind == _NONE:
            return found.largest.clamp(min=0)
        if self.kind == _LAYER:
            return (self.weight.abs() * math.sqrt(self.weight.numel()) + self.bias).clamp(min=0)
        ends = [self.weight * (self.factor * end + self.shift) for end in (found.largest, found.smallest)]
        return (torch.stack(ends).amax(0) + self.bias).clamp(min=0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Heard:
    """What receivers hear, their own rows added; and what is left of the sums."""

    rows: Tensor
    below: Tensor  # Σ v·e; empty if it was not asked for
    lost: bool  # whether some sums were beyond the range of an exponential; the rows are right all the same


@dataclass(frozen=True, eq=False, kw_only=True)
class Gradients:
    """Of the rows, and of what is learnt; None: not asked for, or there is none."""

    h: Tensor
    values: Tensor | None
    weight: Tensor | None  # of the norm
    bias: Tensor | None
    temperature: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class Sent:
    """What nodes send, z = dropout(relu(norm(h))): as numbers from which each row is made when it is needed."""

    h: Tensor
    norm: Norm
    drop: Drop | None
    bound: Tensor  # no number of z exceeds its channel's

    @staticmethod
    def of(h: Tensor, norm: Norm, drop: Drop | None, found: Statistics) -> "Sent":
        """With the statistics of h."""
        return Sent(h=h, norm=norm, drop=drop, bound=norm.bound(found) * (1.0 if drop is None else drop.scale))

    def activated(self) -> Tensor:
        """z itself."""
        loops, run, arrays = _loops()
        out = reused_empty(self.h, *self.h.shape)
        run(8 * out.numel(), loops.activate, *arrays(self.h), *self._made_of, *arrays(out))
        return out

    def activated_backward(self, grad: Tensor) -> Gradients:
        """From the gradient of z."""
        loops, run, arrays = _loops()
        out, sums = reused_empty(grad, *grad.shape).copy_(grad), self._sums(2)
        run(12 * out.numel(), loops.activate_backward, *arrays(self.h), *self._made_of, *arrays(out, sums))
        return self._finish(out, sums, None, None)

    def hear(self, csr: CSR, values: Tensor, own: Tensor | None, temperature: float, *, keep: bool) -> Heard:
        """Softmax aggregation (see `kernels.softmax`), and each receiver's own row; `own` says which it is."""
        loops, run, arrays = _loops()
        h, scalar = self.h, _scalar(self.h)
        (rate, eps, shift), width = self._exponents(temperature), h.shape[1]
        both = reused_empty(h, h.shape[0], 2 * width)
        run(20 * h.numel(), loops.shares, *arrays(h), *self._made_of, rate, eps, shift, *arrays(both))
        rows = reused_empty(h, csr.num_rows, width)
        below = reused_empty(h, *rows.shape) if keep else h.new_empty(0, width)
        lost = torch.empty(csr.num_rows, dtype=torch.bool)
        given = (*csr.arrays, *arrays(values, both, h), _own(own), *self._made_of, scalar(LEAST), _ahead(both))
        run(csr.num_entries * 2 * width, loops.heard, *given, *arrays(rows, below, lost))
        again = heard_but_lost(csr, values, lost, width)
        if again:
            self._hear_again(csr, values, own, again, (rate, eps), rows)
        return Heard(rows=rows, below=below, lost=bool(again))

    def _hear_again(
        self, csr: CSR, values: Tensor, own: Tensor | None, lost: Sequence[Tensor], numbers: Any, out: Tensor
    ) -> None:
        """The rows of some receivers, each with a shift of its own: to the last bit what another shift gives."""
        z, backend = self.activated(), _chosen_backend("spmm", self.h)
        for rows in lost:
            backend.softmax_lost_means(rows, csr, values, z, *map(float, numbers), out)
            out[rows] += z[rows if own is None else own[rows]]

    def backward(
        self,
        csr: CSR,
        values: Tensor,
        own: Tensor | None,
        temperature: float,
        heard: Heard,
        grad: Tensor,
        *,
        more: Tensor | None,
        of_values: bool,
    ) -> Gradients:
        """From the gradient of what was heard, which is used up; `more` is added to that of the rows of h.

        Not for what was heard with sums lost.
        """
        loops, run, arrays = _loops()
        h, scalar = self.h, _scalar(self.h)
        both = reused_empty(h, csr.num_rows, 2 * h.shape[1])
        given = (*arrays(grad, heard.rows, heard.below, h), _own(own), *self._made_of, scalar(LEAST))
        run(8 * grad.numel(), loops.shared, *given, *arrays(both))
        out = grad if own is None else torch.zeros_like(h).index_add_(0, own, grad)
        found, sums = values.new_empty(csr.num_entries if of_values else 0), self._sums(3)
        numbers = scalar(temperature), self._exponents(temperature), _ahead(both)
        pattern = (*csr.transposed.arrays, csr.transpose_order.numpy())
        run(
            csr.num_entries * 4 * h.shape[1],
            loops.backward,
            pattern,
            *arrays(values, both, h),
            *self._made_of,
            *numbers,
            *arrays(out, found, sums),
        )
        del both
        return self._finish(out, sums, more, found if of_values else None)

    def _finish(self, out: Tensor, sums: Tensor, more: Tensor | None, of_values: Tensor | None) -> Gradients:
        """From the gradient of weight·x̂ + bias, in place, to that of h."""
        total, norm = sums.double().sum(0), self.norm
        of_temperature = total[2].sum() if len(total) > 2 else total.new_zeros(())
        if norm.kind == _NONE:
            return Gradients(h=out, values=of_values, weight=None, bias=None, temperature=of_temperature)
        by_xhat, alone = total[0], total[1]
        loops, run, arrays = _loops()
        share = norm.weight / self.h.shape[0] if norm.counts else torch.zeros_like(norm.weight)
        means = [(part * share).to(out.dtype) for part in (alone, by_xhat)]
        added = out.new_empty(0, out.shape[1]) if more is None else more
        run(8 * out.numel(), loops.norm_backward, *arrays(self.h), self._made_of[0], *arrays(*means, added, out))
        return Gradients(
            h=out,
            values=of_values,
            weight=by_xhat.to(out.dtype),
            bias=alone.to(out.dtype),
            temperature=of_temperature,
        )

    @property
    def _made_of(self) -> tuple[Any, Any]:
        """Norm and dropout as loops take them."""
        from fastglt.kernels._numba import _arrays, _words

        norm = self.norm
        numbers = _arrays(norm.factor, norm.shift, norm.weight, norm.bias)
        return (norm.kind, _scalar(self.h)(norm.eps), *numbers), _words(self.drop, self.h)

    def _exponents(self, temperature: float) -> tuple[Any, Any, Any]:
        """Rate and ε of messages, and the shift of each channel: see `kernels.softmax`."""
        rate, scalar = temperature * math.log2(math.e), _scalar(self.h)
        largest = rate * ((self.bound if rate > 0 else torch.zeros_like(self.bound)) + EPS)
        return scalar(rate), scalar(EPS), largest.ceil().numpy()

    def _sums(self, count: int) -> Tensor:
        from fastglt.kernels._loops import _ROWS

        return self.h.new_empty(-(-self.h.shape[0] // _ROWS), count, self.h.shape[1])


def _loops() -> tuple[Any, Any, Any]:
    from fastglt.kernels import _genconv_loops
    from fastglt.kernels._numba import _arrays, _run

    return _genconv_loops, _run, _arrays


def _ahead(dense: Tensor) -> int:
    from fastglt.kernels._numba import _ahead as ahead

    return ahead(dense)


def _scalar(like: Tensor) -> Any:
    return np.float32 if like.dtype == torch.float32 else np.float64


def _own(own: Tensor | None) -> Any:
    return np.empty(0, np.int64) if own is None else own.numpy()
