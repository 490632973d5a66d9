"""A graph prepared once: one id per prunable edge, sparse patterns for messages, a fingerprint.

Words: an *edge* is what one mask entry decides on: a pair of nodes in an undirected graph, an arrow in
a directed one. A *column* is a column of the `edge_index` that was given: an undirected edge has at
least two. Self-loops are columns, but never edges: they are neither pruned nor counted.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.columns import counted_columns, is_symmetric, numbered_columns
from fastglt.graphs.edge_rows import EdgeRows
from fastglt.graphs.inputs import check_edges, more_fields, warn_of_few_one_way
from fastglt.graphs.messages import Hop, every_message, renumbered
from fastglt.kernels import CSR, backend, true_indices
from fastglt.kernels.csr import LARGE
from fastglt.kernels.order import near_order
from fastglt.masks import Mask

if TYPE_CHECKING:
    from torch_geometric.data import Data


class OnDisk(Protocol):
    """A large graph that was prepared: its rows as tensors, mapped from files."""

    directed: bool
    nonzero: int  # of the features

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Edges, rows, columns and self-loops by name."""
        ...

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Of the graph and of the features."""
        ...

    def release(self) -> None:
        """Give back the memory of all that was read."""
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """The structure of a graph, without features.

    >>> graph = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]]), num_nodes=3)
    >>> graph.edges.tolist(), graph.loops.tolist(), graph.directed
    ([[0, 1], [1, 2]], [2], False)
    >>> graph.prune(Mask([1, 0])).edge_index.tolist()
    [[0, 1, 2], [1, 0, 2]]
    """

    num_nodes: int
    directed: bool
    edges: Tensor  # int64 [2, edges], distinct and sorted; source < target when undirected
    edge_index: Tensor  # int64 [2, columns], the self-loops last
    column_edge: Tensor  # [columns], the edge of each column; a self-loop has the number of edges
    edge_attr: Tensor | None = None  # [columns, ...]
    edge_weight: Tensor | None = None  # [columns]
    edge_fields: Mapping[str, Tensor] = field(default_factory=dict, repr=False)  # what else the data has of columns
    node_fields: Mapping[str, Tensor] = field(default_factory=dict, repr=False)  # and of nodes, x and labels apart
    withheld: frozenset[str] = field(default=frozenset(), repr=False)  # what it has that no model is given
    place: Tensor | None = field(default=None, repr=False)  # of each column in the data, where loops are not last
    on_disk: "OnDisk | None" = field(default=None, repr=False)  # where tensors are mapped from files
    _origin: "tuple[Graph, Tensor] | None" = field(default=None, repr=False)  # what was pruned, new edge ids
    _hops: dict[tuple[int, int, bool], "_Hops"] = field(default_factory=dict, repr=False)

    @staticmethod
    def from_edge_index(
        edge_index: Tensor,
        num_nodes: int,
        *,
        directed: bool | None = None,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> "Graph":
        """Prepare a graph; `directed=None` finds out by looking for each column's reverse."""
        check_edges(edge_index, num_nodes, edge_attr=edge_attr, edge_weight=edge_weight)
        tidy = None if directed else counted_columns(edge_index, num_nodes)
        if directed is None:
            directed = tidy is None and not is_symmetric(edge_index, num_nodes)
        return Graph._prepare(edge_index, num_nodes, directed, edge_attr, edge_weight, tidy=tidy)

    @staticmethod
    def _prepare(
        edge_index: Tensor,
        num_nodes: int,
        directed: bool,
        edge_attr: Tensor | None,
        edge_weight: Tensor | None,
        edge_fields: Mapping[str, Tensor] | None = None,
        tidy: tuple[Tensor, Tensor] | None = None,
    ) -> "Graph":
        """The columns may be known to be tidy; then they are taken as they are, and not copied."""
        columns, order, place = edge_index, cast("Tensor | slice", slice(None)), None
        if tidy is None:
            loop = edge_index[0] == edge_index[1]
            order = torch.cat([true_indices(~loop), true_indices(loop)])
            columns = edge_index[:, order].contiguous()
            place = order if bool((order.diff() < 0).any()) else None
        edges, column_edge = tidy or numbered_columns(columns, num_nodes, directed=directed)
        return Graph(
            num_nodes=num_nodes,
            directed=directed,
            edges=edges,
            edge_index=columns,
            column_edge=column_edge,
            edge_attr=None if edge_attr is None else edge_attr.detach()[order],
            edge_weight=None if edge_weight is None else edge_weight.detach()[order],
            edge_fields={name: value.detach()[order] for name, value in (edge_fields or {}).items()},
            place=place,
        )

    @staticmethod
    def from_data(data: "Data", *, directed: bool | None = None) -> "Graph":
        """Prepare a PyG `Data`.

        With `directed=None` it is directed exactly if it is not `is_undirected()`, edge_attr included; where most
        columns have a reverse all the same, a warning says what stands in the way. Of an undirected graph both
        directions of an edge are kept or removed together, as far as the data has them.
        """
        if data.edge_index is None:
            raise InputError("data.edge_index must be a [2, edges] tensor (got none); adj_t alone is not read")
        if type(data.edge_index) is not Tensor:
            got = type(data.edge_index).__name__
            raise InputError(f"data.edge_index must be a plain tensor (got {got}); an EdgeIndex has as_tensor()")
        edge_index, num_nodes = data.edge_index, int(data.num_nodes)
        values = {"edge_attr": data.edge_attr, "edge_weight": data.get("edge_weight")}
        check_edges(edge_index, num_nodes, **values)  # before PyG compares them
        edge_fields, node_fields, withheld = more_fields(data)
        if directed is None:
            directed = not data.is_undirected()
            if directed:
                warn_of_few_one_way(edge_index, num_nodes, data.edge_attr)
        found = Graph._prepare(edge_index, num_nodes, directed, **values, edge_fields=edge_fields)
        return replace(found, node_fields=node_fields, withheld=withheld)

    @staticmethod
    def from_disk(arrays: "OnDisk", num_nodes: int) -> "Graph":
        """A graph whose rows were prepared before: nothing of it is read until it is needed."""
        found = arrays.tensors
        looped = torch.zeros(num_nodes, dtype=torch.bool)
        looped[found["loops"]] = True
        csr = CSR(indptr=found["indptr"], indices=found["senders"], num_columns=num_nodes)
        hop = Hop(csr=csr, entry_edge=found["entry_edge"], degree=csr.row_counts, looped=looped)
        graph = Graph(
            num_nodes=num_nodes,
            directed=arrays.directed,
            edges=found["edges"],
            edge_index=found["edge_index"],
            column_edge=found["column_edge"],
            on_disk=arrays,
        )
        graph.__dict__.update(fingerprint=arrays.fingerprints["graph"], loops=found["loops"])
        return graph.with_messages(hop)

    def release(self) -> None:
        """Give back the memory of what was read from disk; it is read again when it is needed."""
        if self.on_disk is not None:
            self.on_disk.release()

    @property
    def num_edges(self) -> int:
        """How many edges a mask decides on."""
        return self.edges.shape[1]

    @property
    def is_large(self) -> bool:
        """Whether memory counts for more than a few per cent of time."""
        return self.num_edges >= LARGE

    @cached_property
    def loops(self) -> Tensor:
        """The nodes that have a self-loop in the data."""
        looped = self.edge_index[0, self.column_edge == self.num_edges]
        return looped.bincount(minlength=self.num_nodes).nonzero().squeeze(1)

    @cached_property
    def degree(self) -> Tensor:
        """Neighbours of each node, self-loops apart; in a directed graph, arrows in and out."""
        return self.edges.flatten().bincount(minlength=self.num_nodes)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the nodes and edges, whatever the order the columns came in."""
        digest = hashlib.sha256(f"fastglt-graph-1 {self.num_nodes} {int(self.directed)}".encode())
        for part in (self.edges, self.loops):
            digest.update(np.ascontiguousarray(part.cpu().numpy(), dtype="<i8").tobytes() + b"|")
        return digest.hexdigest()

    @cached_property
    def values_fingerprint(self) -> str | None:
        """A digest of edge_weight and edge_attr, whatever the order the columns came in; None if there are none."""
        values = {name: getattr(self, name) for name in ("edge_weight", "edge_attr")}
        if all(value is None for value in values.values()):
            return None
        order = torch.argsort(self.edge_index[0] * self.num_nodes + self.edge_index[1], stable=True)
        digest = hashlib.sha256()
        for name, value in values.items():
            if value is not None:
                digest.update(f"{name} {tuple(value.shape[1:])} ".encode())
                digest.update(np.ascontiguousarray(value[order].cpu().double().numpy(), dtype="<f8").tobytes())
        return digest.hexdigest()

    def field_digest(self, name: str) -> str | None:
        """A digest of a field of nodes or edges, whatever the order the columns came in; None if there is none."""
        value = self.node_fields.get(name)
        if value is None and name in self.edge_fields:
            order = torch.argsort(self.edge_index[0] * self.num_nodes + self.edge_index[1], stable=True)
            value = self.edge_fields[name][order]
        if value is None:
            return None
        numbers = value.detach().cpu().contiguous()
        text = f"{numbers.dtype} {tuple(numbers.shape)} ".encode()
        return hashlib.sha256(text + numbers.view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()

    def prune(self, mask: Mask) -> "Graph":
        """An ordinary smaller graph: the edges that the mask drops are gone, both directions of them."""
        kept = mask.of_size(self.num_edges).kept.to(self.edges.device)
        if bool(kept.all()):
            return self
        new_edge = renumbered(kept)
        numbers = new_edge.index_select(0, self.column_edge)
        left = true_indices(numbers >= 0)
        return Graph(
            num_nodes=self.num_nodes,
            directed=self.directed,
            edges=self.edges.index_select(1, true_indices(kept)),
            edge_index=self.edge_index.index_select(1, left),
            column_edge=numbers.index_select(0, left),
            edge_attr=None if self.edge_attr is None else self.edge_attr[left],
            edge_weight=None if self.edge_weight is None else self.edge_weight[left],
            edge_fields={name: value[left] for name, value in self.edge_fields.items()},
            node_fields=self.node_fields,
            withheld=self.withheld,
            place=None if self.place is None else self.place[left],
            _origin=(self, new_edge),
        )

    @cached_property
    def as_given(self) -> "Graph":
        """With the self-loops where the data has them, as a user's model may need its columns sorted."""
        if self.place is None:
            return self
        back = torch.argsort(self.place)
        values = {name: getattr(self, name) for name in ("column_edge", "edge_attr", "edge_weight")}
        moved: dict[str, Any] = {name: value[back] for name, value in values.items() if value is not None}
        fields = {name: value[back] for name, value in self.edge_fields.items()}
        columns = self.edge_index[:, back]
        return replace(self, edge_index=columns, edge_fields=fields, **moved, place=None, _origin=None, _hops={})

    def hops(self, nodes: Tensor | None, *, depth: int, near: bool = False) -> tuple[Hop, ...]:
        """The messages that `depth` layers need for the outputs of `nodes` (None: of all), first layer first.

        Found once for each set of nodes; a pruned graph keeps the nodes of the graph it was cut from, without
        its edges. With `near`, the nodes of a large graph may come in an order in which neighbours lie close:
        senders of the first hop and, where nodes are not named, receivers of the last.
        """
        key = (0 if nodes is None else id(nodes), depth, near and self.origin._order is not None)
        if key not in self._hops:  # the nodes are kept too, so that their id stays theirs
            if len(self._hops) >= _REMEMBERED:
                self._hops.pop(next(iter(self._hops)))
            self._hops[key] = (nodes, self._find_hops(nodes, depth, near=key[2]))
        return self._hops[key][1]

    def _find_hops(self, nodes: Tensor | None, depth: int, *, near: bool) -> tuple[Hop, ...]:
        if self._origin is not None:
            whole_graph, new_edge = self._origin
            arrows = self.edges[1] if self.directed else self.edges.flatten()
            degree = arrows.bincount(minlength=self.num_nodes) + 1
            before = whole_graph.hops(nodes, depth=depth, near=near)
            pruned = {id(hop): replace(hop.renumber(new_edge, degree), edge_rows=self._edge_rows) for hop in before}
            return tuple(pruned[id(hop)] for hop in before)
        every = self._near if near else self._whole
        if nodes is None:
            return (every,) * depth
        shared = depth > 2 or self.is_large
        nearly_all = _NEARLY_ALL * self.num_nodes if shared else self.num_nodes + 1
        found = [every.restricted_to(nodes, nearly_all)]
        while len(found) < depth:
            receivers = None if found[0].all_send and shared else found[0].senders
            some = None if receivers is None else every.restricted_to(receivers, nearly_all)
            found.insert(0, some or every)
        return tuple(found)

    @property
    def origin(self) -> "Graph":
        """The graph that this was cut from, by one pruning or several; itself if by none."""
        return self if self._origin is None else self._origin[0].origin

    @cached_property
    def _order(self) -> Tensor | None:
        """The nodes, neighbours close to one another; None: as they are."""
        if not self.is_large or self.directed or self.on_disk is not None:
            return None
        if self.edges.device.type != "cpu" or backend() == "plain":
            return None
        return near_order(self._whole.csr)

    @cached_property
    def _near(self) -> Hop:
        assert self._order is not None, "it was asked for"
        return self._whole.ordered(self._order)

    @cached_property
    def _whole(self) -> Hop:
        looped = self.loops.bincount(minlength=self.num_nodes).bool()
        found = every_message(self.edges, looped, directed=self.directed)
        return found if self._edge_rows is None else replace(found, edge_rows=self._edge_rows)

    @cached_property
    def _edge_rows(self) -> EdgeRows | None:
        values = self.edge_attr
        if values is None or values.dim() != 2:
            return None
        return EdgeRows(columns=self.edge_index, edge=self.column_edge, values=values, nodes=self.num_nodes)

    def with_messages(self, whole: Hop) -> "Graph":
        """This graph with the messages of one layer between all nodes, where they are known already."""
        self.__dict__["_whole"] = whole if self._edge_rows is None else replace(whole, edge_rows=self._edge_rows)
        return self

    def alone(self) -> "Graph":
        """This graph without a reference to the one it was cut from: its hops are found in itself."""
        return replace(self, _origin=None, _hops={})

    def to(self, device: torch.device | str) -> "Graph":
        """The graph on another device."""
        device = torch.device(device)
        if device == self.edges.device:
            return self
        names = ("edges", "edge_index", "column_edge", "edge_attr", "edge_weight", "place")
        tensors = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in tensors.items()}
        for name in ("edge_fields", "node_fields"):
            moved[name] = {key: value.to(device) for key, value in getattr(self, name).items()}
        return replace(self, **moved, _origin=None, _hops={})


_REMEMBERED = 8  # sets of nodes whose hops are kept
_NEARLY_ALL = (
    0.75  # the share of nodes from which on all send if a network is deep or a graph large: hops are then one
)
_Hops = tuple[Tensor | None, tuple[Hop, ...]]  # the nodes that were asked for, and one hop per layer
