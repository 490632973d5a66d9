"""Node features in the form that makes the first product fast."""

import hashlib
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels import CSR, spmm

SPARSE_BELOW = 0.15  # density under which the sparse product wins (see benchmarks/)


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

    @property
    def is_sparse(self) -> bool:
        """Whether products go through the sparse form."""
        return self.num_nonzero < SPARSE_BELOW * self.dense.numel()

    @property
    def row_width(self) -> float:
        """Multiplications that one node and one output column cost, on average."""
        return self.num_nonzero / max(1, self.num_nodes) if self.is_sparse else self.num_features

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

    def __matmul__(self, weight: Tensor) -> Tensor:
        return spmm(self.csr, self.values, weight) if self.is_sparse else self.dense @ weight

    def to(self, device: torch.device | str) -> "Features":
        """The features on another device."""
        return self if self.dense.device == torch.device(device) else Features(self.dense.to(device))
