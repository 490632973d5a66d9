"""The users' models of the matrix, and the data they are tried on."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.utils import to_dense_adj

from tests.helpers import both_ways, columns, randn

NODES, IN, OUT, WIDE = 24, 5, 3, 4
PAIRS = [(i, (i + step) % 20) for step in (1, 6) for i in range(20)]  # 40 edges; nodes 20 to 23 have none
DEGREES = torch.tensor([4, 0, 0, 0, 20])


def data_of(kind: str = "undirected", **fields: Any) -> Data:
    """A small graph of some kind, three classes; four of its nodes are isolated."""
    index = columns(PAIRS) if kind == "directed" else both_ways(PAIRS)
    if "loops" in kind:
        index = torch.cat([index[:, :9], columns([(2, 2), (9, 9), (21, 21)]), index[:, 9:]], dim=1)
    if "shuffled" in kind:
        index = index[:, torch.randperm(index.shape[1], generator=torch.Generator().manual_seed(1))]
    if "sorted" in kind:
        index = index[:, torch.argsort(index[1], stable=True)]
    nodes = torch.arange(NODES)
    return Data(
        x=nn.functional.one_hot(nodes % OUT, IN) + randn(NODES, IN, seed=4),
        edge_index=index,
        y=nodes % OUT,
        train_mask=nodes < 9,
        val_mask=(nodes >= 9) & (nodes < 15),
        test_mask=nodes >= 15,
        **{name: make(index) for name, make in fields.items()},
    )


def number(index: Tensor) -> Tensor:
    """A positive number for each column, the same in both directions."""
    return numbers(1)(index).squeeze(1)


def numbers(width: int) -> Callable[[Tensor], Tensor]:
    """Several for each column."""

    def make(index: Tensor) -> Tensor:
        table = randn(NODES * NODES, width, seed=6).abs() % 1 + 0.1
        return table[index.min(0).values * NODES + index.max(0).values]

    return make


def relation(index: Tensor) -> Tensor:
    """0 or 1 for each column."""
    return (index.sum(0) % 2).long()


def groups(_: Tensor) -> Tensor:
    """Two groups of nodes."""
    return torch.arange(NODES) // 12


def places(_: Tensor) -> Tensor:
    """Three numbers for each node."""
    return randn(NODES, 3, seed=8)


class Model(nn.Module):
    """Linear, a layer of PyG, linear; what forward takes beside x and edge_index is given to the layer."""

    def __init__(self, layer: Any, width: int = WIDE) -> None:
        super().__init__()
        self.first, self.layer, self.last = nn.Linear(IN, WIDE), layer, nn.Linear(width, OUT)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index))  # type: ignore[no-any-return]


class Weighed(Model):
    """With edge_weight, if there is one."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index, edge_weight))  # type: ignore[no-any-return]


class Attributed(Model):
    """With edge_attr, which it needs."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:  # type: ignore[override]
        return self.last(self.layer(self.first(x), edge_index, edge_attr))  # type: ignore[no-any-return]


class Typed(Model):
    """With edge_type, a field of the data's own."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:  # type: ignore[override]
        return self.last(self.layer(self.first(x), edge_index, edge_type))  # type: ignore[no-any-return]


class Started(Model):
    """A layer that looks back at where it began."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.first(x).relu()
        return self.last(self.layer(h, h, edge_index))  # type: ignore[no-any-return]


class Placed(Model):
    """With the places of nodes."""

    def forward(self, x: Tensor, edge_index: Tensor, pos: Tensor) -> Tensor:  # type: ignore[override]
        return self.last(self.layer(self.first(x), pos, edge_index))  # type: ignore[no-any-return]


class Normed(Model):
    """A convolution and a norm over groups of nodes, if there are some."""

    def __init__(self, norm: Any) -> None:
        super().__init__(pyg.GCNConv(WIDE, WIDE))
        self.norm = norm

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        h = self.layer(self.first(x), edge_index)
        return self.last(self.norm(h, batch).relu())  # type: ignore[no-any-return]


class Grouped(Model):
    """A layer that attends within groups."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index, batch=batch))  # type: ignore[no-any-return]


