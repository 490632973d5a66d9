"""What backbones are made of: products, and parameters with their initial numbers."""

import torch
from torch import Tensor, nn

from fastglt.graphs.features import FeatureRows
from fastglt.kernels import matmul
from fastglt.system.seeds import derive, uniform


def product(x: FeatureRows | Tensor, weight: Tensor) -> Tensor:
    """The data's features or a layer's output times a weight matrix."""
    return matmul(x, weight) if isinstance(x, Tensor) else x @ weight


def glorot(rows: int, columns: int, seed: int, *purpose: object) -> nn.Parameter:
    """A weight matrix [rows, columns] from Glorot's uniform distribution."""
    return nn.Parameter(uniform((rows, columns), (6 / (rows + columns)) ** 0.5, derive(seed, "init", *purpose)))


def zeros(*shape: int) -> nn.Parameter:
    """A parameter that starts at zero."""
    return nn.Parameter(torch.zeros(*shape, dtype=torch.float32))
