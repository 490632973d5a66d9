"""How the features and the first weights are stored: measured on this machine, on these very numbers."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from typing import Protocol

import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.features import Features
from fastglt.kernels import CSR
from fastglt.kernels.frozen import SplitMatrix

_REPEATS = 5
_MOST = (8, 16, 32, 64, 128)  # blocks of a row that is not stored whole
_DENSE_FROM = 0.02  # share of non-zeros among the features from which dense rows are worth a trial


class Rows(Protocol):
    """The features of some nodes, ready to be multiplied."""

    def take(self, rows: Tensor) -> "Rows":
        """Some of them."""

    def append(self, csr: CSR, values: Tensor) -> "Rows":
        """Those of more nodes, given by their non-zeros, after them."""

    def product(self) -> Tensor:
        """Times the matrix."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DenseRows:
    """The columns that the matrix has weights for, zeros written out."""

    x: Tensor
    weight: Tensor
    used: Tensor  # which columns of the features these are

    def take(self, rows: Tensor) -> "DenseRows":
        """Some of the rows."""
        return replace(self, x=self.x[rows])

    def append(self, csr: CSR, values: Tensor) -> "DenseRows":
        """These rows, then more."""
        more = values.new_zeros(csr.num_rows, csr.num_columns)
        more[csr.rows, csr.indices.long()] = values
        return replace(self, x=torch.cat([self.x, more[:, self.used]]))

    def product(self) -> Tensor:
        """Times the matrix."""
        return self.x @ self.weight


def store(x: Features, weight: Tensor, layout: str) -> Rows:
    """Features and a weight matrix in a layout: "dense", "whole rows", or "blocks 32" for rows of at most 32.

    Features that no weight reads are left out in all of them.
    """
    kind, _, most = layout.partition(" ")
    if layout == "dense":
        used = weight.any(1).nonzero().squeeze(1)
        return DenseRows(x=x.dense[:, used].contiguous(), weight=weight[used].contiguous(), used=used)
    if layout == "whole rows":
        return SplitMatrix.of(weight, most=0).prepare(x.csr, x.values)
    if kind == "blocks" and most.isdigit():
        return SplitMatrix.of(weight, most=int(most)).prepare(x.csr, x.values)
    raise InputError(f"a layout must be dense, whole rows or blocks N (got '{layout}')")


def fastest(x: Features, weight: Tensor) -> tuple[str, dict[str, float]]:
    """The layout with the shortest median of a few interleaved trials, and each one's milliseconds."""
    density = x.num_nonzero / max(1, x.num_nodes * x.num_features)
    names = ["whole rows", *(f"blocks {most}" for most in _MOST)]
    if density >= _DENSE_FROM:
        names.append("dense")
    stored = {name: store(x, weight, name) for name in names}
    for rows in stored.values():
        rows.product()  # compiled and in the cache
    spent: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_REPEATS):
        for name, rows in stored.items():
            spent[name].append(_seconds(rows.product, x.device))
    medians = {name: 1000 * median(found) for name, found in spent.items()}
    return min(medians, key=lambda name: medians[name]), medians


def _seconds(work: Callable[[], Tensor], device: torch.device) -> float:
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - began
