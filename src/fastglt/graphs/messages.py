"""One round of message passing as a sparse pattern: which nodes receive, which send, along which edges."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fastglt.graphs.edge_rows import EdgeRows
from fastglt.kernels import CSR, backend, true_indices, weigh
from fastglt.kernels.csr import LARGE
from fastglt.kernels.patterns import count_messages


@dataclass(frozen=True, eq=False, kw_only=True)
class Hop:
    """Messages from some nodes to some nodes and to themselves; rows and columns are numbered within the hop.

    A network that is asked for a few nodes only needs their neighbours in its last layer and those
    nodes' neighbours in the layer before: smaller hops, the same numbers.
    """

    csr: CSR  # receivers × senders
    entry_edge: Tensor  # [entries], the edge of each entry; a self-loop has the number of edges
    degree: Tensor  # int64 [nodes], how many messages each node of the graph receives, one from itself included
    receivers: Tensor | None = None  # node ids of the rows; None: every node
    senders: Tensor | None = None  # node ids of the columns; None: every node
    looped: Tensor  # bool [nodes], which nodes have a self-loop in the data
    receiver_columns: Tensor | None = None  # the column of each receiver as a sender; None: that of its row
    edge_rows: EdgeRows | None = None  # the features of edges, if the data has some

    def spread(self, soft_edge_mask: Tensor) -> Tensor:
        """Each entry's number of a soft edge mask; self-loops have 1."""
        return torch.cat([soft_edge_mask, soft_edge_mask.new_ones(1)]).index_select(0, self.entry_edge)

    def weigh(self, norm: Tensor, soft_edge_mask: Tensor | None) -> Tensor:
        """Each entry's norm, times its edge's number of the soft edge mask if there is one."""
        return norm if soft_edge_mask is None else weigh(norm, soft_edge_mask, self.entry_edge)

    def of_receivers(self, sent: Tensor) -> Tensor:
        """The receivers' rows among the senders'."""
        return sent if self.receiver_columns is None else sent.index_select(0, self.receiver_columns)

    @property
    def all_send(self) -> bool:
        """Whether every node of the graph is a sender."""
        return self.csr.num_columns == self.degree.numel()

    def columns_of(self, nodes: Tensor) -> Tensor:
        """The columns of some senders; of all nodes' hop the rows as well."""
        if self.senders is None:
            return nodes
        place = torch.empty_like(self.degree)
        place[self.senders] = torch.arange(self.senders.numel(), device=nodes.device)
        return place[nodes]

    def picked(self, out: Tensor, nodes: Tensor | None) -> Tensor:
        """The rows of some nodes (None: of all, as they are numbered) among those of this whole-graph hop."""
        if nodes is None:
            nodes = None if self.senders is None else torch.arange(self.degree.numel(), device=out.device)
        return out if nodes is None else out[self.columns_of(nodes)]

    def ordered(self, order: Tensor) -> "Hop":
        """This whole-graph hop with its nodes, as receivers and as senders, in another order."""
        moved = replace(self, senders=order, receivers=order)
        csr, entries = self.csr.take_rows(order)
        indices = moved.columns_of(csr.indices).to(csr.indices.dtype)
        return replace(moved, csr=replace(csr, indices=indices), entry_edge=self.entry_edge[entries])

    @cached_property
    def scale(self) -> Tensor:
        """1/√d of every node of the graph."""
        return self.degree.float().rsqrt()

    @cached_property
    def symmetric_norm(self) -> Tensor:
        """GCN's 1/√(d_i·d_j) for each entry."""
        scale = self.scale
        rows = scale if self.receivers is None else scale.index_select(0, self.receivers)
        columns = scale if self.senders is None else scale.index_select(0, self.senders)
        return self.csr.of_rows(rows).mul_(columns.index_select(0, self.csr.indices))

    @cached_property
    def entry_row(self) -> Tensor:
        """The row of each entry in the table of `edge_rows`."""
        edges, rows = self.entry_edge.max() if self.entry_edge.numel() else 0, self.csr.rows
        receivers = rows if self.receivers is None else self.receivers[rows]
        return torch.where(self.is_loop > 0, edges + receivers, self.entry_edge.long()).int()

    @cached_property
    def is_loop(self) -> Tensor:
        """1 for each self-loop's entry, else 0."""
        rows, columns = self.csr.rows, self.csr.indices.long()
        receivers = rows if self.receivers is None else self.receivers[rows]
        senders = columns if self.senders is None else self.senders[columns]
        return (receivers == senders).float()

    @cached_property
    def sum_norm(self) -> Tensor:
        """1 for each message that stands in the data: of a self-loop that was added, 0."""
        looped = self.looped if self.receivers is None else self.looped[self.receivers]
        return 1 - self.is_loop * ~looped[self.csr.rows]

    @cached_property
    def mean_norm(self) -> Tensor:
        """`sum_norm` divided by the number of such messages that the node receives."""
        count = self.degree - 1 + self.looped.long()  # the degree counts a message from each node to itself
        scale = (count if self.receivers is None else count[self.receivers]).clamp(min=1).float().reciprocal()
        return self.sum_norm * scale[self.csr.rows]

    def restricted_to(self, nodes: Tensor, nearly_all: float = math.inf) -> "Hop":
        """The part of this whole-graph hop in which only `nodes` receive; from `nearly_all` senders on all send."""
        rows = self.columns_of(nodes)
        csr, entries = self.csr.take_rows(rows)
        needed = torch.zeros(self.csr.num_columns, dtype=torch.bool, device=nodes.device)
        needed[csr.indices] = True
        needed[rows] = True
        columns = needed.nonzero().squeeze(1)
        if columns.numel() >= nearly_all:
            return replace(
                self, csr=csr, entry_edge=self.entry_edge[entries], receivers=nodes, receiver_columns=rows
            )
        place = needed.cumsum(0) - 1
        local = CSR(indptr=csr.indptr, indices=place[csr.indices].int(), num_columns=columns.numel())
        return replace(
            self,
            csr=local,
            entry_edge=self.entry_edge[entries],
            receivers=nodes,
            senders=columns if self.senders is None else self.senders[columns],
            receiver_columns=place[rows],
        )

    def renumber(self, new_edge: Tensor, degree: Tensor) -> "Hop":
        """With the new number of each edge, and without those that have none, see `renumbered`; the nodes stay."""
        numbers = new_edge.index_select(0, self.entry_edge)
        left = true_indices(numbers >= 0)
        return replace(self, csr=self.csr.select(left), entry_edge=numbers.index_select(0, left), degree=degree)


