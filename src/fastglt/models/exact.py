"""Full batch in less memory: each layer for the nodes of one part at a time, from all that they hear.

What nodes send is held for all of them, messages only for a part. Going forwards, a layer keeps its input rows and
nothing else; going backwards, it is computed again part by part. No message is left out and a batch norm sees all
nodes, so that outputs and gradients are those of full batch, up to rounding.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

from fastglt.errors import InputError
from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.graphs.messages import Hop
from fastglt.graphs.partition import check_count, divided
from fastglt.models.base import Backbone, Network
from fastglt.models.links import LinkNetwork
from fastglt.models.strips import StripLayer
from fastglt.system.seeds import derive, own_random_state, set_random_state

Rows = Tensor | None  # None: the data's features


class Division(NamedTuple):
    """How the nodes are divided: into so many parts, found as `graphs.partition` says."""

    parts: int
    kind: str


def compute_by_parts(network: Network, division: Division, graph: Graph) -> None:
    """From now on, let a network's passes go part by part; refused where that cannot be exact."""
    encoder = network.encoder if isinstance(network, LinkNetwork) else network
    reason = encoder.not_exact_by_parts
    if reason is not None:
        rule = "exact must come with a network whose layers go part by part"
        raise InputError(f"{rule} (got {encoder.described}: {reason})")
    if graph.on_disk is not None:
        rule = "exact must come with a graph in memory (got one on disk)"
        raise InputError(f"{rule}; leave exact out, or load the graph whole")
    check_count(graph, division.parts)
    assert isinstance(encoder, Backbone)
    encoder.division = division


def outputs(
    network: Backbone, division: Division, x: Features, graph: Graph, soft_edge_mask: Tensor | None
) -> Tensor:
    """The outputs of all nodes."""
    seed = int(torch.randint(2**62, ()).item()) if network.training else 0
    parts = _parts(graph, division)
    job = _Pass(network=network, layers=list(network.layers_in_strips() or ()), x=x, parts=parts, seed=seed)
    named = dict(network.named_parameters(remove_duplicate=False))
    if not torch.is_grad_enabled():
        return job.read(job.forwards(soft_edge_mask)[-1])
    return _Exact.apply(job, tuple(named), soft_edge_mask, *named.values())  # type: ignore[no-any-return, no-untyped-call]


class _Part(NamedTuple):
    nodes: Tensor
    hop: Hop  # they receive; whoever they hear sends


