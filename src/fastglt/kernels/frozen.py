"""Products for inference, where nothing is learnt: no gradients, and weights in whichever layout is fastest.

What never changes is given first and made ready once; the rest comes with each call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fastglt.kernels import _backend_for, spmm
from fastglt.kernels.csr import CSR

Sums = Callable[[Tensor, Tensor], Tensor]  # of a matrix's rows, from values [entries, heads] and the matrix
LANES = 8  # columns of few that are summed at once
STRIP, NARROW = 64, 16  # columns of many that are summed at once; the latter where they come in small groups
_FEW = 4 * LANES  # columns, up to which they are summed LANES at a time
_NEAR = 2**20  # numbers of hidden units that are held at a time
_FEW_LEFT = 0.1  # share of the weights between two tall matrices that are left, up to which only those are read
_SPARSE_UP_TO = 0.25  # share of weights that are left, up to which only those are read


def projection(
    csr: CSR, bias: Tensor, weight: Tensor, shift: Tensor, *, activation: str, heads: Tensor
) -> "Callable[[Tensor, Product], Tensor]":
    """``activation(csr(values) · product + bias) · weight + shift``; what is in between is never written down.

    The product has a strip of columns, STRIP or NARROW, for each of the heads, which tell what column of the values
    it takes. The weight has few columns and is `padded`.
    """
    found: Callable[[Tensor, Product], Tensor] = _backend_for(bias, "numba").projection(
        csr, heads, bias, activation, weight, shift
    )
    return found


def narrow_sums(csr: CSR, bias: Tensor) -> Sums:
    """``csr(values) · dense + bias`` for a `padded` matrix of few columns."""
    found: Sums = _backend_for(bias, "numba").narrow_sums(csr, bias)
    return found


def strip_width(counts: Sequence[int]) -> int:
    """Columns of a strip for groups of so many, each filled up to whole strips: NARROW where that is much less.

    >>> strip_width([500, 40]), strip_width([8] * 8)
    (64, 16)
    """
    wide, narrow = (sum(-(-count // strip) * strip for count in counts) for strip in (STRIP, NARROW))
    return NARROW if wide > 1.5 * narrow else STRIP


def padded(tensor: Tensor) -> Tensor:
    """With zeros after its last dimension, up to a multiple of what is summed at once.

    >>> padded(torch.ones(2, 3)).shape, padded(torch.ones(9)).shape
    (torch.Size([2, 8]), torch.Size([16]))
    """
    return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % LANES))


@dataclass(frozen=True, eq=False, kw_only=True)
class HiddenUnits:
    """Hidden units that read sums of features: ``relu((csr(values) · x) · into + bias) · out + shift``.

    The sums are stored column by column, so many rows at a time that their units stay near: a weight that is left
    multiplies a whole column of them, and a weight that is gone costs nothing.
    """

    into: Tensor  # [features, units]
    bias: Tensor  # [units]
    out: Tensor  # [units, outputs]
    shift: Tensor  # [outputs]

    def prepare(self, csr: CSR, values: Tensor, x: Tensor) -> Callable[[], Tensor]:
        """Sum the features up now; what is left to do comes with each call."""
        at_a_time = max(1, _NEAR // max(1, self.bias.numel()))
        places = range(0, csr.num_rows, at_a_time)
        blocks = [_sums(csr, values, x, low, low + at_a_time).t().contiguous() for low in places]
        into, bias, out, shift = self._into, self.bias.unsqueeze(1), self._out, self.shift

        def run() -> Tensor:
            found = shift.new_empty(csr.num_rows, shift.numel())
            for low, block in zip(places, blocks, strict=True):
                hidden = into(block).add_(bias).relu_()
                torch.add(out(hidden).t(), shift, out=found[low : low + at_a_time])
            return found

        return run

    @cached_property
    def _into(self) -> Callable[[Tensor], Tensor]:
        return _from_left(self.into.t())

    @cached_property
    def _out(self) -> Callable[[Tensor], Tensor]:
        return _from_left(self.out.t())


def _sums(csr: CSR, values: Tensor, x: Tensor, low: int, high: int) -> Tensor:
    """Some rows of ``csr(values) · x``."""
    indptr = csr.indptr[low : high + 1]
    begin, end = int(indptr[0]), int(indptr[-1])
    rows = CSR(indptr=indptr - begin, indices=csr.indices[begin:end], num_columns=csr.num_columns)
    if x.shape[1] > _FEW:
        return spmm(rows, values[begin:end], x)
    return narrow_sums(rows, padded(x.new_zeros(x.shape[1])))(values[begin:end], padded(x))[:, : x.shape[1]]


def _from_left(matrix: Tensor) -> Callable[[Tensor], Tensor]:
    """A matrix times what it is given; of one that is mostly zeros only the others are stored."""
    if int(matrix.count_nonzero()) > _SPARSE_UP_TO * matrix.numel():
        whole = matrix.contiguous()
        return lambda dense: whole @ dense
    rows, columns = matrix.nonzero().unbind(1)
    csr, order = CSR.from_entries(rows, columns, (matrix.shape[0], matrix.shape[1]))
    values = matrix[rows, columns][order]
    return lambda dense: spmm(csr, values, dense)


def times(x: Tensor, weight: Tensor, out: Tensor) -> Tensor:
    """``out + x @ weight`` in place, for tall `x`; of a matrix that is nearly all zeros only the others are read.

    >>> times(torch.ones(2, 3), torch.ones(3, 1), torch.zeros(2, 1)).tolist()
    [[3.0], [3.0]]
    """
    if int(weight.count_nonzero()) > _FEW_LEFT * weight.numel():
        return out.addmm_(x, weight)
    product, at_a_time = _from_left(weight.t()), max(1, _NEAR // max(1, sum(weight.shape)))
    for low in range(0, x.shape[0], at_a_time):
        part = slice(low, low + at_a_time)
        out[part] += product(x[part].t().contiguous()).t()
    return out


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredMatrix:
    """A weight matrix without its empty rows: whole rows, or strips of some columns one after the other.

    >>> weight = torch.zeros(3, 128)
    >>> weight[0, 9], weight[2] = 2, 1
    >>> matrix = StoredMatrix.of(weight, strip=STRIP)
    >>> matrix.place.tolist(), matrix.numbers.shape
    ([0, -1, 1], torch.Size([2, 2, 64]))
    """

    place: Tensor  # int64 [rows], where each row is stored; -1: nowhere, it is empty
    numbers: Tensor  # [stored rows, columns], or [strips, stored rows, columns of a strip]

    @staticmethod
    def of(weight: Tensor, *, strip: int | None = None) -> "StoredMatrix":
        """With a strip's columns, of which there is a multiple; without, whole rows are stored."""
        used = weight.any(1)
        place = torch.where(used, used.cumsum(0) - 1, -1)
        left = weight[used]
        if strip is not None:
            left = left.view(left.shape[0], left.shape[1] // strip, strip).transpose(0, 1)
        return StoredMatrix(place=place, numbers=left.contiguous())

    @property
    def in_strips(self) -> bool:
        """Whether these are strips."""
        return self.numbers.dim() == 3

    def prepare(self, csr: CSR, values: Tensor) -> "StoredRows":
        """Sparse rows that are to be multiplied with this matrix."""
        stored = self.place[csr.indices.long()]
        used = stored >= 0
        shape = csr.num_rows, max(1, self.numbers.shape[-2])
        sorted_, order = CSR.from_entries(csr.rows[used], stored[used], shape)
        return StoredRows(csr=sorted_, values=values[used][order].unsqueeze(1), matrix=self)


@dataclass(frozen=True, eq=False, kw_only=True)
class StoredRows:
    """Sparse rows whose columns are numbered as a `StoredMatrix` stores its rows."""

    csr: CSR
    values: Tensor  # [entries, 1]
    matrix: StoredMatrix

    def take(self, rows: Tensor) -> "StoredRows":
        """Some of these rows."""
        csr, entries = self.csr.take_rows(rows)
        return StoredRows(csr=csr, values=self.values[entries], matrix=self.matrix)

    def append(self, csr: CSR, values: Tensor) -> "StoredRows":
        """These rows, then others."""
        more = self.matrix.prepare(csr, values)
        return StoredRows(
            csr=self.csr.append(more.csr), values=torch.cat([self.values, more.values]), matrix=self.matrix
        )

    def product(self) -> "Product":
        """These rows times the matrix; with strips these rows themselves: who reads a strip multiplies it."""
        return self if self.matrix.in_strips else self._multiply()

    @cached_property
    def _multiply(self) -> Callable[[], Tensor]:
        found: Callable[[], Tensor] = _backend_for(self.values, "numba").product(
            self.csr, self.values, self.matrix.numbers
        )
        return found


Product = Tensor | StoredRows  # of features and a matrix; the latter is yet to be multiplied, strip by strip
