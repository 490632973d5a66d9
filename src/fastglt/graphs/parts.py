"""Parts of a graph: some nodes and the edges among them, cut from compressed rows without a look at the rest.

What a cut reads are the rows of its own nodes, so the arrays may lie on disk and be mapped into memory.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop, numbers_type
from fastglt.kernels import CSR, true_indices
from fastglt.kernels.csr import pointers
from fastglt.masks import Mask


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """Some nodes, numbered anew in their old order, and the edges that they have among themselves."""

    nodes: Tensor  # int64, node ids in the whole graph, ascending
    graph: Graph  # with degrees and normalisation of its own
    edges: Tensor  # int64, the id of each of its edges in the whole graph, ascending
    remembered: bool = False  # whether it is kept to be used again

    def numbers_of(self, nodes: Tensor) -> Tensor:
        """The numbers that some of its nodes have in it; `nodes` may be pairs."""
        return torch.searchsorted(self.nodes, nodes.contiguous())

    def holds(self, nodes: Tensor) -> Tensor:
        """Which of these nodes of the whole graph are in it; `nodes` may be pairs."""
        places = self.numbers_of(nodes).clamp_(max=len(self.nodes) - 1)
        return self.nodes[places] == nodes

    def pruned(self, kept: Tensor) -> tuple[Graph, Tensor]:
        """Its graph under a boolean mask of the whole graph's edges, and the ids of the edges that are left."""
        alive = kept.index_select(0, self.edges)
        return self.graph.prune(Mask(alive.cpu())), self.edges[alive]


class Cutter:
    """Cuts parts out of one graph.

    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=4)
    >>> part = Cutter(path).cut(torch.tensor([0, 2, 3]))
    >>> part.graph.edges.tolist(), part.edges.tolist()
    ([[1], [2]], [2])
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._whole = graph.hops(None, depth=1)[0]
        self._known: dict[int, Part] = {}

    def remembered(self, key: int, nodes: Tensor) -> Part:
        """What `cut` gives, found once for each key and kept."""
        if key not in self._known:
            self._known[key] = replace(self.cut(nodes), remembered=True)
        return self._known[key]

    def cut(self, nodes: Tensor) -> Part:
        """The part that has these nodes, given in ascending order."""
        number = torch.full((self.graph.num_nodes,), -1, dtype=torch.int32, device=nodes.device)
        number[nodes] = torch.arange(len(nodes), dtype=torch.int32, device=nodes.device)
        rows, entries = self._whole.csr.take_rows(nodes)
        columns = number.index_select(0, rows.indices)
        inside = true_indices(columns >= 0)
        csr = CSR(
            indptr=torch.searchsorted(inside, rows.indptr),
            indices=columns.index_select(0, inside),
            num_columns=len(nodes),
        )
        edge = self._whole.entry_edge.index_select(0, entries.index_select(0, inside))
        edges, ids = self._edges(csr, edge)
        hop = Hop(
            csr=csr,
            entry_edge=torch.searchsorted(ids, edge.long()).to(numbers_type(len(ids))),
            degree=csr.row_counts,
            looped=self._whole.looped[nodes],
        )
        graph = self._graph(nodes, number, edges, ids, hop)
        return Part(nodes=nodes, graph=graph.with_messages(hop), edges=ids)

    def _edges(self, csr: CSR, edge: Tensor) -> tuple[Tensor, Tensor]:
        """The edges among a part's nodes, by their new numbers, and their ids in order."""
        rows, columns = csr.rows, csr.indices.long()
        if not self.graph.directed:  # rows go up and columns within them: so do the ids
            once = true_indices(columns > rows)
            return torch.stack([rows[once], columns[once]]), edge[once].long()
        once = true_indices(columns != rows)
        ids, order = edge[once].long().sort()
        return torch.stack([columns[once][order], rows[once][order]]), ids

    def _graph(self, nodes: Tensor, number: Tensor, edges: Tensor, ids: Tensor, hop: Hop) -> Graph:
        whole = self.graph
        fields = {name: value[nodes] for name, value in whole.node_fields.items()}
        common = {"num_nodes": len(nodes), "directed": whole.directed, "edges": edges, "node_fields": fields}
        if self._is_plain:
            loops = true_indices(hop.looped)
            ways = edges if whole.directed else torch.cat([edges, edges.flip(0)], dim=1)
            order = torch.argsort(ways[0] * len(nodes) + ways[1])
            times = 1 if whole.directed else 2
            edge_of = torch.arange(len(ids), device=ids.device).repeat(times)[order]
            return Graph(
                **common,  # type: ignore[arg-type]
                edge_index=torch.cat([ways[:, order], loops.expand(2, -1)], dim=1),
                column_edge=torch.cat([edge_of, edge_of.new_full((len(loops),), len(ids))]),
                withheld=whole.withheld,
            )
        columns = self._columns_of(ids, number)
        values = {"edge_attr": whole.edge_attr, "edge_weight": whole.edge_weight, "place": whole.place}
        return Graph(
            **common,  # type: ignore[arg-type]
            edge_index=number[whole.edge_index[:, columns]].long(),
            column_edge=torch.searchsorted(ids, whole.column_edge[columns].long()),
            edge_fields={name: value[columns] for name, value in whole.edge_fields.items()},
            withheld=whole.withheld,
            **{name: None if value is None else value[columns] for name, value in values.items()},  # type: ignore[arg-type]
        )

    @cached_property
    def _is_plain(self) -> bool:
        """Whether columns say nothing that edges and looped nodes do not."""
        graph = self.graph
        valued = graph.edge_attr is not None or graph.edge_weight is not None or bool(graph.edge_fields)
        expected = graph.num_edges * (1 if graph.directed else 2) + int(self._whole.looped.sum())
        return not valued and graph.edge_index.shape[1] == expected

    @cached_property
    def _by_edge(self) -> tuple[Tensor, Tensor]:
        """The columns edge by edge, and where those of each edge begin; the self-loops come last."""
        edge = self.graph.column_edge.long()
        return torch.argsort(edge, stable=True), pointers(edge.bincount(minlength=self.graph.num_edges + 1))

    def _columns_of(self, ids: Tensor, number: Tensor) -> Tensor:
        """The columns of some edges and of the self-loops of a part's nodes, in the order that they have."""
        order, indptr = self._by_edge
        counts = indptr[ids + 1] - indptr[ids]
        first = torch.repeat_interleave(indptr[ids] - pointers(counts)[:-1], counts)
        found = order[first + torch.arange(len(first), device=ids.device)]
        loops = order[int(indptr[-2]) :]
        return torch.cat([found, loops[number[self.graph.edge_index[0, loops]] >= 0]]).sort().values