def renumbered(kept: Tensor) -> Tensor:
    """The new number of each edge where the boolean `kept` is true, -1 where it is not; then that of self-loops.

    >>> renumbered(torch.tensor([True, False, True])).tolist()
    [0, -1, 1, 2]
    """
    every = torch.cat([kept, kept.new_ones(1)])
    return every.cumsum(0, dtype=numbers_type(kept.numel())).sub_(1).masked_fill_(~every, -1)


def numbers_type(edges: int) -> torch.dtype:
    """What so many edges are numbered with: of a large graph the half of what is usual."""
    return torch.int32 if LARGE <= edges < 2**31 else torch.int64


def every_message(edges: Tensor, looped: Tensor, *, directed: bool) -> Hop:
    """Every node receives from every neighbour and from itself."""
    source, target = edges
    num_nodes = looped.numel()
    if edges.shape[1] >= LARGE and edges.device.type == "cpu" and backend() != "plain":
        csr, edge_of = count_messages(edges, num_nodes, both_ways=not directed)
        edge_of = edge_of.to(numbers_type(edges.shape[1]))
        return Hop(csr=csr, entry_edge=edge_of, degree=csr.row_counts, looped=looped)
    loops = torch.arange(num_nodes, device=edges.device)
    ids = torch.arange(edges.shape[1], device=edges.device)
    rows = [target, loops] if directed else [target, source, loops]
    columns = [source, loops] if directed else [source, target, loops]
    csr, order = CSR.from_entries(torch.cat(rows), torch.cat(columns), (num_nodes, num_nodes))
    no_edge = torch.full_like(loops, edges.shape[1])
    edge_of = torch.cat([ids, no_edge] if directed else [ids, ids, no_edge])
    return Hop(csr=csr, entry_edge=edge_of[order], degree=csr.row_counts, looped=looped)
