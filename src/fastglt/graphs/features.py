"""Node features in the form that makes the first product fast."""

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from fastglt.kernels import CSR, spmm, table

_REMEMBERED = 8  # sets of nodes whose rows are kept


class Features:
    """A constant matrix [nodes, features] that multiplies a weight matrix: ``features @ weight``.

    It may be given dense, or sparse in compressed rows, sorted and without stored zeros.

    >>> features = Features(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
    >>> (features @ torch.tensor([[1.0], [3.0]])).tolist()
    [[6.0], [0.0]]
    """

    def __init__(self, matrix: Tensor, *, nonzero: int | None = None, fingerprint: str | None = None) -> None:
        """How many numbers are not zero, and the fingerprint, are found unless they are known."""
        self._given = matrix
        self.num_nodes, self.num_features = matrix.shape
        given_sparse = matrix.layout == torch.sparse_csr
        if nonzero is None:
            nonzero = matrix.values().numel() if given_sparse else int(torch.count_nonzero(matrix))
        self.num_nonzero = nonzero
        if fingerprint is not None:
            self.__dict__["fingerprint"] = fingerprint
        self._parts: dict[int, tuple[Tensor, FeatureRows]] = {}
        self._reuse = _ProductReuse()

    @cached_property
    def is_sparse(self) -> bool:
        """Whether products are taken with the non-zeros alone; decided when the first one is asked for."""
        density = self.num_nonzero / max(1, self.num_nodes * self.num_features)
        return table().choose("features", density) == "sparse"

    @property
    def device(self) -> torch.device:
        """Where the numbers are."""
        return self._given.device

    @cached_property
    def dense(self) -> Tensor:
        """The whole matrix, zeros written out."""
        return self._given.to_dense()

    @cached_property
    def csr(self) -> CSR:
        """Where the non-zeros are."""
        if self._given.layout == torch.sparse_csr:
            indptr, indices = self._given.crow_indices().long(), self._given.col_indices().int()
            return CSR(indptr=indptr, indices=indices, num_columns=self.num_features)
        rows, columns = self.dense.nonzero().unbind(1)
        return CSR.from_entries(rows, columns, (self.num_nodes, self.num_features))[0]

    @cached_property
    def values(self) -> Tensor:
        """The non-zeros, row by row."""
        if self._given.layout == torch.sparse_csr:
            return self._given.values()
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

    def append(self, rows: Tensor) -> "Features":
        """With more nodes, given dense, after the last."""
        if not self.is_sparse:
            return Features(torch.cat([self.dense, rows]))
        new = Features(rows)
        return _from_csr(self.csr.append(new.csr), torch.cat([self.values, new.values]))

    def take(self, nodes: Tensor) -> "Features":
        """The features of some nodes alone."""
        if self._given.layout != torch.sparse_csr:
            return Features(self._given[nodes])
        csr, entries = self.csr.take_rows(nodes)
        return _from_csr(csr, self.values[entries])

    def strip(self, start: int, stop: int) -> "FeatureRows":
        """The rows from one node to before another; dense ones are not copied."""
        if not self.is_sparse:
            return DenseRows(self.dense[start:stop])
        first, last = int(self.csr.indptr[start]), int(self.csr.indptr[stop])
        csr = self.csr.strip(start, stop)
        nodes = torch.arange(start, stop, device=self.device)
        return SparseRows(nodes=nodes, csr=csr, values=self.values[first:last], reuse=_ProductReuse())

    def to(self, device: torch.device | str) -> "Features":
        """The features on another device."""
        return self if self.device == torch.device(device) else Features(self._given.to(device))

    def _rows(self, nodes: Tensor | None) -> "FeatureRows":
        if not self.is_sparse:
            return DenseRows(self.dense if nodes is None else self.dense[nodes])
        if nodes is None:
            nodes = torch.arange(self.num_nodes, device=self.device)
        csr, entries = self.csr.take_rows(nodes)
        return SparseRows(nodes=nodes, csr=csr, values=self.values[entries], reuse=self._reuse)