class Encoded(Model):
    """With an encoding of each node, if there is one."""

    def __init__(self) -> None:
        super().__init__(pyg.SAGEConv(WIDE, WIDE))
        self.read = nn.Linear(3, WIDE)

    def forward(self, x: Tensor, edge_index: Tensor, pe: Tensor | None = None) -> Tensor:
        h = self.first(x) if pe is None else self.first(x) + self.read(pe)
        return self.last(self.layer(h, edge_index))  # type: ignore[no-any-return]


class OfData(Model):
    """Takes the data as a whole."""

    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return self.last(self.layer(self.first(data.x), data.edge_index, data.edge_weight))  # type: ignore[no-any-return]


class Jumping(nn.Module):
    """Two convolutions and what PyG has to join them."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.one, self.two = pyg.GCNConv(IN, WIDE), pyg.GraphConv(WIDE, WIDE)
        self.jump = pyg.JumpingKnowledge(mode, channels=WIDE, num_layers=2)
        self.last = nn.Linear(2 * WIDE if mode == "cat" else WIDE, OUT)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        one = self.one(x, edge_index).relu()
        return self.last(self.jump([one, self.two(one, edge_index).relu()]))  # type: ignore[no-any-return]


def mlp(before: int = WIDE, after: int = WIDE) -> nn.Module:
    return nn.Sequential(nn.Linear(before, 6), nn.ReLU(), nn.Linear(6, after))


def ready(kind: Any, **options: Any) -> Any:
    """A ready model of PyG."""
    return kind(IN, WIDE, num_layers=2, out_channels=OUT, **options)


def pna(**options: Any) -> Any:
    return pyg.PNAConv(WIDE, WIDE, ["mean", "max"], ["identity", "amplification"], DEGREES, **options)


def sage(aggr: str) -> Any:
    return Model(pyg.SAGEConv(WIDE, WIDE, aggr=aggr))


def normed(norm: Any) -> Any:
    return Normed(norm() if norm in BARE else norm(WIDE))


def deep(block: str) -> Any:
    layer = pyg.DeepGCNLayer(pyg.GENConv(WIDE, WIDE), nn.LayerNorm(WIDE), nn.ReLU(), block=block)
    return Model(layer, width=2 * WIDE if block == "dense" else WIDE)


def in_sequence() -> Any:
    layers = [
        (pyg.GCNConv(IN, WIDE), "x, edge_index -> x"),
        nn.ReLU(),
        (pyg.GATConv(WIDE, OUT), "x, edge_index -> x"),
    ]
    return pyg.Sequential("x, edge_index", layers)


BARE = (pyg.PairNorm, pyg.MeanSubtractionNorm)  # norms without weights

# name: (model, kind of graph, fields of the data)
CASES: dict[str, tuple[Callable[[], Any], str, dict[str, Any]]] = {}


def _add(name: str, build: Callable[[], Any], kind: str = "undirected", **fields: Any) -> None:
    CASES[name] = (build, kind, fields)


_add("GCNConv", lambda: Model(pyg.GCNConv(WIDE, WIDE)))
_add("GCNConv improved", lambda: Model(pyg.GCNConv(WIDE, WIDE, improved=True)))
for _aggr in ("mean", "sum", "max", "min", "std", "median", "softmax", "powermean"):
    _add(f"SAGEConv {_aggr}", partial(sage, _aggr))
_add("SAGEConv several", lambda: Model(pyg.SAGEConv(WIDE, WIDE, aggr=["mean", "max", "var"])))
_add("SAGEConv lstm", lambda: Model(pyg.SAGEConv(WIDE, WIDE, aggr="lstm")), "sorted")
_add("SAGEConv lstm, loops", lambda: Model(pyg.SAGEConv(WIDE, WIDE, aggr="lstm")), "loops sorted")
_add("GATConv", lambda: Model(pyg.GATConv(WIDE, WIDE, heads=2, concat=False)))
_add("GATv2Conv", lambda: Model(pyg.GATv2Conv(WIDE, WIDE, heads=2, concat=False)))
_add("SuperGATConv", lambda: Model(pyg.SuperGATConv(WIDE, WIDE, heads=2, concat=False)))
_add("TransformerConv", lambda: Model(pyg.TransformerConv(WIDE, WIDE, heads=2, concat=False)))
_add("GINConv", lambda: Model(pyg.GINConv(mlp(), train_eps=True)))
_add("GENConv", lambda: Model(pyg.GENConv(WIDE, WIDE, learn_t=True)))
_add("ChebConv", lambda: Model(pyg.ChebConv(WIDE, WIDE, K=3)))
_add("TAGConv", lambda: Model(pyg.TAGConv(WIDE, WIDE)))
_add("SGConv", lambda: Model(pyg.SGConv(WIDE, WIDE, K=2)))
_add("SSGConv", lambda: Model(pyg.SSGConv(WIDE, WIDE, alpha=0.1, K=2)))
_add("APPNP", lambda: Model(pyg.APPNP(K=2, alpha=0.1)))
_add("ARMAConv", lambda: Model(pyg.ARMAConv(WIDE, WIDE, num_stacks=2, num_layers=2)))
_add("GraphConv", lambda: Model(pyg.GraphConv(WIDE, WIDE)))
_add("LEConv", lambda: Model(pyg.LEConv(WIDE, WIDE)))
_add("ClusterGCNConv", lambda: Model(pyg.ClusterGCNConv(WIDE, WIDE)))
_add("FeaStConv", lambda: Model(pyg.FeaStConv(WIDE, WIDE, heads=2)))
_add("ResGatedGraphConv", lambda: Model(pyg.ResGatedGraphConv(WIDE, WIDE)))
_add("PNAConv", lambda: Model(pna()))
_add("FiLMConv", lambda: Model(pyg.FiLMConv(WIDE, WIDE)))
_add("EdgeConv", lambda: Model(pyg.EdgeConv(mlp(2 * WIDE), aggr="max")))
_add("MFConv", lambda: Model(pyg.MFConv(WIDE, WIDE)))
_add("GeneralConv", lambda: Model(pyg.GeneralConv(WIDE, WIDE, attention=True)))
_add("GatedGraphConv", lambda: Model(pyg.GatedGraphConv(WIDE, num_layers=2)))
_add("AntiSymmetricConv", lambda: Model(pyg.AntiSymmetricConv(WIDE, num_iters=2)))
_add("GCN2Conv", lambda: Started(pyg.GCN2Conv(WIDE, alpha=0.1)))
_add("FAConv", lambda: Started(pyg.FAConv(WIDE)))
_add("MixHopConv", lambda: Model(pyg.MixHopConv(WIDE, WIDE), width=3 * WIDE))
_add("LGConv", lambda: Model(pyg.LGConv()))
_add("AGNNConv", lambda: Model(pyg.AGNNConv()))
_add("EGConv", lambda: Model(pyg.EGConv(WIDE, WIDE, num_heads=2, num_bases=2)))
_add("SimpleConv", lambda: Model(pyg.SimpleConv(aggr="mean", combine_root="cat"), width=2 * WIDE))
_add("PointTransformerConv", lambda: Placed(pyg.PointTransformerConv(WIDE, WIDE)), pos=places)
_add("PointNetConv", lambda: Placed(pyg.PointNetConv(mlp(WIDE + 3))), pos=places)
_add("GPSConv", lambda: Grouped(pyg.GPSConv(WIDE, pyg.GINConv(mlp()), heads=2, norm=None)), batch=groups)
_add("GINEConv", lambda: Attributed(pyg.GINEConv(mlp(), edge_dim=2)), edge_attr=numbers(2))
_add("NNConv", lambda: Attributed(pyg.NNConv(WIDE, WIDE, mlp(2, WIDE * WIDE))), edge_attr=numbers(2))
_add("CGConv", lambda: Attributed(pyg.CGConv(WIDE, dim=2)), edge_attr=numbers(2))
_add("PDNConv", lambda: Attributed(pyg.PDNConv(WIDE, WIDE, 2, 3)), edge_attr=numbers(2))
_add("GMMConv", lambda: Attributed(pyg.GMMConv(WIDE, WIDE, dim=2, kernel_size=2)), edge_attr=numbers(2))
_add("GATConv with edge_attr", lambda: Attributed(pyg.GATConv(WIDE, WIDE, edge_dim=2)), edge_attr=numbers(2))
_add("GENConv with edge_attr", lambda: Attributed(pyg.GENConv(WIDE, WIDE, edge_dim=2)), edge_attr=numbers(2))
_add("PNAConv with edge_attr", lambda: Attributed(pna(edge_dim=2)), edge_attr=numbers(2))
pyg.FastRGCNConv(1, 1, 1)  # before any RGCNConv is made, whose propagate PyG would take for this one's
_add("FastRGCNConv", lambda: Typed(pyg.FastRGCNConv(WIDE, WIDE, 2)), edge_type=relation)
_add("RGATConv", lambda: Typed(pyg.RGATConv(WIDE, WIDE, 2)), edge_type=relation)
_add("DirGNNConv", lambda: Model(pyg.DirGNNConv(pyg.SAGEConv(WIDE, WIDE))), "directed")
_add("GCN", lambda: ready(pyg.GCN, dropout=0.5))
_add("GraphSAGE", lambda: ready(pyg.GraphSAGE, norm="layer_norm"))
_add("GIN", lambda: ready(pyg.GIN, norm="batch_norm"))
_add("GAT", lambda: ready(pyg.GAT, heads=2, jk="max"))
_add("EdgeCNN", lambda: ready(pyg.EdgeCNN))
_add("PNA", lambda: ready(pyg.PNA, aggregators=["mean"], scalers=["identity"], deg=DEGREES))
_add("LINKX", lambda: pyg.LINKX(NODES, IN, WIDE, OUT, num_layers=2))
_add("Sequential", in_sequence)
for _mode in ("cat", "max", "lstm"):
    _add(f"JumpingKnowledge {_mode}", partial(Jumping, _mode))
for _block in ("res+", "res", "dense", "plain"):
    _add(f"DeepGCNLayer {_block}", partial(deep, _block))
for _norm in (pyg.GraphNorm, pyg.PairNorm, pyg.LayerNorm, pyg.InstanceNorm, pyg.MeanSubtractionNorm):
    _named = _norm.__name__
    _add(f"{_named} with batch", partial(normed, _norm), batch=groups)
_add("GraphNorm without batch", lambda: Normed(pyg.GraphNorm(WIDE)))
_add("pe", Encoded, pe=places)
_add("no pe", Encoded)
_add("forward(data)", lambda: OfData(pyg.GCNConv(WIDE, WIDE)), edge_weight=number)

MODELS: dict[str, Callable[[], Any]] = {
    "GCNConv": lambda: Weighed(pyg.GCNConv(WIDE, WIDE)),
    "GraphConv": lambda: Weighed(pyg.GraphConv(WIDE, WIDE)),
    "ChebConv": lambda: Weighed(pyg.ChebConv(WIDE, WIDE, K=2)),
    "SAGEConv max": lambda: Model(pyg.SAGEConv(WIDE, WIDE, aggr="max")),
    "GraphSAGE": lambda: ready(pyg.GraphSAGE),
    "GATConv": lambda: Model(pyg.GATConv(WIDE, WIDE)),
    "TransformerConv": lambda: Model(pyg.TransformerConv(WIDE, WIDE)),
}
for _kind in ("directed", "loops", "shuffled", "loops shuffled", "loops sorted"):
    for _name, _build in MODELS.items():
        if (_name, "loops" in _kind) != ("ChebConv", True):  # which takes the loops out
            _add(f"{_name}, {_kind}", _build, _kind)
for _name in ("GCNConv", "GraphConv", "ChebConv"):
    for _field in ("edge_weight", "edge_attr"):  # 1-D, by either name
        _add(f"{_name}, {_field}", MODELS[_name], "undirected", **{_field: number})


class Pooled(Model):
    """One row for each group."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.last(pyg.global_mean_pool(self.layer(self.first(x), edge_index), batch))  # type: ignore[no-any-return]


