"""Layers of PyG that add up weighed rows, as sparse products: the same numbers, and no message is written down.

A soft edge mask makes every message a trained product, which gather and scatter would have to keep for the backward
pass, even where plain PyG has no backward pass at all: in a first layer that aggregates the features themselves.
Here the mask multiplies the entries of a sparse matrix instead. A linear layer that is given the features skips
their zeros, and a `SAGEConv` that is given them multiplies before it aggregates, which is less to aggregate.

Results differ from gather and scatter in their last bits only. Whatever is not exactly as PyG made it (a subclass,
another aggregation, hooks, double precision, edges of its own, columns that are repeated) goes PyG's own way.
"""

import copy
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor, nn

from fastglt.graphs.features import Features, SparseRows
from fastglt.graphs.graph import Graph
from fastglt.kernels import CSR, spmm, weigh

_REMEMBERED = 8  # patterns of a graph, which differ in their self-loops and direction
_METHODS = ("message", "aggregate", "update")
_OWN_HOOKS = {"_propagate_forward_pre_hooks": 1, "_message_forward_hooks": 1}  # that weigh messages the other way


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern:
    """The edges that a layer passes messages along, row by row of their receivers."""

    csr: CSR  # receivers × senders
    order: Tensor  # the column of each entry
    entry_edge: Tensor  # the edge of each entry; a self-loop has the number of edges

    @staticmethod
    def make(edge_index: Tensor, flow: str, graph: Graph) -> "Pattern | None":
        """None if a column is repeated, or there are others than the graph's and self-loops."""
        edges = edges_of_messages(edge_index, graph)
        if edges is None:
            return None
        receivers, senders = edge_index.flip(0) if flow == "source_to_target" else edge_index
        keys = receivers * graph.num_nodes + senders
        if torch.unique(keys).numel() < keys.numel():
            return None
        csr, order = CSR.from_entries(receivers, senders, (graph.num_nodes, graph.num_nodes))
        return Pattern(csr=csr, order=order, entry_edge=edges.index_select(0, order))

    @cached_property
    def ones(self) -> Tensor:
        """What a sum multiplies each entry by."""
        return torch.ones(self.csr.num_entries, dtype=torch.float32, device=self.order.device)

    @cached_property
    def means(self) -> Tensor:
        """What a mean multiplies each entry by."""
        return self.csr.row_counts.float().reciprocal().index_select(0, self.csr.rows)

    def values(self, norm: Tensor, soft_edge_mask: Tensor | None) -> Tensor:
        """Each entry's factor, a number or one for each head, times its edge's number of the soft edge mask."""
        if soft_edge_mask is None:
            return norm
        if not norm.requires_grad and norm.dim() == 1:
            return weigh(norm, soft_edge_mask, self.entry_edge)
        soft = weigh(self.ones, soft_edge_mask, self.entry_edge)
        return norm * (soft if norm.dim() == 1 else soft.unsqueeze(-1))


def edges_of_messages(edge_index: object, graph: Graph) -> Tensor | None:
    """The edge of each column that a layer sends messages along; a self-loop has the number of edges.

    None if these are not the graph's columns, or their reverses, with nothing but self-loops after them. The
    graph's own self-loops may have been moved there.
    """
    if not _is_plain(edge_index):
        return None
    assert isinstance(edge_index, Tensor)
    real = graph.column_edge < graph.num_edges
    given = [(graph.edge_index, graph.column_edge)]
    if not bool(real.all()):
        given.append((graph.edge_index[:, real], graph.column_edge[real]))
    for columns, edges in given:
        first, loops = edge_index[:, : columns.shape[1]], edge_index[:, columns.shape[1] :]
        same = torch.equal(first, columns) or torch.equal(first, columns.flip(0))
        if same and torch.equal(loops[0], loops[1]):
            return torch.cat([edges, edges.new_full((loops.shape[1],), graph.num_edges)])
    return None


