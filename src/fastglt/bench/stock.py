"""The peer: our three networks built from PyG's own layers, trained the way PyG's examples do.

It knows nothing of our kernels, so that a process can run it as any PyG script would.
"""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, elu

from fastglt.data.base import quiet_import
from fastglt.errors import unknown_name

with quiet_import():
    from torch_geometric.data import Data
    from torch_geometric.nn import GATConv, GCNConv, GINConv
    from torch_geometric.utils import remove_self_loops, to_torch_csr_tensor

FORMS = ("edge_index", "csr")  # how PyG may be given a graph


class StockNetwork(nn.Module):
    """Two PyG layers. It serves one graph, since GCN's keep the normalised graph they have seen first."""

    adds_loops: ClassVar[bool]  # whether the layers add self-loops of their own
    names: dict[str, str]  # each parameter of our backbone, and its counterpart here

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout

    def load_weights(self, backbone: nn.Module) -> None:
        """Take the weights of the backbone that this is the twin of."""
        theirs = dict(self.named_parameters())
        with torch.no_grad():
            for name, parameter in backbone.named_parameters():
                theirs[self.names[name]].copy_(shaped_like(parameter, theirs[self.names[name]]))

    def adjacency(self, data: "Data", form: str) -> Tensor:
        """The graph as PyG takes it: `edge_index`, or a matrix whose row i holds the nodes that i hears."""
        if form not in FORMS:
            raise unknown_name("form of a graph", form, FORMS)
        edge_index: Tensor = data.edge_index
        if form == "edge_index":
            return edge_index
        if self.adds_loops:  # with a matrix, GCNConv would count a loop of the data twice
            edge_index, _ = remove_self_loops(edge_index)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse (CSR tensor support|invariant checks)")
            return to_torch_csr_tensor(edge_index.flip(0), size=(data.num_nodes, data.num_nodes))  # type: ignore[no-any-return]


class StockGCN(StockNetwork):
    """Two GCN layers, ReLU and dropout between them; the normalisation is computed once."""

    adds_loops = True

    def __init__(self, in_channels: int, hidden: int, out_channels: int, *, dropout: float) -> None:
        super().__init__(dropout)
        self.conv1 = GCNConv(in_channels, hidden, cached=True)
        self.conv2 = GCNConv(hidden, out_channels, cached=True)
        self.names = _of_layers({"weight": "lin.weight", "bias": "bias"})

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """Outputs for all nodes."""
        h = dropout(self.conv1(x, graph).relu(), self.dropout, self.training)
        return self.conv2(h, graph)  # type: ignore[no-any-return]


class StockGIN(StockNetwork):
    """Two GIN layers; the prediction averages layer 2 with a linear read-out of layer 1."""

    adds_loops = False

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float,
        depth: int = 1,
        aggregation: str = "mean",
    ) -> None:
        super().__init__(dropout)
        self.conv1 = GINConv(_mlp(in_channels, hidden, depth), train_eps=True, aggr=aggregation)
        self.conv2 = GINConv(_mlp(hidden, out_channels, depth), train_eps=True, aggr=aggregation)
        self.readout = nn.Linear(hidden, out_channels)
        layer = {"eps": "eps", "weight": "nn.0.weight", "bias": "nn.0.bias"}
        for deeper in range(depth - 1):
            layer[f"weights.{deeper}"] = f"nn.{2 * deeper + 2}.weight"
            layer[f"biases.{deeper}"] = f"nn.{2 * deeper + 2}.bias"
        self.names = _of_layers(layer) | {"weight_readout": "readout.weight", "bias_readout": "readout.bias"}

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """Outputs for all nodes."""
        h = dropout(self.conv1(x, graph).relu(), self.dropout, self.training)
        return (self.readout(h) + self.conv2(h, graph)) / 2  # type: ignore[no-any-return]


class StockGAT(StockNetwork):
    """Two GAT layers: several heads, ELU and dropout, then one head of classes."""

    adds_loops = True

    def __init__(
        self,
        in_channels: int,
        hidden: int,
        out_channels: int,
        *,
        dropout: float,
        heads: int = 8,
        slope: float = 0.2,
    ) -> None:
        super().__init__(dropout)
        common = {"dropout": dropout, "negative_slope": slope}
        self.conv1 = GATConv(in_channels, hidden, heads, **common)
        self.conv2 = GATConv(heads * hidden, out_channels, 1, **common)
        self.names = _of_layers(
            {"weight": "lin.weight", "attention_source": "att_src", "attention_target": "att_dst", "bias": "bias"}
        )

    def forward(self, x: Tensor, graph: Tensor) -> Tensor:
        """Outputs for all nodes."""
        h = dropout(elu(self.conv1(x, graph)), self.dropout, self.training)
        return self.conv2(h, graph)  # type: ignore[no-any-return]


STOCK: dict[str, type[StockNetwork]] = {"gcn": StockGCN, "gin": StockGIN, "gat": StockGAT}
_NOT_PYGS = ("name", "seed", "prune_attention")  # what a backbone's spec says that a stock network has no use for


def build_stock(spec: Mapping[str, Any]) -> StockNetwork:
    """The twin of the backbone with that spec, with weights of its own.

    >>> build_stock({"name": "gcn", "in_channels": 4, "hidden": 8, "out_channels": 2, "dropout": 0.5, "seed": 1})
    StockGCN(
      (conv1): GCNConv(4, 8)
      (conv2): GCNConv(8, 2)
    )
    """
    if spec["name"] not in STOCK:
        raise unknown_name("model", spec["name"], STOCK)
    return STOCK[spec["name"]](**{name: value for name, value in spec.items() if name not in _NOT_PYGS})


class StockTraining:
    """A stock network, its optimiser and its data, as in PyG's examples; `data` lies on the device already."""

    def __init__(self, network: StockNetwork, data: "Data", form: str, *, lr: float, weight_decay: float) -> None:
        self.network, self.data = network.to(data.x.device), data
        self.graph = network.adjacency(data, form)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=lr, weight_decay=weight_decay)

    def run_epoch(self) -> tuple[float, float]:
        """One step on the training nodes, then the accuracy on validation and test."""
        data = self.data
        self.network.train()
        self.optimizer.zero_grad()
        logits = self.network(data.x, self.graph)
        cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return self.evaluate()

    @torch.no_grad()
    def evaluate(self) -> tuple[float, float]:
        """The accuracy on validation and test."""
        data = self.data
        self.network.eval()
        predicted = self.network(data.x, self.graph).argmax(-1)
        right = [int((predicted[mask] == data.y[mask]).sum()) for mask in (data.val_mask, data.test_mask)]
        return right[0] / max(1, int(data.val_mask.sum())), right[1] / max(1, int(data.test_mask.sum()))


def shaped_like(ours: Tensor, theirs: Tensor) -> Tensor:
    """A parameter of ours as its counterpart keeps it: matrices transposed, attention vectors one level deeper."""
    return ours.T if ours.dim() == theirs.dim() == 2 else ours.view(theirs.shape)


def _of_layers(names: Mapping[str, str]) -> dict[str, str]:
    return {f"layer{i}.{ours}": f"conv{i}.{theirs}" for i in (1, 2) for ours, theirs in names.items()}


def _mlp(in_channels: int, out_channels: int, depth: int) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Linear(in_channels, out_channels)]
    for _ in range(depth - 1):
        parts += [nn.ReLU(), nn.Linear(out_channels, out_channels)]
    return nn.Sequential(*parts)
