"""What backbones are made of: products, and parameters with their initial numbers."""

import torch
from torch import Tensor, nn

from fastglt.graphs.features import FeatureRows
from fastglt.kernels import matmul
from fastglt.system.seeds import derive, uniform

_FEW = 0.25  # share of a layer's units up to which it pays to compute them alone


def product(x: FeatureRows | Tensor, weight: Tensor) -> Tensor:
    """The data's features or a layer's output times a weight matrix."""
    return matmul(x, weight) if isinstance(x, Tensor) else x @ weight


def few_units(read: Tensor) -> Tensor | None:
    """The numbers of the units that are read, where they are few enough for a pass to be worth picking them."""
    found = read.nonzero().squeeze(1)
    return found if 0 < found.numel() <= _FEW * read.numel() else None


def columns_of(weight: Tensor, units: Tensor | None) -> Tensor:
    """A matrix, or a vector, with the columns of some units alone; None: the whole."""
    return weight if units is None else weight.index_select(-1, units)


def rows_of(weight: Tensor, units: Tensor | None) -> Tensor:
    """A matrix with the rows of some units alone; None: the whole."""
    return weight if units is None else weight.index_select(0, units)


def glorot(rows: int, columns: int, seed: int, *purpose: object) -> nn.Parameter:
    """A weight matrix [rows, columns] from Glorot's uniform distribution."""
    return nn.Parameter(uniform((rows, columns), (6 / (rows + columns)) ** 0.5, derive(seed, "init", *purpose)))


def zeros(*shape: int) -> nn.Parameter:
    """A parameter that starts at zero."""
    return nn.Parameter(torch.zeros(*shape, dtype=torch.float32))
