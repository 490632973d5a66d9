"""The kernels with PyTorch's own sparse products where it has one, else with gather and scatter."""

import warnings

import torch
from torch import Tensor

from fastglt.kernels._plain import (
    activation_backward,
    adam,
    adam_product,
    attention,
    attention_backward,
    dropout,
    extremes,
    finish,
    finish_means,
    head_dots,
    head_dots_backward,
    matmul,
    narrow_sums,
    product,
    projection,
    softmax_lost_means,
    softmax_means_backward,
    softmax_shares,
    softmax_shares_backward,
    weigh,
    weigh_backward,
    zero_outside,
)
from fastglt.kernels.csr import CSR
from fastglt.kernels.drop import Drop

__all__ = [
    "activation_backward",
    "adam",
    "adam_product",
    "aggregate",
    "attention",
    "attention_backward",
    "dropout",
    "extremes",
    "head_dots",
    "head_dots_backward",
    "matmul",
    "narrow_sums",
    "product",
    "projection",
    "sddmm",
    "softmax_lost_means",
    "softmax_means",
    "softmax_means_backward",
    "softmax_shares",
    "softmax_shares_backward",
    "spmm",
    "weigh",
    "weigh_backward",
    "zero_outside",
]

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)  # said once, here
    torch.eye(1).to_sparse_csr()


def spmm(csr: CSR, values: Tensor, dense: Tensor) -> Tensor:
    """See `fastglt.kernels.spmm`."""
    parts = dense.chunk(values.shape[1], dim=1)
    products = [_matrix(csr, column) @ part for column, part in zip(values.unbind(1), parts, strict=True)]
    return products[0] if len(products) == 1 else torch.cat(products, dim=1)


def aggregate(
    csr: CSR, values: Tensor, dense: Tensor, bias: Tensor | None, activation: str, drop: Drop | None
) -> Tensor:
    """See `fastglt.kernels.aggregate`."""
    return finish(spmm(csr, values, dense), bias, activation, drop)


def softmax_means(csr: CSR, values: Tensor, both: Tensor, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """See `_plain`."""
    return finish_means(spmm(csr, values.unsqueeze(1), both), least)


def sddmm(csr: CSR, left: Tensor, right: Tensor, heads: int) -> Tensor:
    """One dot product per entry and head."""
    pattern = _matrix(csr, left.new_ones(csr.num_entries))
    parts = zip(left.chunk(heads, dim=1), right.chunk(heads, dim=1), strict=True)
    return torch.stack([torch.sparse.sampled_addmm(pattern, a, b.t(), beta=0).values() for a, b in parts], dim=1)


def _matrix(csr: CSR, values: Tensor) -> Tensor:
    shape = (csr.num_rows, csr.num_columns)
    return torch.sparse_csr_tensor(csr.narrow_indptr, csr.indices, values, shape, check_invariants=False)
