"""A compiled ticket: outputs for nodes of its graph or pairs of them, for new features, for later nodes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fastglt.deploy.compact import known
from fastglt.deploy.layouts import Rows, restore, store
from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.inputs import check_edges
from fastglt.graphs.messages import Hop
from fastglt.models.base import Network
from fastglt.models.links import LinkNetwork
from fastglt.models.programs import Finish, Program
from fastglt.system.modes import ordinary_mode
from fastglt.system.process import is_out_of_memory
from fastglt.tasks import NodeClassification, Task

_TRIED = 1000  # pairs of each kind that an export is compared by


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictor:
    """A ticket's network on its pruned graph, frozen. `compile_ticket` makes one.

    It never changes: `with_features` and `with_nodes` give another one, without a new search or a new trial.
    """

    network: Network  # with the ticket's trained weights
    graph: Graph  # pruned
    x: Features
    score: Tensor | None  # of each edge that is left
    program: Program | None  # None: the network itself is run
    task: type[Task] = NodeClassification  # what outputs mean
    layouts: tuple[str, ...] = ()  # of the program's matrices, or of a user's linear layers
    trials: Mapping[str, float] | None = None  # milliseconds of the layouts that were tried
    rows: tuple[Rows, ...] | None = None  # the features in these layouts; None: stored when they are needed
    labels: Mapping[str, Tensor] = field(default_factory=dict)  # y and the split's masks, to hand on

    @ordinary_mode()
    @torch.no_grad()
    def logits(self, nodes: Tensor | Sequence[int] | Sequence[Sequence[int]] | None = None) -> Tensor:
        """Class scores, one row for each node that is asked for (None: for all).

        For a few nodes only their neighbourhood is touched; a user's model runs on its whole graph. Of a ticket for
        links pairs are asked for, a row of two nodes each, and None gives the rows of all nodes that they are
        decoded from.
        """
        if nodes is None or not isinstance(self.network, LinkNetwork):
            return self._of_nodes(None if nodes is None else self.check(nodes))
        asked, place = torch.unique(self.check(nodes, pairs=True), return_inverse=True)
        return self.decode(self._of_nodes(asked), place)

    @torch.no_grad()
    def decode(self, rows: Tensor, pairs: Tensor) -> Tensor:
        """The outputs for pairs, of a ticket for links, from nodes' rows: those of `logits()`, or some of them."""
        assert isinstance(self.network, LinkNetwork), "only links are decoded"
        return self.network.decoder(rows, pairs)  # type: ignore[no-any-return]

    def _of_nodes(self, chosen: Tensor | None) -> Tensor:
        """What the network gives for some nodes (None: for all), before any decoder."""
        if self.program is None:
            encoder = self.network.encoder if isinstance(self.network, LinkNetwork) else self.network
            with known(self.x), _its_own_errors():
                return encoder(self.x, self.graph, self.score, chosen)  # type: ignore[no-any-return]
        hops = self.hops(chosen)
        senders, rows = hops[0].senders, self._rows
        products = [(each if senders is None else each.take(senders)).product for each in rows]
        if chosen is not None:
            return self.program.prepare(hops, self.score)(products)
        return hops[-1].picked(self._finish(products), None)

    __call__ = logits

    def predict(self, nodes: Tensor | Sequence[int] | Sequence[Sequence[int]] | None = None) -> Tensor:
        """What is predicted for each node, or pair, that is asked for: its class."""
        if nodes is None and self.task.of_pairs:
            raise InputError("pairs must be named, a row of two nodes each (got none)")
        return self.task.decide(self.logits(nodes))

    @property
    def some_pairs(self) -> Tensor | None:
        """A few pairs to try a ticket for links out on, edges and others; None if it is for nodes."""
        if not self.task.of_pairs:
            return None
        edges = self.graph.edges.T[:_TRIED]
        nodes = torch.arange(min(_TRIED, self.graph.num_nodes), device=edges.device)
        return torch.cat([edges, torch.stack([nodes, nodes.flip(0)], 1)])

    def with_features(self, x: ArrayLike) -> "Predictor":
        """This predictor with other features for its nodes."""
        new = Features(self._as_features(x, self.graph.num_nodes))
        rows = None if self.program is None else tuple(restore(rows, new) for rows in self._rows)
        return replace(self, x=new, rows=rows)

    def with_nodes(self, x: ArrayLike, edge_index: ArrayLike) -> "Predictor":
        """This predictor with more nodes: their features, and edges that have at least one of them.

        They are numbered on from the nodes that are there. Their edges are kept, with a score of 1, and each counts
        once; one column for each is enough in an undirected graph.
        """
        features, edges = self._as_features(x, None), torch.as_tensor(edge_index)
        edges = edges if edges.numel() else edges.long()  # an empty list has no type of its own
        _refuse_fields(self.network, self.graph)
        graph, score = _grow(self.graph, self.score, features.shape[0], edges.to(self.graph.edges.device))
        grown = replace(self, graph=graph, score=score, x=self.x.append(features), labels={})
        if self.program is None:
            return grown
        new = Features(features)
        return replace(grown, rows=tuple(rows.append(new.csr, new.values) for rows in self._rows))

    def hops(self, nodes: Tensor | None) -> tuple[Hop, ...]:
        """The messages that a program needs for the outputs of some nodes (None: of all)."""
        assert self.program is not None
        return self.graph.hops(nodes, depth=self.program.num_layers, near=self.program.near)

    def prepare(self) -> None:
        """Store and normalise everything now, so that the first answer does not wait for it."""
        if self.program is not None:
            _ = self._rows, self._finish

    @property
    def live_units(self) -> int | None:
        """The hidden units that are computed; None without a program."""
        return None if self.program is None else self.program.live_units

    @property
    def used_features(self) -> int | None:
        """The features that are read; None without a program."""
        if self.program is None:
            return None
        return int(torch.stack([matrix.any(1) for matrix in self.program.matrices]).any(0).sum())

    def about(self) -> dict[str, Any]:
        """What was decided, as plain values."""
        return {
            "nodes": self.graph.num_nodes,
            "edges": self.graph.num_edges,
            "compiled": self.program is not None,
            "live_units": self.live_units,
            "used_features": self.used_features,
            "layouts": list(self.layouts),
            "trials_ms": None if self.trials is None else dict(self.trials),
        }

    @cached_property
    def _rows(self) -> tuple[Rows, ...]:
        assert self.program is not None
        if self.rows is not None:
            return self.rows
        pairs = zip(self.program.matrices, self.layouts, strict=True)
        return tuple(store(self.x, matrix, layout, self.program.strip) for matrix, layout in pairs)

    @cached_property
    def _finish(self) -> Finish:
        assert self.program is not None
        return self.program.prepare(self.hops(None), self.score)

    def check(self, nodes: Any, *, pairs: bool = False) -> Tensor:
        """Node ids, or pairs of them, as a tensor of its own; what are none is refused."""
        chosen = torch.as_tensor(nodes, device=self.graph.edges.device)
        shaped = chosen.shape[1:] == (2,) if pairs else chosen.dim() == 1
        if not shaped or (chosen.numel() and chosen.dtype not in (torch.int64, torch.int32)):
            rule = (
                "pairs must be whole numbers, a row of two each"
                if pairs
                else "nodes must be whole numbers in a row"
            )
            raise InputError(f"{rule} (got {chosen.dtype}, {tuple(chosen.shape)})")
        wrong = chosen[(chosen < 0) | (chosen >= self.graph.num_nodes)]
        if wrong.numel():
            raise InputError(f"nodes must lie in 0 … {self.graph.num_nodes - 1} (got {int(wrong[0])})")
        return chosen.long().clone()  # hops are remembered by the tensor, which its owner may write into

    def _as_features(self, given: ArrayLike, rows: int | None) -> Tensor:
        """A copy of features that fit, for so many nodes."""
        x = torch.as_tensor(given)
        if x.layout != torch.strided:
            raise InputError(f"the features must be a dense tensor (got {x.layout}); it has to_dense()")
        if x.dim() != 2 or x.shape[1] != self.x.num_features or rows not in (None, x.shape[0]):
            shape = f"[{'nodes' if rows is None else rows}, {self.x.num_features}]"
            raise InputError(f"the features must have shape {shape} (got {list(x.shape)})")
        x = x.detach().to(self.x.device, torch.float32, copy=True)
        if not bool(torch.isfinite(x).all()):
            raise InputError("the features must be finite in float32 (got NaN or infinity)")
        return x


