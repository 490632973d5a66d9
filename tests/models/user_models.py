"""Users' models that several tests of PyG networks share."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

from tests.toy_data import (
    CLASSES,
    FEATURES,
    NODES,
    USER_MODELS,
    Layer,
    TakesData,
    basic,
    per_edge,
)

IN, OUT = FEATURES, CLASSES


def mlp(*norms: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(IN, 8), *norms, nn.ReLU(), nn.Linear(8, OUT))


def degrees() -> Tensor:
    return torch.bincount(torch.full((NODES,), 4))


PLAIN: dict[str, Callable[[], Any]] = {
    **USER_MODELS,
    "GATv2": lambda: basic(pyg.GAT, heads=2, v2=True),
    "PNA": lambda: basic(pyg.PNA, aggregators=["mean", "max"], scalers=["identity"], deg=degrees()),
    "EdgeCNN": lambda: basic(pyg.EdgeCNN),
    "jumping knowledge": lambda: basic(pyg.GCN, jk="lstm"),
    "takes data": TakesData,
    "Transformer": lambda: Layer(pyg.TransformerConv(IN, OUT, heads=2, concat=False, beta=True)),
    "several aggregations": lambda: Layer(pyg.SAGEConv(IN, OUT, aggr=["mean", "max", "std"])),
    "GEN": lambda: Layer(pyg.GENConv(IN, OUT)),
    "Chebyshev": lambda: Layer(pyg.ChebConv(IN, OUT, K=3)),
    "ARMA": lambda: Layer(pyg.ARMAConv(IN, OUT, num_stacks=2, num_layers=2)),
    "Sequential": lambda: pyg.Sequential(
        "x, edge_index",
        [
            (pyg.GCNConv(IN, 8), "x, edge_index -> x"),
            nn.ReLU(inplace=True),
            (pyg.SAGEConv(8, OUT), "x, edge_index -> x"),
        ],
    ),
}

EDGY: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "GINE": (lambda: Layer(pyg.GINEConv(mlp(nn.BatchNorm1d(8)), edge_dim=4)), {"edge_attr": per_edge(4)}),
    "GAT": (lambda: Layer(pyg.GATConv(IN, OUT, edge_dim=4)), {"edge_attr": per_edge(4)}),
    "Transformer": (lambda: Layer(pyg.TransformerConv(IN, OUT, edge_dim=4)), {"edge_attr": per_edge(4)}),
    "NN": (lambda: Layer(pyg.NNConv(IN, OUT, nn.Linear(4, IN * OUT))), {"edge_attr": per_edge(4)}),
    "weighted GCN": (lambda: basic(pyg.GCN), {"edge_weight": per_edge()}),
    "weighted graph conv": (lambda: Layer(pyg.GraphConv(IN, OUT)), {"edge_weight": per_edge()}),
    "ignores edge_attr": (lambda: basic(pyg.GraphSAGE), {"edge_attr": per_edge(4)}),
}


class Single(nn.Module):
    """A convolution that subclasses treat in their own way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GCNConv(IN, OUT)

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.conv(x, edge_index)