def _parts(graph: Graph, division: Division) -> list[_Part]:
    """Each part's nodes and the messages that they receive, found once for each graph."""
    known: dict[Division, list[_Part]] = graph.__dict__.setdefault("_heard_by_parts", {})
    if division not in known:
        whole = graph.hops(None, depth=1)[0]
        nodes = divided(graph, *division).parts(0)
        known[division] = [_Part(some, whole.restricted_to(some)) for some in nodes]
    return known[division]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Pass:
    """One pass through a network: what it computes with, apart from parameters and the soft edge mask."""

    network: Backbone
    layers: Sequence[StripLayer]
    x: Features
    parts: Sequence[_Part]
    seed: int

    def forwards(self, soft_edge_mask: Tensor | None) -> list[Rows]:
        """The input rows of each layer, and the last layer's rows."""
        found: list[Rows] = [None]
        with torch.no_grad():
            for layer in range(len(self.layers)):
                found.append(self._layer(layer, found[-1], soft_edge_mask))
        return found

    def read(self, rows: Rows) -> Tensor:
        """The outputs, from the last layer's rows."""
        assert rows is not None
        with self._drawing("read"):
            return self.network.read_out(rows)

    def _layer(self, number: int, rows: Rows, soft_edge_mask: Tensor | None) -> Tensor:
        tables, found = self.sent(number, rows), None
        for place, part in enumerate(self.parts):
            heard, own = self.cut(number, tables, part)
            some = self.received(number, place, heard, own, soft_edge_mask)
            found = some.new_empty(part.hop.degree.numel(), some.shape[1]) if found is None else found
            found[part.nodes] = some
        assert found is not None
        return found

    def sent(self, number: int, rows: Rows) -> tuple[Tensor, ...]:
        """What all nodes send in a layer, and keep to themselves."""
        with self._drawing(number, "send"):
            return self.layers[number].send(self.x.of(None) if rows is None else rows)

    def cut(
        self, number: int, tables: tuple[Tensor, ...], part: _Part
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """What a part's nodes hear of that, and what they have made themselves."""
        senders = part.hop.senders
        assert senders is not None
        heard = tuple(table.index_select(0, senders) for table in tables[: self.layers[number].travel])
        return heard, tuple(table.index_select(0, part.nodes) for table in tables)

    def received(
        self,
        number: int,
        place: int,
        heard: tuple[Tensor, ...],
        own: tuple[Tensor, ...],
        soft_edge_mask: Tensor | None,
    ) -> Tensor:
        """The rows that a layer gives to a part's nodes."""
        with self._drawing(number, "receive", place):
            return self.layers[number].receive(heard, own, self.parts[place].hop, soft_edge_mask)

    @contextmanager
    def _drawing(self, *purpose: object) -> Iterator[None]:
        """Random numbers that are the same when a piece of work is done again."""
        if not self.network.training:
            yield
            return
        with own_random_state(self.x.device):
            set_random_state(derive(self.seed, *purpose), self.x.device)
            yield


class _Exact(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, job: _Pass, names: tuple[str, ...], soft_edge_mask: Tensor | None, *learnt: Tensor
    ) -> Tensor:
        counted = [buffer.clone() for buffer in job.network.buffers()]
        rows = job.forwards(soft_edge_mask)
        ctx.job, ctx.names, ctx.counted, ctx.rows = job, names, counted, rows
        ctx.save_for_backward(soft_edge_mask, *learnt)
        return job.read(rows[-1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        mask, *learnt = ctx.saved_tensors
        wanted = ctx.needs_input_grad[2:]
        leaves = [
            None if tensor is None else tensor.detach().requires_grad_(want)
            for tensor, want in zip((mask, *learnt), wanted, strict=True)
        ]
        sums = _Sums([leaf for leaf in leaves if leaf is not None and leaf.requires_grad])
        named = zip(ctx.names, leaves[1:], strict=True)
        given = {f"network.{name}": leaf for name, leaf in named if leaf is not None}
        work = partial(_backwards, ctx.job, ctx.rows, leaves[0], grads[0], sums)
        with torch.enable_grad(), _counting_again(ctx.job.network, ctx.counted):
            functional_call(_Under(ctx.job.network), given, (work,), tie_weights=False)
        return None, None, *(None if leaf is None else sums.of(leaf) for leaf in leaves)


class _Under(nn.Module):
    """Does something while a network has other parameters."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, work: Callable[[], None]) -> None:
        """Do it."""
        work()


class _Sums:
    """The gradients of some tensors, added up as they come."""

    def __init__(self, leaves: list[Tensor]) -> None:
        self.leaves = leaves
        self._found: list[Tensor | None] = [None] * len(leaves)

    def add(
        self, outputs: Sequence[Tensor], grads: Sequence[Tensor], inputs: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """Go backwards from outputs; returns the gradients of their own inputs."""
        every = [*inputs, *self.leaves]
        own = torch.autograd.grad(outputs, every, grads, allow_unused=True)
        for place, grad in enumerate(own[len(inputs) :]):
            if grad is not None:
                known = self._found[place]
                self._found[place] = grad if known is None else known.add_(grad)
        return list(own[: len(inputs)])

    def of(self, leaf: Tensor) -> Tensor | None:
        """The sum of one."""
        return next((found for one, found in zip(self.leaves, self._found, strict=True) if one is leaf), None)


def _backwards(job: _Pass, rows: list[Rows], soft_edge_mask: Tensor | None, grad: Tensor, sums: _Sums) -> None:
    """Through the read-out and all layers, from the last to the first; rows that were needed are let go."""
    last = rows.pop()
    assert last is not None
    last = last.detach().requires_grad_()
    (of_rows,) = sums.add([job.read(last)], [grad], [last])
    for number in reversed(range(len(job.layers))):
        assert of_rows is not None
        of_rows = _layer_backwards(job, number, rows.pop(), soft_edge_mask, of_rows, sums)


def _layer_backwards(
    job: _Pass, number: int, before: Rows, soft_edge_mask: Tensor | None, grad: Tensor, sums: _Sums
) -> Tensor | None:
    """From the gradient of a layer's rows to that of the rows it was given; None: they are the data's features."""
    before = None if before is None else before.detach().requires_grad_()
    tables = job.sent(number, before)
    of_tables = [torch.zeros_like(table) for table in tables]
    for place, part in enumerate(job.parts):
        heard, own = job.cut(number, tuple(table.detach() for table in tables), part)
        inputs = [table.requires_grad_() for table in (*heard, *own)]
        some = job.received(number, place, heard, own, soft_edge_mask)
        found = sums.add([some], [grad.index_select(0, part.nodes)], inputs)
        of_heard, of_own = found[: len(heard)], found[len(heard) :]
        assert part.hop.senders is not None
        _add_rows(of_tables, part.hop.senders, of_heard)
        _add_rows(of_tables, part.nodes, of_own)
    learnt = [(table, of) for table, of in zip(tables, of_tables, strict=True) if table.requires_grad]
    inputs = [] if before is None else [before]
    of_before = sums.add([table for table, _ in learnt], [of for _, of in learnt], inputs)
    return of_before[0] if of_before else None


def _add_rows(tables: list[Tensor], nodes: Tensor, rows: list[Tensor | None]) -> None:
    """Add the rows of some nodes to the first tables; None: there is nothing to add."""
    for table, some in zip(tables, rows, strict=False):
        if some is not None:
            table.index_add_(0, nodes, some)


@contextmanager
def _counting_again(network: nn.Module, before: list[Tensor]) -> Iterator[None]:
    """Let norms count once more what they had counted; at the end they have counted it once."""
    buffers = list(network.buffers())
    after = [buffer.clone() for buffer in buffers]
    for buffer, old in zip(buffers, before, strict=True):
        buffer.copy_(old)
    yield
    for buffer, new in zip(buffers, after, strict=True):
        buffer.copy_(new)
