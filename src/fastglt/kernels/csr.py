"""A sparse pattern in compressed rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class CSR:
    """Where the non-zeros of a matrix are; their values live elsewhere, one per entry, in row order."""

    indptr: Tensor  # int64 [rows + 1]
    indices: Tensor  # int32 [entries], the column of each entry
    num_columns: int

    @staticmethod
    def from_entries(rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> "tuple[CSR, Tensor]":
        """Build from distinct (row, column) pairs; also return the order that sorts them."""
        places = rows * shape[1] + columns
        sorted_already = bool((places.diff() > 0).all())  # as they come from a dense matrix
        order = torch.arange(places.numel(), device=rows.device) if sorted_already else torch.argsort(places)
        indptr = _pointers(torch.bincount(rows, minlength=shape[0]))
        return CSR(indptr=indptr, indices=columns[order].int(), num_columns=shape[1]), order

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.indptr.numel() - 1

    @property
    def num_entries(self) -> int:
        """How many non-zeros."""
        return self.indices.numel()

    @cached_property
    def arrays(self) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]":
        """`indptr` and `indices` for compiled loops."""
        return self.indptr.numpy(), self.indices.contiguous().numpy()

    @cached_property
    def narrow_indptr(self) -> Tensor:
        """`indptr` in the type of `indices`."""
        return self.indptr.int()

    @cached_property
    def row_counts(self) -> Tensor:
        """Entries in each row."""
        return self.indptr.diff()

    @cached_property
    def rows(self) -> Tensor:
        """The row of each entry."""
        return torch.repeat_interleave(self.row_counts)

    @cached_property
    def transpose_order(self) -> Tensor:
        """The entries column by column: ``values[transpose_order]`` are the transpose's values."""
        return torch.argsort(self.indices, stable=True)

    @cached_property
    def transposed(self) -> "CSR":
        """The same entries with rows and columns exchanged; found once, when first needed."""
        counts = torch.bincount(self.indices, minlength=self.num_columns)
        rows = self.rows[self.transpose_order].int()
        return CSR(indptr=_pointers(counts), indices=rows, num_columns=self.num_rows)

    def select(self, keep: Tensor) -> "CSR":
        """The pattern without the entries where the boolean `keep` is false."""
        before = torch.cat([keep.new_zeros(1, dtype=torch.int64), keep.cumsum(0)])
        return CSR(indptr=before[self.indptr], indices=self.indices[keep], num_columns=self.num_columns)

    def take_rows(self, rows: Tensor) -> "tuple[CSR, Tensor]":
        """Some rows, in the given order; also return which entries they are."""
        indptr = _pointers(self.row_counts[rows])
        moved = self.indptr[rows] - indptr[:-1]
        entries = torch.repeat_interleave(moved, indptr.diff()) + torch.arange(int(indptr[-1]), device=rows.device)
        return CSR(indptr=indptr, indices=self.indices[entries], num_columns=self.num_columns), entries

    def append(self, other: "CSR") -> "CSR":
        """These rows, then another pattern's."""
        indptr = torch.cat([self.indptr, self.indptr[-1] + other.indptr[1:]])
        return CSR(indptr=indptr, indices=torch.cat([self.indices, other.indices]), num_columns=self.num_columns)

    def to(self, device: torch.device) -> "CSR":
        """The pattern on another device."""
        return CSR(indptr=self.indptr.to(device), indices=self.indices.to(device), num_columns=self.num_columns)


def _pointers(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
