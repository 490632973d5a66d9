"""A sparse pattern in compressed rows."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fastglt.kernels.table import backend

LARGE = 2**19  # edges or entries from which on patterns are built by counting, and numbered with 32 bits


@dataclass(frozen=True, eq=False, kw_only=True)
class CSR:
    """Where the non-zeros of a matrix are; their values live elsewhere, one per entry, in row order."""

    indptr: Tensor  # int64 [rows + 1]
    indices: Tensor  # int32 [entries], the column of each entry
    num_columns: int

    @staticmethod
    def from_entries(rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> "tuple[CSR, Tensor]":
        """Build from distinct (row, column) pairs; also return the order that sorts them."""
        keys = rows * shape[1] + columns
        sorted_already = bool((keys.diff() > 0).all())  # as they come from a dense matrix
        order = torch.arange(keys.numel(), device=rows.device) if sorted_already else torch.argsort(keys)
        indptr = pointers(torch.bincount(rows, minlength=shape[0]))
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
        if self.indptr.device.type == "cpu":  # PyTorch wakes its threads up, however short the vector is
            return torch.from_numpy(np.repeat(np.arange(self.num_rows), self.row_counts.numpy()))
        return torch.repeat_interleave(self.row_counts)

    def of_rows(self, values: Tensor) -> Tensor:
        """For each entry the number of its row, out of one for each row."""
        if values.device.type == "cpu":
            return torch.from_numpy(np.repeat(values.numpy(), self.row_counts.numpy()))
        return torch.repeat_interleave(values, self.row_counts)

    @cached_property
    def transpose_order(self) -> Tensor:
        """The entries column by column: ``values[transpose_order]`` are the transpose's values."""
        if self._is_large:
            return self._by_column[0]
        if self.indices.device.type == "cpu" and self.num_columns <= 2**16:
            short = self.indices.numpy().astype(np.uint16)  # which NumPy sorts by counting
            return torch.from_numpy(np.argsort(short, kind="stable"))
        return torch.argsort(self.indices, stable=True)

    @cached_property
    def transposed(self) -> "CSR":
        """This pattern's entries with rows and columns exchanged; found once, when first needed."""
        if self._is_large:
            return self._by_column[1]
        counts = torch.bincount(self.indices, minlength=self.num_columns)
        rows = self.rows.index_select(0, self.transpose_order).int()
        return CSR(indptr=pointers(counts), indices=rows, num_columns=self.num_rows)

    @property
    def _is_large(self) -> bool:
        """Whether counting is worth a compiled loop, on a machine that has them."""
        return LARGE <= self.num_entries < 2**31 and self.indices.device.type == "cpu" and backend() != "plain"

    @cached_property
    def _by_column(self) -> "tuple[Tensor, CSR]":
        """`transpose_order` and `transposed` in one pass, the former in the type of `indices`."""
        from fastglt.kernels.patterns import exchanged

        return exchanged(self)

    def select(self, entries: Tensor) -> "CSR":
        """The pattern of some of the entries, which are given in ascending order."""
        return CSR(
            indptr=torch.searchsorted(entries, self.indptr),
            indices=self.indices.index_select(0, entries),
            num_columns=self.num_columns,
        )

    def take_rows(self, rows: Tensor) -> "tuple[CSR, Tensor]":
        """Some rows, in the given order; also return which entries they are."""
        indptr = pointers(self.row_counts[rows])
        moved = self.indptr[rows] - indptr[:-1]
        entries = torch.repeat_interleave(moved, indptr.diff()) + torch.arange(int(indptr[-1]), device=rows.device)
        return CSR(indptr=indptr, indices=self.indices[entries], num_columns=self.num_columns), entries

    def strip(self, start: int, stop: int) -> "CSR":
        """The rows from one to before another, whose entries are not copied."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - first
        return CSR(indptr=indptr, indices=self.indices[first:last], num_columns=self.num_columns)

    def append(self, other: "CSR") -> "CSR":
        """These rows, then another pattern's."""
        indptr = torch.cat([self.indptr, self.indptr[-1] + other.indptr[1:]])
        return CSR(indptr=indptr, indices=torch.cat([self.indices, other.indices]), num_columns=self.num_columns)

    def to(self, device: torch.device) -> "CSR":
        """The pattern on another device."""
        return CSR(indptr=self.indptr.to(device), indices=self.indices.to(device), num_columns=self.num_columns)


def true_indices(chosen: Tensor) -> Tensor:
    """Where a boolean vector is true; NumPy finds that several times as fast as PyTorch."""
    if chosen.device.type == "cpu":
        return torch.from_numpy(np.flatnonzero(chosen.numpy()))
    return chosen.nonzero().squeeze(1)


def pointers(counts: Tensor) -> Tensor:
    """Where each row begins, and where the last one ends, from how many entries rows have."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
