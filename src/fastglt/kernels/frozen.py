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
) -> Sums:
    """``activation(csr(values) · dense + bias) · weight + shift`` in one pass over the rows.

    The weight has few columns and is `padded`. Of the values, one head's column is taken.
    """
    found: Sums = _server(bias, "numba").projection(csr, head, bias, activation, weight, shift)
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
    """A weight matrix whose fuller rows are stored whole, the others by their non-zeros; empty rows are left out.

    A whole row is added along the dense axis, as fast as memory allows; of a row with few numbers it is faster to
    scatter those.

    >>> weight = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 4.0, 5.0]])
    >>> matrix = SplitMatrix.of(weight, most=1)
    >>> matrix.place.tolist(), matrix.block.tolist(), matrix.weights.tolist()
    ([1, -1, 0], [[3.0, 4.0, 5.0]], [2.0])
    """

    place: Tensor  # int64 [rows], where each row is stored: whole ones first; -1: nowhere, it is empty
    block: Tensor  # [whole rows, columns]
    rest: CSR  # the other rows
    weights: Tensor  # their numbers

    @staticmethod
    def of(weight: Tensor, *, most: int) -> "SplitMatrix":
        """Rows of at most so many non-zeros are stored by them."""
        counts = torch.count_nonzero(weight, dim=1)
        whole, scattered = (
            (counts > most).nonzero().squeeze(1),
            ((counts > 0) & (counts <= most)).nonzero().squeeze(1),
        )
        place = torch.full_like(counts, -1)
        place[whole] = torch.arange(whole.numel())
        place[scattered] = whole.numel() + torch.arange(scattered.numel())
        rows, columns = weight[scattered].nonzero().unbind(1)
        rest, _ = CSR.from_entries(rows, columns, (scattered.numel(), weight.shape[1]))
        return SplitMatrix(
            place=place, block=weight[whole].contiguous(), rest=rest, weights=weight[scattered][rows, columns]
        )

    @property
    def num_rows(self) -> int:
        """How many rows are stored."""
        return self.block.shape[0] + self.rest.num_rows

    def prepare(self, csr: CSR, values: Tensor) -> "SplitRows":
        """Sparse rows that are to be multiplied with this matrix."""
        stored = self.place[csr.indices.long()]
        used = stored >= 0
        sorted_, order = CSR.from_entries(csr.rows[used], stored[used], (csr.num_rows, max(1, self.num_rows)))
        whole = torch.bincount(sorted_.rows[sorted_.indices < self.block.shape[0]], minlength=csr.num_rows)
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
            self.csr, self.values, split, matrix.block, matrix.rest, matrix.weights
        )
        return found
