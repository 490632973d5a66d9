"""A sparse pattern in compressed rows, readable along its rows and along its columns."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class CSR:
    """Where the non-zeros of a matrix are; their values live elsewhere, one per entry, in row order.

    The transposed pattern is kept beside it: entry ``t`` of the transpose is entry ``t_order[t]``
    here, so ``values[t_order]`` are the transpose's values.
    """

    indptr: Tensor  # int64 [rows + 1]
    indices: Tensor  # int32 [entries], the column of each entry
    t_indptr: Tensor  # int64 [columns + 1]
    t_indices: Tensor  # int32 [entries], the row of each entry, column by column
    t_order: Tensor  # int64 [entries]

    @staticmethod
    def from_entries(rows: Tensor, columns: Tensor, shape: tuple[int, int]) -> "tuple[CSR, Tensor]":
        """Build from distinct (row, column) pairs; also return the order that sorts them."""
        order = torch.argsort(rows * shape[1] + columns)
        rows, columns = rows[order], columns[order]
        t_order = torch.argsort(columns, stable=True)
        csr = CSR(
            indptr=_pointers(rows, shape[0]),
            indices=columns.int(),
            t_indptr=_pointers(columns, shape[1]),
            t_indices=rows[t_order].int(),
            t_order=t_order,
        )
        return csr, order

    @property
    def num_rows(self) -> int:
        """How many rows."""
        return self.indptr.numel() - 1

    @property
    def num_columns(self) -> int:
        """How many columns."""
        return self.t_indptr.numel() - 1

    @property
    def num_entries(self) -> int:
        """How many non-zeros."""
        return self.indices.numel()

    @cached_property
    def row_counts(self) -> Tensor:
        """Entries in each row."""
        return self.indptr.diff()

    @cached_property
    def rows(self) -> Tensor:
        """The row of each entry."""
        return torch.repeat_interleave(self.row_counts)

    @cached_property
    def transposed(self) -> "CSR":
        """The same entries with rows and columns exchanged."""
        back = torch.empty_like(self.t_order)
        back[self.t_order] = torch.arange(self.num_entries, device=back.device)
        return CSR(
            indptr=self.t_indptr,
            indices=self.t_indices,
            t_indptr=self.indptr,
            t_indices=self.indices,
            t_order=back,
        )

    def select(self, keep: Tensor) -> "CSR":
        """The pattern without the entries where `keep` is false."""
        moved_to = keep.cumsum(0) - 1
        t_keep = keep[self.t_order]
        return CSR(
            indptr=_shrink(self.indptr, keep),
            indices=self.indices[keep],
            t_indptr=_shrink(self.t_indptr, t_keep),
            t_indices=self.t_indices[t_keep],
            t_order=moved_to[self.t_order[t_keep]],
        )

    def to(self, device: torch.device) -> "CSR":
        """The pattern on another device."""
        return CSR(
            indptr=self.indptr.to(device),
            indices=self.indices.to(device),
            t_indptr=self.t_indptr.to(device),
            t_indices=self.t_indices.to(device),
            t_order=self.t_order.to(device),
        )


def _pointers(sorted_or_not: Tensor, size: int) -> Tensor:
    counts = torch.bincount(sorted_or_not, minlength=size)
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _shrink(indptr: Tensor, keep: Tensor) -> Tensor:
    return torch.cat([indptr.new_zeros(1), keep.cumsum(0)])[indptr]
