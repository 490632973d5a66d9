"""A small PyG `Data`, users' models of several kinds, and a quick search, for the tests of whole runs."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from fastglt import Budget, Ticket, find_ticket
from tests.helpers import both_ways, columns, randn

QUICK = Budget(oneshot_epochs=2, denoise_epochs=4, interval=2, lr=0.01)
NODES, FEATURES, CLASSES = 30, 6, 3
PAIRS = [(i, (i + step) % NODES) for step in (1, 7) for i in range(NODES)]  # 60 edges


def toy_data(*, loops: bool = False, directed: bool = False, **extra: Any) -> Data:
    """Thirty nodes on a ring with chords, three classes; on request, self-loops in between or arrows only."""
    nodes = torch.arange(NODES)
    index = columns(PAIRS) if directed else both_ways(PAIRS)
    if loops:
        index = torch.cat([index[:, :5], columns([(2, 2), (9, 9)]), index[:, 5:]], dim=1)
    y = nodes % CLASSES
    return Data(
        x=F.one_hot(y, CLASSES).repeat(1, FEATURES // CLASSES) + randn(NODES, FEATURES),
        edge_index=index,
        y=y,
        train_mask=nodes < 12,
        val_mask=(nodes >= 12) & (nodes < 21),
        test_mask=nodes >= 21,
        **extra,
    )


def toy_file(path: Path, **changes: Tensor) -> Path:
    """The toy data as a .npz file without a split, in a folder that is made; some of its arrays others."""
    data = toy_data()
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"edge_index": data.edge_index, "x": data.x, "y": data.y, **changes}
    np.savez(path, **{name: value.numpy() for name, value in arrays.items()})
    return path


def per_edge(*width: int, seed: int = 5) -> Tensor:
    """Positive numbers for each column of the undirected toy data, the same in both directions."""
    return randn(len(PAIRS), *width, seed=seed).abs().repeat(2, *(1 for _ in width))


def seeded(build: Any, *arguments: Any, seed: int = 0, **keywords: Any) -> Any:
    """Something built with random numbers of its own."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(*arguments, **keywords)


class HandWritten(pyg.MessagePassing):  # type: ignore[misc]
    """Neighbours averaged, a bare parameter as weight."""

    def __init__(self) -> None:
        super().__init__(aggr="mean")
        self.weight = nn.Parameter(torch.randn(FEATURES, CLASSES))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x @ self.weight)  # type: ignore[no-any-return]

    def message(self, x_j: Tensor) -> Tensor:
        return x_j


class TakesData(nn.Module):
    """A model of a whole `data`, with batch norm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(FEATURES, 8), pyg.GCNConv(8, CLASSES)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, data: Data) -> Tensor:
        h = self.norm(self.first(data.x, data.edge_index)).relu()
        h = F.dropout(h, 0.5, training=self.training)
        return self.second(h, data.edge_index).log_softmax(-1)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """One convolution and a read-out; edge_weight and edge_attr are passed on."""

    def __init__(self, conv: nn.Module, width: int = CLASSES) -> None:
        super().__init__()
        self.conv, self.readout = conv, nn.Linear(width, CLASSES)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        given = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        keywords = {name: value for name, value in given.items() if value is not None}
        return self.readout(self.conv(x, edge_index, **keywords))  # type: ignore[no-any-return]


def basic(kind: Any, **keywords: Any) -> nn.Module:
    """A two-layer model from torch_geometric.nn."""
    return kind(FEATURES, 8, num_layers=2, out_channels=CLASSES, **keywords)  # type: ignore[no-any-return]


USER_MODELS: dict[str, Any] = {
    "GCN": lambda: basic(pyg.GCN, dropout=0.5),
    "GraphSAGE": lambda: basic(pyg.GraphSAGE),
    "GIN": lambda: basic(pyg.GIN, norm="batch_norm"),
    "GAT": lambda: basic(pyg.GAT, heads=2, dropout=0.3),
    "hand-written": HandWritten,
}


def quick_ticket(model: Any = "gcn", data: Data | None = None, **settings: Any) -> Ticket:
    """A ticket from a search of six epochs: 30 % of the edges and half of the weights removed."""
    given = {"graph_sparsity": 0.3, "weight_sparsity": 0.5, "hidden": 8, "budget": QUICK, **settings}
    return find_ticket(model, toy_data() if data is None else data, **given)
