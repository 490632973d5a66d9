"""From two nodes' rows to one number: what answers for pairs after a network's last layer.

Many pairs are decoded some at a time, and for gradients only the nodes' rows are kept: memory does not grow with
pairs × width. No decoder knows a direction: both orders of a pair have the same number.
"""

from abc import ABC, abstractmethod
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.errors import require, unknown_name
from fastglt.models.operations import Linear
from fastglt.models.parts import glorot, zeros
from fastglt.models.recompute import recomputed

_AT_A_TIME = 1 << 16  # pairs
_KEPT = 1 << 23  # numbers of the pairs' products up to which all that gradients need is kept
NAMES = ("mlp", "dot")
ROWS = "rows"  # the units of what it is given


class Decoder(nn.Module, ABC):
    """The number of each pair, [pairs, 1], from the rows of all nodes."""

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What describes it in a network's spec: plain values."""

    @property
    def learnt(self) -> tuple[Tensor, ...]:
        """What `score` is given besides: matrices and biases."""
        return ()

    @property
    def operations(self) -> tuple[Linear, ...]:
        """Its products, a row for each pair."""
        return ()

    @abstractmethod
    def score(self, both: Tensor, *learnt: Tensor) -> Tensor:
        """The number of each pair from the product of its two rows, number by number."""

    def forward(self, h: Tensor, pairs: Tensor) -> Tensor:
        """The number of each pair; pairs are node ids, a row each."""
        if len(pairs) * h.shape[1] <= _KEPT:
            return self._of(pairs, h, *self.learnt)
        parts = torch.split(pairs, _AT_A_TIME)
        return torch.cat([recomputed(partial(self._of, part), h, *self.learnt) for part in parts])

    def _of(self, pairs: Tensor, h: Tensor, *learnt: Tensor) -> Tensor:
        first, second = pairs.unbind(1)
        return self.score(h.index_select(0, first) * h.index_select(0, second), *learnt)


class Dot(Decoder):
    """The inner product of the two rows."""

    @property
    def spec(self) -> dict[str, Any]:
        """Its name."""
        return {"name": "dot"}

    def score(self, both: Tensor, *learnt: Tensor) -> Tensor:
        """Their sum."""
        return both.sum(1, keepdim=True)


class MLP(Decoder):
    """The product of the two rows, number by number, through some linear layers with ReLU between them."""

    def __init__(self, width: int, hidden: int, layers: int, seed: int) -> None:
        super().__init__()
        require("be at least 1", decoder_width=width, decoder_hidden=hidden, decoder_layers=layers)
        self.hidden, self.layers = hidden, layers
        sizes = [width, *[hidden] * (layers - 1), 1]
        self.weights = nn.ParameterList(
            glorot(a, b, seed, "decoder", i) for i, (a, b) in enumerate(pairwise(sizes))
        )
        self.biases = nn.ParameterList(zeros(size) for size in sizes[1:])

    @property
    def spec(self) -> dict[str, Any]:
        """Its name and size; the width of a node's row is the network's."""
        return {"name": "mlp", "hidden": self.hidden, "layers": self.layers}

    @property
    def learnt(self) -> tuple[Tensor, ...]:
        """The matrices, then the biases."""
        return (*self.weights, *self.biases)

    @property
    def operations(self) -> tuple[Linear, ...]:
        """A product for each layer."""
        units = [ROWS, *(f"decoder{i}" for i in range(1, self.layers)), "link"]
        return tuple(
            Linear(
                layer="decoder",
                weight=f"weights.{i}",
                bias=f"biases.{i}",
                reads=units[i],
                writes=units[i + 1],
                per_pair=True,
            )
            for i in range(self.layers)
        )

    def score(self, both: Tensor, *learnt: Tensor) -> Tensor:
        """The last layer's one number."""
        weights, biases = learnt[: self.layers], learnt[self.layers :]
        for i, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            both = torch.addmm(bias, both, weight)
            if i < self.layers - 1:
                both = both.relu()
        return both


def make_decoder(name: str, *, width: int, seed: int, hidden: int | None = None, layers: int = 3) -> Decoder:
    """A decoder by its name, for rows of a width; the MLP is as wide as they are unless told otherwise."""
    if name not in NAMES:
        raise unknown_name("decoder", name, NAMES)
    return Dot() if name == "dot" else MLP(width, hidden or width, layers, seed)
