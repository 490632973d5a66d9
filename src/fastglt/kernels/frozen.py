"""Products for inference, where nothing is learnt: no gradients, and weights in whichever layout is fastest.

What never changes is given first and made ready once; the rest comes with each call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fastglt.kernels import _server, spmm
from fastglt.kernels.csr import CSR

Sums = Callable[[Tensor, Tensor], Tensor]  # of a matrix's rows, from values [entries, heads] and the matrix
LANES = 8  # columns of few that are summed at once
AT_ONCE = 16  # columns of many that are added at once: rows of a multiple of that leave no rest
_FEW = 4 * LANES  # columns, up to which they are summed LANES at a time
_NEAR = 2**20  # numbers of hidden units that are held at a time
_SPARSE_UP_TO = 0.25  # share of weights that are left, up to which only those are read


def projection(
    csr: CSR,
    bias: Tensor,
    weight: Tensor,
    shift: Tensor,
    *,
    activation: str,
    head: int = 0,
    starts: Tensor | None = None,
) -> Sums:
    """``activation(csr(values) · dense + bias) · weight + shift`` in one pass over the rows.

    The weight has few columns and is `padded`. The dense columns from starts[h] to starts[h + 1] take the column
    head + h of the values; None: all of them take that of the head.
    """
    if starts is None:
        starts = torch.tensor([0, bias.numel()])
    found: Sums = _server(bias, "numba").projection(csr, head, starts, bias, activation, weight, shift)
    return found


def narrow_sums(csr: CSR, bias: Tensor) -> Sums:
    """``csr(values) · dense + bias`` for a `padded` matrix of few columns."""
    found: Sums = _server(bias, "numba").narrow_sums(csr, bias)
    return found


def padded(tensor: Tensor) -> Tensor:
    """With zeros after its last dimension, up to a multiple of what is summed at once.

    >>> padded(torch.ones(2, 3)).shape, padded(torch.ones(9)).shape
    (torch.Size([2, 8]), torch.Size([16]))
    """
    return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % LANES))


@dataclass(frozen=True, eq=False, kw_only=True)
class Units:
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


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitMatrix:
    """A weight matrix whose fuller rows are stored whole, the others by their blocks; empty rows are left out.

    A block is LANES numbers side by side, not all of them zero. A whole row is added with its sum in registers, and
    of a row with few blocks only those are read.

    >>> weight = torch.zeros(3, 24)
    >>> weight[0, 9], weight[2] = 2, 1
    >>> matrix = SplitMatrix.of(weight, most=1)
    >>> matrix.place.tolist(), matrix.whole.shape, matrix.rest.indices.tolist(), matrix.blocks.tolist()
    ([1, -1, 0], torch.Size([1, 24]), [1], [[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    """

    columns: int
    place: Tensor  # int64 [rows], where each row is stored: whole ones first; -1: nowhere, it is empty
    whole: Tensor  # [whole rows, columns and their padding]
    rest: CSR  # the other rows: which of the blocks they have
    blocks: Tensor  # [blocks, LANES], their numbers

    @staticmethod
    def of(weight: Tensor, *, most: int) -> "SplitMatrix":
        """Rows of at most so many blocks are stored by them."""
        parts = padded(weight).view(weight.shape[0], -1, LANES)
        counts = parts.any(-1).sum(1)
        whole, blocked = (
            (counts > most).nonzero().squeeze(1),
            ((counts > 0) & (counts <= most)).nonzero().squeeze(1),
        )
        place = torch.full_like(counts, -1)
        place[whole] = torch.arange(whole.numel(), device=weight.device)
        place[blocked] = whole.numel() + torch.arange(blocked.numel(), device=weight.device)
        rows, columns = parts[blocked].any(-1).nonzero().unbind(1)
        rest, _ = CSR.from_entries(rows, columns, (blocked.numel(), parts.shape[1]))
        return SplitMatrix(
            columns=weight.shape[1],
            place=place,
            whole=parts[whole].flatten(1),
            rest=rest,
            blocks=parts[blocked][rows, columns],
        )

    @property
    def num_rows(self) -> int:
        """How many rows are stored."""
        return self.whole.shape[0] + self.rest.num_rows

    def prepare(self, csr: CSR, values: Tensor) -> "SplitRows":
        """Sparse rows that are to be multiplied with this matrix."""
        stored = self.place[csr.indices.long()]
        used = stored >= 0
        sorted_, order = CSR.from_entries(csr.rows[used], stored[used], (csr.num_rows, max(1, self.num_rows)))
        whole = torch.bincount(sorted_.rows[sorted_.indices < self.whole.shape[0]], minlength=csr.num_rows)
        return SplitRows(csr=sorted_, values=values[used][order], whole=whole, matrix=self)


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitRows:
    """Sparse rows whose columns are numbered as a `SplitMatrix` stores its rows."""

    csr: CSR
    values: Tensor
    whole: Tensor  # int64 [rows], how many of each row's entries meet whole rows; they come first
    matrix: SplitMatrix

    def take(self, rows: Tensor) -> "SplitRows":
        """Some of these rows."""
        csr, entries = self.csr.take_rows(rows)
        return SplitRows(csr=csr, values=self.values[entries], whole=self.whole[rows], matrix=self.matrix)

    def append(self, csr: CSR, values: Tensor) -> "SplitRows":
        """These rows, then others."""
        more = self.matrix.prepare(csr, values)
        return SplitRows(
            csr=self.csr.append(more.csr),
            values=torch.cat([self.values, more.values]),
            whole=torch.cat([self.whole, more.whole]),
            matrix=self.matrix,
        )

    def product(self) -> Tensor:
        """These rows times the matrix."""
        return self._multiply()

    @cached_property
    def _multiply(self) -> Callable[[], Tensor]:
        matrix, split = self.matrix, self.csr.indptr[:-1] + self.whole
        found: Callable[[], Tensor] = _server(self.values, "numba").mixed(
            self.csr, self.values, split, matrix.whole, matrix.rest, matrix.blocks, matrix.columns
        )
        return found