def _is_plain(edge_index: object) -> bool:
    return type(edge_index) is Tensor and edge_index.layout == torch.strided


class Fused:
    """What a PyG network computes by sparse products while it runs on a graph."""

    def __init__(self, module: nn.Module) -> None:
        from torch_geometric import nn as pyg

        self.wanted = True
        self._x: Tensor | None = None
        self._rows: SparseRows | None = None
        self._soft: Tensor | None = None
        self._graph: Graph | None = None
        self._patterns: list[tuple[Tensor, str, Pattern | None]] = []
        self._calls: list[tuple[nn.Module, str, Any]] = []
        for part in module.modules():
            if type(part) in (nn.Linear, pyg.Linear):
                self._calls.append((part, "forward", _Linear(self, part)))
            if type(part) is pyg.SAGEConv:
                self._calls.append((part, "forward", _Sage(self, part)))
            if type(part) in _factors():
                self._calls.append((part, "propagate", _Propagate(self, part)))

    def begin(self, features: Features, x: Tensor, graph: Graph, soft_edge_mask: Tensor | None) -> None:
        """The network is about to run on this: until it has, layers call us."""
        if not self.wanted:
            return
        if self._graph is not graph:
            self._graph, self._patterns = graph, []
        self._x, self._soft = x, soft_edge_mask
        sparse = x.dtype == torch.float32 and features.is_sparse
        rows = features.of(None) if sparse else None
        self._rows = rows if isinstance(rows, SparseRows) else None
        for part, name, call in self._calls:
            vars(part).setdefault(name, call)  # unless its owner has put something there

    def end(self) -> None:
        """It has run: layers are as PyG made them."""
        self._x = self._rows = self._soft = None
        for part, name, call in self._calls:
            if vars(part).get(name) is call:
                del vars(part)[name]

    def feature_rows(self, x: object) -> SparseRows | None:
        """The features, if these are what a layer is given and most of them are zero."""
        return self._rows if self._x is not None and x is self._x else None

    def pattern(self, layer: Any, edge_index: object) -> Pattern | None:
        """The edges as a sparse pattern; None if the layer has to go PyG's way."""
        graph = self._graph
        if self._x is None or graph is None or not _as_made(layer) or not _is_plain(edge_index):
            return None
        assert isinstance(edge_index, Tensor)
        for known, flow, pattern in self._patterns:
            if flow == layer.flow and torch.equal(known, edge_index):
                return pattern
        pattern = Pattern.make(edge_index, layer.flow, graph)
        self._patterns = [*self._patterns[-_REMEMBERED + 1 :], (edge_index, layer.flow, pattern)]
        return pattern

    def aggregated(self, layer: Any, pattern: Pattern, norm: Tensor | None, dense: Tensor) -> Tensor:
        """Each receiver's sum, or mean, of its senders' rows; `norm` has a factor for each column."""
        mean = type(layer.aggr_module).__name__ == "MeanAggregation"
        plain = pattern.means if mean else pattern.ones
        if norm is not None:
            norm = norm.index_select(0, pattern.order)
            plain = norm * plain if mean else norm
        return spmm(pattern.csr, pattern.values(plain, self._soft), dense.contiguous())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Fused":
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        nothing: dict[str, Any] = {"_x": None, "_rows": None, "_soft": None, "_graph": None, "_patterns": []}
        twin.__dict__.update(copy.deepcopy({**self.__dict__, **nothing}, memo))
        return twin


@dataclass(frozen=True, eq=False)
class _Linear:
    """A linear layer's forward."""

    fused: Fused
    layer: Any

    def __call__(self, *given: Any, **named: Any) -> Tensor:
        rows = self.fused.feature_rows(given[0]) if len(given) == 1 and not named else None
        if rows is None:
            plain: Tensor = type(self.layer).forward(self.layer, *given, **named)
            return plain
        out: Tensor = rows @ self.layer.weight.t().contiguous()
        return out if self.layer.bias is None else out + self.layer.bias


