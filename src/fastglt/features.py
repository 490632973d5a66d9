"""Node features in the form that makes the first product fast."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels import CSR, spmm

SPARSE_BELOW = 0.15  # density under which the sparse product, forward and backward, wins on two cores
_REMEMBERED = 8  # sets of nodes whose rows are kept


class Features:
    """A constant matrix [nodes, features] that multiplies a weight matrix: ``features @ weight``.

    >>> features = Features(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
    >>> (features @ torch.tensor([[1.0], [3.0]])).tolist()
    [[6.0], [0.0]]
    """

    def __init__(self, dense: Tensor) -> None:
        self.dense = dense
        self.num_nodes, self.num_features = dense.shape
        self.num_nonzero = int(torch.count_nonzero(dense))
        self.is_sparse = self.num_nonzero < SPARSE_BELOW * dense.numel()
        self._parts: dict[int, tuple[Tensor, FeatureRows]] = {}

    @cached_property
    def csr(self) -> CSR:
        """Where the non-zeros are."""
        rows, columns = self.dense.nonzero().unbind(1)
        return CSR.from_entries(rows, columns, (self.num_nodes, self.num_features))[0]

    @cached_property
    def values(self) -> Tensor:
        """The non-zeros, row by row."""
        return self.dense[self.csr.rows, self.csr.indices]

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the numbers."""
        digest = hashlib.sha256(f"fastglt-features-1 {self.num_nodes} {self.num_features}".encode())
        for part, kind in ((self.csr.indptr, "<i8"), (self.csr.indices, "<i4"), (self.values, "<f4")):
            digest.update(np.ascontiguousarray(part.cpu().numpy(), dtype=kind).tobytes())
        return digest.hexdigest()

    def of(self, nodes: Tensor | None) -> "FeatureRows":
        """The rows of some nodes (None: of all), prepared once for each set of nodes."""
        key = 0 if nodes is None else id(nodes)
        if key not in self._parts:
            if len(self._parts) >= _REMEMBERED:
                self._parts.pop(next(iter(self._parts)))
            kept = torch.empty(0) if nodes is None else nodes  # stays alive, so its id stays its own
            self._parts[key] = (kept, self._rows(nodes))
        return self._parts[key][1]

    def __matmul__(self, weight: Tensor) -> Tensor:
        return self.of(None) @ weight

    def to(self, device: torch.device | str) -> "Features":
        """The features on another device."""
        return self if self.dense.device == torch.device(device) else Features(self.dense.to(device))

    def _rows(self, nodes: Tensor | None) -> "FeatureRows":
        if not self.is_sparse:
            return FeatureRows(dense=self.dense if nodes is None else self.dense[nodes])
        if nodes is None:
            return FeatureRows(csr=self.csr, values=self.values)
        csr, entries = self.csr.take_rows(nodes)
        return FeatureRows(csr=csr, values=self.values[entries])


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureRows:
    """Rows of features as a dense or a sparse matrix, whichever multiplies faster."""

    dense: Tensor | None = None
    csr: CSR | None = None
    values: Tensor | None = None

    @property
    def width(self) -> float:
        """Multiplications that one row and one output column cost, on average."""
        if self.csr is not None:
            return self.csr.num_entries / max(1, self.csr.num_rows)
        assert self.dense is not None
        return self.dense.shape[1]

    def __matmul__(self, weight: Tensor) -> Tensor:
        if self.csr is not None and self.values is not None:
            return spmm(self.csr, self.values, weight)
        assert self.dense is not None
        return self.dense @ weight