class Shuffling(Model):
    """Edges in another order."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index[:, torch.randperm(edge_index.shape[1])]))  # type: ignore[no-any-return]


class Matrix(Model):
    """A dense matrix of the graph."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.layer(self.first(x), to_dense_adj(edge_index, max_num_nodes=NODES))[0])  # type: ignore[no-any-return]


_OTHER = "passes messages along other edges than the edge_index it was given"

# name: (model, fields of the data, the reason)
REFUSED: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "RGCNConv": (lambda: Typed(pyg.RGCNConv(WIDE, WIDE, 2)), {"edge_type": relation}, f"RGCNConv {_OTHER}"),
    "HypergraphConv": (lambda: Model(pyg.HypergraphConv(WIDE, WIDE)), {}, r"hypergraphs.* \(got HypergraphConv\)"),
    "GraphUNet": (lambda: pyg.GraphUNet(IN, WIDE, OUT, depth=2), {}, f"GCNConv {_OTHER}"),
    "shuffled within": (lambda: Shuffling(pyg.GCNConv(WIDE, WIDE)), {}, f"GCNConv {_OTHER}"),
    "LSTM, unsorted": (
        lambda: Model(pyg.SAGEConv(WIDE, WIDE, aggr="lstm")),
        {},
        "sorted by destination",
    ),
    "DenseGCNConv": (lambda: Matrix(pyg.DenseGCNConv(WIDE, WIDE)), {}, "at least one MessagePassing layer"),
    "MLP": (lambda: pyg.MLP([IN, WIDE, OUT]), {}, "at least one MessagePassing layer"),
    "pooled": (lambda: Pooled(pyg.GCNConv(WIDE, WIDE)), {"batch": groups}, "graph-level tasks are not supported"),
    "pooled, no batch": (lambda: Pooled(pyg.GCNConv(WIDE, WIDE)), {}, "graph-level tasks are not supported"),
    "LightGCN": (lambda: pyg.LightGCN(NODES, WIDE, 2), {}, "must run on this data"),
    "no edge_attr": (
        lambda: Attributed(pyg.GINEConv(mlp(), edge_dim=2)),
        {},
        "got 'edge_attr', which",
    ),
    "no pos": (lambda: Placed(pyg.PointNetConv(mlp(WIDE + 3))), {}, "got 'pos', which the data does not have"),
    "no edge_type": (
        lambda: Typed(pyg.FastRGCNConv(WIDE, WIDE, 2)),
        {},
        "got 'edge_type', which",
    ),
    "cached": (lambda: Model(pyg.APPNP(2, 0.1, cached=True)), {}, r"APPNP\(cached=True\) keeps the unpruned graph"),
    "lazy": (lambda: Model(pyg.SAGEConv(-1, WIDE)), {}, "has no shape yet"),
    "nothing to train": (lambda: pyg.LabelPropagation(2, 0.5), {}, "trainable parameters"),
    "wrong width": (lambda: Model(pyg.GCNConv(WIDE, WIDE), width=9), {}, "must run on this data"),
}
