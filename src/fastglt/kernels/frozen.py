"""Products for inference, where nothing is learnt: no gradients, and weights in whichever layout is fastest.

What never changes is given first and made ready once; the rest comes with each call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fastglt.kernels import _server
from fastglt.kernels.csr import CSR

Sums = Callable[[Tensor, Tensor], Tensor]  # of a matrix's rows, from values [entries, heads] and the matrix
LANES = 8  # columns of few that are summed at once
AT_ONCE = 16  # columns of many that are added at once: rows of a multiple of that leave no rest


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
