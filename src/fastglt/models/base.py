"""What a network must offer to be pruned, and what our own backbones share."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fastglt.errors import require
from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.graph import Graph
from fastglt.kernels import matmul
from fastglt.system.seeds import derive, uniform


class Network(nn.Module, ABC):
    """A network that can be pruned: it runs on a prepared graph, with or without soft edge scores."""

    @property
    @abstractmethod
    def prunable(self) -> tuple[str, ...]:
        """The names of the parameters that are weight matrices to prune."""

    @property
    def weight_shapes(self) -> dict[str, torch.Size]:
        """The shape of each prunable matrix, in order."""
        return {name: self.get_parameter(name).shape for name in self.prunable}

    @property
    def spared(self) -> int:
        """How many weights of other matrices are never pruned because the caller left them out."""
        return 0

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What describes the network in a ticket; plain JSON values."""

    @abstractmethod
    def forward(
        self, x: Features, graph: Graph, soft_edge_mask: Tensor | None = None, nodes: Tensor | None = None
    ) -> Tensor:
        """Class scores for some nodes (None: for all); a soft edge score multiplies messages along its edge."""


@dataclass(frozen=True, kw_only=True)
class Linear:
    """For cost and analysis: a product with a weight matrix, from some units to others."""

    layer: str
    weight: str
    reads: str  # the units its rows stand for: "features", or what another product writes
    writes: str  # the units its columns stand for
    bias: str | None = None

    @property
    def on_features(self) -> bool:
        """The input is the data's features, which may be sparse."""
        return self.reads == "features"

    @property
    def parameters(self) -> tuple[str, ...]:
        """Everything it reads that is learnt."""
        return (self.weight,) if self.bias is None else (self.weight, self.bias)


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """For cost and analysis: messages of some width along edges, and from each node to itself."""

    layer: str
    width: int
    parameters: tuple[str, ...]
    heads: int = 1  # coefficients of each message


@dataclass(frozen=True, kw_only=True)
class Attention:
    """For cost and analysis: the scores of each edge's two ends for each head, and their softmax."""

    layer: str
    product: Linear  # what it looks at
    parameters: tuple[str, str]  # a vector for each head: of the sender, of the receiver


Operation = Linear | Aggregation | Attention


class Backbone(Network):
    """One of our own architectures: two layers on sparse kernels, initial weights decided by a seed."""

    name: ClassVar[str]

    def __init__(self, in_channels: int, hidden: int, out_channels: int, *, dropout: float, seed: int) -> None:
        super().__init__()
        require("be at least 1", in_channels=in_channels, hidden=hidden, out_channels=out_channels)
        require("lie in [0, 1)", dropout=dropout)
        self.in_channels, self.hidden, self.out_channels = in_channels, hidden, out_channels
        self.dropout, self.seed = dropout, seed

    @property
    def spec(self) -> dict[str, Any]:
        """The recipe: built again from it, a backbone has bit for bit the same initial weights."""
        return {
            "name": self.name,
            "in_channels": self.in_channels,
            "hidden": self.hidden,
            "out_channels": self.out_channels,
            "dropout": self.dropout,
            "seed": self.seed,
        }

    @property
    def prunable(self) -> tuple[str, ...]:
        """Every weight matrix, in the network's order."""
        names = (name for name, _ in self.named_parameters())
        return tuple(name for name in names if any(part.startswith("weight") for part in name.split(".")))

    @property
    @abstractmethod
    def operations(self) -> tuple[Operation, ...]:
        """What a forward pass computes; each parameter is named once."""


def product(x: FeatureRows | Tensor, weight: Tensor) -> Tensor:
    """The data's features or a layer's output times a weight matrix."""
    return matmul(x, weight) if isinstance(x, Tensor) else x @ weight


def glorot(rows: int, columns: int, seed: int, *purpose: object) -> nn.Parameter:
    """A weight matrix [rows, columns] from Glorot's uniform distribution."""
    return nn.Parameter(uniform((rows, columns), (6 / (rows + columns)) ** 0.5, derive(seed, "init", *purpose)))


def zeros(*shape: int) -> nn.Parameter:
    """A parameter that starts at zero."""
    return nn.Parameter(torch.zeros(*shape, dtype=torch.float32))
