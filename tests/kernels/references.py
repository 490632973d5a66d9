"""Sparse patterns that are hard in some way, and what each kernel should give, written out without sparsity."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, leaky_relu

from fastglt.kernels import CSR
from tests.helpers import randn


def _hub() -> Tensor:
    pattern = torch.eye(9, dtype=torch.bool)
    pattern[0], pattern[:, 0] = True, True
    return pattern


def _empty_rows() -> Tensor:
    pattern = randn(6, 6, seed=3) > 0
    pattern[[0, 3, 5]] = False
    pattern[:, 2] = False
    return pattern


PATTERNS = {
    "hub": _hub(),
    "empty rows": _empty_rows(),
    "rectangular": randn(4, 9, seed=4) > 0,
    "one node": torch.ones(1, 1, dtype=torch.bool),
    "no edges": torch.zeros(3, 3, dtype=torch.bool),
}
ACTIVATIONS = {"none": torch.clone, "relu": torch.relu, "elu": elu}
by_pattern = pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS.keys())
by_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


def csr_of(pattern: Tensor) -> CSR:
    """The sparse form of a boolean matrix."""
    rows, columns = pattern.nonzero().unbind(1)
    return CSR.from_entries(rows, columns, (pattern.shape[0], pattern.shape[1]))[0]


def dense_product(pattern: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    """What `spmm` should give: each head's matrix written out, times that head's columns."""
    parts = dense.chunk(values.shape[1], dim=1)
    zero = torch.zeros(pattern.shape, dtype=values.dtype)
    matrices = [zero.masked_scatter(pattern, head) for head in values.unbind(1)]
    return torch.cat([matrix @ part for matrix, part in zip(matrices, parts, strict=True)], dim=1)


def dense_aggregate(
    pattern: Tensor, values: Tensor, dense: Tensor, bias: Tensor, activation: str, factor: Tensor
) -> Tensor:
    """What `aggregate` should give; `factor` is what dropout multiplies with."""
    return ACTIVATIONS[activation](dense_product(pattern, values, dense) + bias) * factor


def dense_attention(pattern: Tensor, target: Tensor, source: Tensor, slope: float) -> Tensor:
    """What `attention` should give, one row after the other."""
    rows = [
        leaky_relu(target[i] + source[row], slope).softmax(0) for i, row in enumerate(pattern) if bool(row.any())
    ]
    return torch.cat(rows) if rows else (target[:0] + source[:0])


def dropout_factor(rows: int, width: int, p: float, seed: int) -> Tensor:
    """What `dropout` should multiply with after `torch.manual_seed(seed)`, in Python's whole numbers."""
    torch.manual_seed(seed)
    key, threshold = int(torch.randint(2**62, ())), round(p * 2**32)
    hashes = torch.tensor([[_hash(key, row, column) for column in range(width)] for row in range(rows)])
    return torch.where(hashes >= threshold, 1 / (1 - threshold / 2**32), 0.0).view(rows, width)


def _hash(key: int, row: int, column: int) -> int:
    """Splitmix64 of (key, row), whose halves are mixed with the column by a 32-bit finaliser."""
    word, byte4 = 2**64 - 1, 2**32 - 1
    z = (key + row * 0x9E3779B97F4A7C15) & word
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & word
    z = (z ^ z >> 27) * 0x94D049BB133111EB & word
    z ^= z >> 31
    u = (column * 0x9E3779B9 + z) & byte4
    u = (u ^ u >> 16) * 0x7FEB352D & byte4
    u = (u ^ z >> 32 ^ u >> 15) * 0x846CA68B & byte4
    return u ^ u >> 16