@dataclass(frozen=True, eq=False)
class _Sage:
    """The forward of a `SAGEConv`: one product of the features with both of its matrices, then the aggregation."""

    fused: Fused
    layer: Any

    def __call__(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        layer, rows = self.layer, self.fused.feature_rows(x)
        fits = rows is not None and not layer.project and isinstance(vars(layer.lin_l).get("forward"), _Linear)
        pattern = self.fused.pattern(layer, edge_index) if fits else None
        if rows is None or pattern is None:
            return type(layer).forward(layer, x, edge_index, size)  # type: ignore[no-any-return]
        out = self.fused.aggregated(layer, pattern, None, rows @ layer.lin_l.weight.t().contiguous())
        out = out if layer.lin_l.bias is None else out + layer.lin_l.bias
        if layer.root_weight:
            out = out + layer.lin_r(x)
        return nn.functional.normalize(out, p=2.0, dim=-1) if layer.normalize else out


@dataclass(frozen=True, eq=False)
class _Propagate:
    """The propagate of a layer whose messages are its senders' rows, each times a factor."""

    fused: Fused
    layer: Any

    def __call__(self, edge_index: Any, size: Any = None, **inputs: Any) -> Tensor:
        layer = self.layer
        x = inputs["x"][0] if isinstance(inputs["x"], tuple | list) else inputs["x"]
        norm = inputs.get(_factors()[type(layer)] or "")
        pattern = self.fused.pattern(layer, edge_index)
        if pattern is None or not _fits(x, norm, pattern.csr.num_columns, pattern.csr.num_entries):
            return type(layer).propagate(layer, edge_index, size=size, **inputs)  # type: ignore[no-any-return]
        norm = norm.flatten() if norm is not None and x.dim() == 2 else norm
        return self.fused.aggregated(layer, pattern, norm, x.flatten(1)).view(x.shape)


@cache
def _factors() -> dict[type, str | None]:
    """The layers whose messages are rows of x, by the input of propagate that multiplies these, if there is one."""
    from torch_geometric import nn as pyg

    weighed = (
        pyg.GCNConv,
        pyg.GraphConv,
        pyg.SGConv,
        pyg.SSGConv,
        pyg.TAGConv,
        pyg.LGConv,
        pyg.APPNP,
        pyg.MixHopConv,
        pyg.ClusterGCNConv,
        pyg.GatedGraphConv,
    )
    return {
        pyg.SAGEConv: None,
        pyg.GINConv: None,
        pyg.ChebConv: "norm",
        pyg.GATConv: "alpha",
        pyg.GATv2Conv: "alpha",
        **dict.fromkeys(weighed, "edge_weight"),
    }


def _fits(x: Any, norm: Any, nodes: int, messages: int) -> bool:
    """Whether x and the factors are what our kernels take: rows of float32, by head if there are any."""
    if not isinstance(x, Tensor) or x.dtype != torch.float32 or x.shape[0] != nodes or x.dim() not in (2, 3):
        return False
    if norm is None:
        return x.dim() == 2
    shapes = [(messages,), (messages, 1)] if x.dim() == 2 else [(messages, x.shape[1])]
    return norm.dtype == torch.float32 and tuple(norm.shape) in shapes


def _as_made(layer: Any) -> bool:
    """Whether nobody listens to a layer's messages or changes them, and they are added up or averaged."""
    from torch_geometric.nn import MeanAggregation, SumAggregation

    kinds = ("_propagate", "_message", "_aggregate")
    hooks = [name for name in vars(layer) if name.startswith(kinds) and name.endswith("_hooks")]
    return (
        type(layer.aggr_module) in (MeanAggregation, SumAggregation)
        and all(len(getattr(layer, name)) == _OWN_HOOKS.get(name, 0) for name in hooks)
        and not any(name in vars(layer) for name in _METHODS)
        and layer.decomposed_layers == 1
        and not layer.explain
    )
