"""A graph's messages a strip of receivers at a time, under a mask of its edges: neither is ever copied whole."""

from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.kernels import CSR, true_indices
from fastglt.system.scratch import in_file, release_scratch, scratch_table, take_rows

ENTRIES = 1 << 19  # messages of a strip


class Strips:
    """All messages of one layer in strips of consecutive receivers; edges keep the ids that they have in the graph.

    >>> path = Graph.from_edge_index(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> strips = Strips(path, torch.tensor([True, False]), entries=3)
    >>> strips.bounds, strips.degree.tolist()
    ([(0, 1), (1, 2), (2, 3)], [2, 2, 1])
    """

    def __init__(self, graph: Graph, kept: Tensor | None = None, *, entries: int = ENTRIES) -> None:
        self._graph, self._whole = graph, graph.hops(None, depth=1)[0]
        self.num_nodes = graph.num_nodes
        self._kept = None if kept is None or bool(kept.all()) else torch.cat([kept, kept.new_ones(1)])
        self._entries = entries

    def table(self, like: Tensor, rows: int) -> Tensor:
        """Room for so many rows like these: of a graph on disk in a file, if they are many."""
        shape = (rows, *like.shape[1:])
        return like.new_empty(shape) if self._graph.on_disk is None else scratch_table(shape, like.dtype)

    def release(self) -> None:
        """Give back the memory of what was read from disk, and of tables in files."""
        if self._graph.on_disk is not None:
            self._graph.release()
            release_scratch()

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The first receiver of each strip, and the first that is no longer in it."""
        indptr, found, start = self._whole.csr.indptr, list[tuple[int, int]](), 0
        while start < self.num_nodes:
            limit = indptr[start] + self._entries
            stop = max(start + 1, int(torch.searchsorted(indptr, limit, right=True)) - 1)
            found.append((start, stop))
            start = stop
        return found

    @cached_property
    def degree(self) -> Tensor:
        """How many messages each node receives under the mask, one from itself included."""
        if self._kept is None:
            return self._whole.degree
        return torch.cat([self._masked(start, stop)[0].row_counts for start, stop in self.bounds])

    @cached_property
    def _scale(self) -> Tensor:
        return self.degree.float().rsqrt()

    def hop(self, start: int, stop: int) -> Hop:
        """The messages that some consecutive nodes receive, from anybody."""
        csr, entry_edge = self._masked(start, stop)
        receivers = torch.arange(start, stop, device=csr.indices.device)
        found = replace(
            self._whole,
            csr=csr,
            entry_edge=entry_edge,
            degree=self.degree,
            receivers=receivers,
            receiver_columns=receivers,
        )
        return self._scaled(found)

    def heard(self, sent: tuple[Tensor, ...], hop: Hop) -> tuple[tuple[Tensor, ...], Hop]:
        """What a hop's receivers hear, and the hop for it: of tables in files the rows of its senders alone."""
        if hop.receivers is None or not any(in_file(table) for table in sent):
            return sent, hop
        senders, places = hop.csr.indices.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        senders = senders.long()
        csr = CSR(indptr=hop.csr.indptr, indices=places.int(), num_columns=len(senders))
        own = torch.searchsorted(senders, hop.receivers)  # a node hears itself too
        found = replace(hop, csr=csr, senders=senders, receiver_columns=own)
        return tuple(take_rows(table, senders) for table in sent), self._scaled(found)

    def _scaled(self, hop: Hop) -> Hop:
        hop.__dict__["scale"] = self._scale  # of all nodes, found once
        return hop

    def _masked(self, start: int, stop: int) -> tuple[CSR, Tensor]:
        csr = self._whole.csr.strip(start, stop)
        first = int(self._whole.csr.indptr[start])
        entry_edge = self._whole.entry_edge[first : first + csr.num_entries]
        if self._kept is None:
            return csr, entry_edge
        left = true_indices(self._kept.index_select(0, entry_edge))
        return csr.select(left), entry_edge.index_select(0, left)
