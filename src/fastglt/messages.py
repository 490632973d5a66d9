"""One round of message passing as a sparse pattern: which nodes receive, which send, along which edges."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fastglt.kernels import CSR


@dataclass(frozen=True, eq=False, kw_only=True)
class Hop:
    """Messages from some nodes to some nodes; rows and columns are numbered within the hop.

    A network that is asked for a few nodes only needs their neighbours in its last layer and those
    nodes' neighbours in the layer before: smaller hops, the same numbers.
    """

    csr: CSR  # receivers × senders
    entry_edge: Tensor  # int64 [entries], the edge of each entry; a self-loop has the number of edges
    degree: Tensor  # int64 [nodes], how many messages each node of the graph receives
    receivers: Tensor | None = None  # node ids of the rows; None: every node
    senders: Tensor | None = None  # node ids of the columns, ascending; None: every node
    own: Tensor | None = None  # where each receiver stands among the senders; None: in the same place

    def spread(self, scores: Tensor) -> Tensor:
        """Each entry's edge score; self-loops have 1."""
        return torch.cat([scores, scores.new_ones(1)]).index_select(0, self.entry_edge)

    def of_receivers(self, sent: Tensor) -> Tensor:
        """The receivers' rows among the senders'."""
        return sent if self.own is None else sent.index_select(0, self.own)

    @cached_property
    def symmetric_norm(self) -> Tensor:
        """GCN's 1/√(d_i·d_j) for each entry."""
        scale = self.degree.float().rsqrt()
        rows = scale if self.receivers is None else scale[self.receivers]
        columns = scale if self.senders is None else scale[self.senders]
        return rows[self.csr.rows] * columns[self.csr.indices]

    @cached_property
    def mean_norm(self) -> Tensor:
        """1/d_i for each entry."""
        scale = self.degree.float().reciprocal()
        return (scale if self.receivers is None else scale[self.receivers])[self.csr.rows]

    @cached_property
    def ones(self) -> Tensor:
        """1 for each entry."""
        return torch.ones(self.csr.num_entries, device=self.degree.device)

    def before(self, nodes: Tensor) -> "Hop":
        """The part of this whole-graph hop in which only `nodes` receive."""
        csr, entries = self.csr.take_rows(nodes)
        needed = torch.zeros(self.csr.num_columns, dtype=torch.bool, device=nodes.device)
        needed[csr.indices] = True
        needed[nodes] = True
        senders = needed.nonzero().squeeze(1)
        place = needed.cumsum(0) - 1
        local = CSR(indptr=csr.indptr, indices=place[csr.indices].int(), num_columns=senders.numel())
        return replace(
            self,
            csr=local,
            entry_edge=self.entry_edge[entries],
            receivers=nodes,
            senders=senders,
            own=place[nodes],
        )

    def prune(self, kept: Tensor, degree: Tensor) -> "Hop":
        """Without the edges where the boolean `kept` is false; the nodes stay."""
        new_id = torch.cat([kept.cumsum(0) - 1, kept.sum().view(1)])
        keep_entry = torch.cat([kept, kept.new_ones(1)])[self.entry_edge]
        return replace(
            self, csr=self.csr.select(keep_entry), entry_edge=new_id[self.entry_edge[keep_entry]], degree=degree
        )


def every_message(edges: Tensor, loops: Tensor, num_nodes: int, *, directed: bool) -> Hop:
    """Every node receives from every neighbour, and from itself where it has a loop."""
    source, target = edges
    ids = torch.arange(edges.shape[1], device=edges.device)
    rows = [target, loops] if directed else [target, source, loops]
    columns = [source, loops] if directed else [source, target, loops]
    csr, order = CSR.from_entries(torch.cat(rows), torch.cat(columns), (num_nodes, num_nodes))
    no_edge = torch.full_like(loops, edges.shape[1])
    edge_of = torch.cat([ids, no_edge] if directed else [ids, ids, no_edge])
    return Hop(csr=csr, entry_edge=edge_of[order], degree=csr.row_counts)