@contextmanager
def _its_own_errors() -> Iterator[None]:
    """What a user's model cannot do with features and nodes that it was not made for."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"the model must run on this data (got {type(error).__name__}: {reason})") from error


def _refuse_fields(network: Network, graph: Graph) -> None:
    """New nodes come with features and edges alone."""
    if network.reads_edge_values and (graph.edge_attr is not None or graph.edge_weight is not None):
        raise InputError("nodes cannot be added to a graph with edge_attr or edge_weight; compile with new data")
    if fields := network.read_fields(graph):
        raise InputError(f"nodes cannot be added where the model reads data.{fields[0]}; compile with new data")


def _grow(graph: Graph, score: Tensor | None, count: int, edge_index: Tensor) -> tuple[Graph, Tensor | None]:
    """A graph with so many more nodes and with edges that have one of them; the scores follow."""
    before, total = graph.num_nodes, graph.num_nodes + count
    check_edges(edge_index, total)
    if edge_index.numel() and bool((edge_index < before).all(0).any()):
        raise InputError(
            f"every new edge must have one of the new nodes, {before} … {total - 1} (got one that has none)"
        )
    both = edge_index if graph.directed else torch.cat([edge_index, edge_index.flip(0)], 1)
    columns = torch.cat([graph.edge_index, torch.unique(both, dim=1)], 1)
    grown = Graph.from_edge_index(columns, total, directed=graph.directed)
    if score is None:
        return grown, None
    keys = graph.edges[0] * total + graph.edges[1]  # ascending, as the grown graph's are
    found = torch.searchsorted(grown.edges[0] * total + grown.edges[1], keys)
    scores = score.new_ones(grown.num_edges)
    scores[found] = score
    return grown, scores