def _from_csr(csr: CSR, values: Tensor) -> Features:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        shape = (csr.num_rows, csr.num_columns)
        matrix = torch.sparse_csr_tensor(csr.indptr, csr.indices.long(), values, shape, check_invariants=False)
    return Features(matrix)


@dataclass(frozen=True, eq=False)
class DenseRows:
    """Rows of features as a dense matrix."""

    matrix: Tensor

    @property
    def width(self) -> float:
        """Multiplications that one row and one output column cost."""
        return self.matrix.shape[1]

    def __matmul__(self, weight: Tensor) -> Tensor:
        return self.matrix @ weight


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseRows:
    """Rows of features as a sparse matrix."""

    nodes: Tensor
    csr: CSR
    values: Tensor
    reuse: "_ProductReuse"

    @property
    def width(self) -> float:
        """Multiplications that one row and one output column cost, on average."""
        return self.csr.num_entries / max(1, self.csr.num_rows)

    def __matmul__(self, weight: Tensor) -> Tensor:
        return self.reuse.multiply(self, weight)

    def multiply(self, weight: Tensor, known: Tensor | None = None) -> Tensor:
        """The product; one that is known already is only given its gradient."""
        return spmm(self.csr, self.values, weight, known=known)

    def take(self, rows: Tensor) -> "SparseRows":
        """Some of these rows."""
        csr, entries = self.csr.take_rows(rows)
        return replace(self, nodes=self.nodes[rows], csr=csr, values=self.values[entries])


FeatureRows = DenseRows | SparseRows  # whichever multiplies faster


class _ProductReuse:
    """Evaluation leaves the product that the next training step needs, as long as the weight stays the same.

    A row of a sparse product is the same bits whichever rows are computed with it, so only time is saved.
    """

    def __init__(self) -> None:
        self._wanted: SparseRows | None = None  # the rows that training asked for last
        self._left: tuple[Tensor, int, Tensor, int] | None = None  # weight and product of all rows, with versions
        self._plan: _Plan | None = None

    def multiply(self, rows: SparseRows, weight: Tensor) -> Tensor:
        """The product of rows and weight; under gradients, what evaluation left is taken."""
        trained = weight.requires_grad and weight.is_leaf
        if torch.is_grad_enabled():
            return rows.multiply(weight, self._take(rows, weight) if trained else None)
        if trained:
            self._left = None  # makes room
        product = rows.multiply(weight)
        if trained and self._wanted is not None:
            if self._plan is None or self._plan.have is not rows or self._plan.want is not self._wanted:
                self._plan = _Plan.make(rows, self._wanted)
            self._left = (weight, weight._version, product, product._version)
        return product

    def _take(self, rows: SparseRows, weight: Tensor) -> Tensor | None:
        """The product, picked only now: evaluation needs the room for its hidden units."""
        left, self._left, self._wanted = self._left, None, rows
        if left is None or self._plan is None or self._plan.want is not rows:
            return None
        known, version, product, unchanged = left
        if known is not weight or version != weight._version or unchanged != product._version:
            return None
        return self._plan.pick(product, weight)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Plan:
    """Where rows that are wanted stand among those that we have, and the few that are lacking."""

    have: SparseRows
    want: SparseRows
    places: Tensor
    lacking: Tensor
    rest: SparseRows  # the lacking rows

    @staticmethod
    def make(have: SparseRows, want: SparseRows) -> "_Plan":
        size = int(torch.cat([have.nodes, want.nodes]).max()) + 1
        place = have.nodes.new_full((size,), -1)
        place[have.nodes] = torch.arange(have.nodes.numel(), device=place.device)
        places = place[want.nodes]
        lacking = (places < 0).nonzero().squeeze(1)
        return _Plan(have=have, want=want, places=places.clamp(min=0), lacking=lacking, rest=want.take(lacking))

    @torch.no_grad()
    def pick(self, product: Tensor, weight: Tensor) -> Tensor:
        """The wanted rows of a product of the rows we have."""
        if self.have is self.want:  # as of a large graph, where training and evaluation need all
            return product
        picked = product.index_select(0, self.places)
        if self.lacking.numel():
            picked[self.lacking] = self.rest.multiply(weight)
        return picked
