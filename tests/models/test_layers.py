"""What is known of layers by their kind."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from fastglt.graphs.features import FeatureRows, Features
from fastglt.graphs.messages import Hop
from fastglt.kernels import spmm
from fastglt.models import Backbone
from fastglt.models.layers import looks_at_all_nodes, weight_matrices
from fastglt.models.parts import glorot, product
from tests.helpers import house, randn


class Everything(nn.Module):
    """One layer of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = glorot(3, 4, 0)
        self.slim = glorot(1, 4, 0)
        self.attention = glorot(2, 2, 0)
        self.bias_by_head = glorot(2, 2, 0)
        self.vector = nn.Parameter(torch.ones(4))
        self.linear = nn.Linear(4, 4)
        self.tied = self.linear
        self.embedding = nn.Embedding(3, 4)
        self.norms = nn.ModuleList(
            [nn.BatchNorm1d(4), nn.LayerNorm((2, 2)), nn.GroupNorm(2, 4), pyg.GraphNorm(4), pyg.BatchNorm(4)]
        )
        self.parametrized = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))


def test_weight_matrices_are_told_by_kind_and_not_by_name() -> None:
    found = [name for name, _, _ in weight_matrices(Everything())]
    assert found == ["matrix", "slim", "linear.weight"]


LOOKS: list[tuple[nn.Module, bool, bool]] = [  # in training, in evaluation
    (nn.BatchNorm1d(4), True, False),
    (nn.BatchNorm1d(4, track_running_stats=False), True, True),
    (pyg.InstanceNorm(4), True, True),
    (pyg.GraphNorm(4), True, True),
    (pyg.PairNorm(), True, True),
    (pyg.LayerNorm(4), True, True),
    (pyg.LayerNorm(4, mode="node"), False, False),
    (pyg.BatchNorm(4), False, False),  # PyTorch's, which is inside, does
    (nn.LayerNorm(4), False, False),
    (nn.Linear(4, 4), False, False),
]


@pytest.mark.parametrize(("layer", "training", "evaluation"), LOOKS)
def test_norms_over_nodes_look_at_all_of_them(layer: nn.Module, training: bool, evaluation: bool) -> None:
    assert looks_at_all_nodes(layer.train()) == training
    assert looks_at_all_nodes(layer.eval()) == evaluation


class Normed(Backbone):
    """One hop, then a norm."""

    name = "normed"

    def __init__(self, norm: nn.Module) -> None:
        super().__init__(5, 4, 4, dropout=0.0, seed=0, num_layers=1)
        self.weight = glorot(5, 4, 0)
        self.norm = norm

    def outputs(self, x: FeatureRows, hops: Sequence[Hop], soft_edge_mask: Tensor | None) -> Tensor:
        (hop,) = hops
        values = hop.weigh(hop.symmetric_norm, soft_edge_mask)
        out: Tensor = self.norm(spmm(hop.csr, values, product(x, self.weight)))
        return out


KINDS: dict[str, Any] = {
    "batch": lambda: nn.BatchNorm1d(4),
    "batch without memory": lambda: nn.BatchNorm1d(4, track_running_stats=False),
    "PyG's batch": lambda: pyg.BatchNorm(4),
    "graph": lambda: pyg.GraphNorm(4),
    "pair": pyg.PairNorm,
    "PyG's layer": lambda: pyg.LayerNorm(4),
    "layer": lambda: nn.LayerNorm(4),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_nodes_have_the_outputs_they_have_among_all(kind: str, training: bool) -> None:
    network, graph, x = Normed(KINDS[kind]()).train(training), house(), Features(randn(7, 5))
    nodes = torch.tensor([5, 1])
    torch.testing.assert_close(network(x, graph, None, nodes), network(x, graph)[nodes])
    assert network.prunable == ("weight",)
