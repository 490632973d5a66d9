"""What one forward pass over all nodes costs, operation by operation.

`macs` is what is really needed: products with the features' zeros and the pruned weights left out, messages along
kept edges and from each node to itself, attention. `macs_paper` is what the paper's tables count: dense products
times the share of kept weights; for GAT also the attention of the kept edges. Additions alone, activations, exp
and dropout (which is off) are not counted. A decoder answers for as many pairs as the whole graph has edges.

`bytes` is what has to be read and written if every operation reads each operand and writes each result once, in
single precision. A graph is in compressed rows (8 bytes a row, 4 a column number, 4 a coefficient of each head),
norms prepared beforehand; features are as our kernels hold them, compressed (8 a row, 8 a non-zero) or dense; a
weight matrix is in the smaller of the two forms.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fastglt.masks import Mask, Masks
from fastglt.models.base import Network
from fastglt.models.operations import Aggregation, Attention, Linear, Operation
from fastglt.system.container import own_copies, to_bytes
from fastglt.tasks import Task

Kind = Literal["linear", "attention", "aggregation", "other"]
_FLOAT, _COLUMN, _POINTER = 4, 4, 8  # bytes


@dataclass(frozen=True, kw_only=True)
class CostRow:
    """The cost of one operation."""

    layer: str
    kind: Kind
    parameters: int  # that are kept
    macs: int
    macs_paper: int
    bytes: int  # read and written


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a network on a graph; every total is the sum of its rows."""

    edges: int  # that are kept
    rows: tuple[CostRow, ...]

    @property
    def parameters(self) -> int:
        """Kept weights, and all that cannot be pruned."""
        return sum(row.parameters for row in self.rows)

    @property
    def macs(self) -> int:
        """Multiplications that are really needed."""
        return sum(row.macs for row in self.rows)

    @property
    def macs_paper(self) -> int:
        """Multiplications as papers count them."""
        return sum(row.macs_paper for row in self.rows)

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return sum(row.bytes for row in self.rows)


def count_macs(network: Network, task: Task, masks: Masks) -> Cost:
    """The cost of a network on a graph, both under masks.

    A network that does not say what it computes, such as a user's model, is run once and watched (`watched_cost`):
    its matrix products and its messages are counted, whatever else it computes is not.
    """
    operations = network.operations
    if not operations:
        from fastglt.analysis.watched_cost import watch

        return Cost(edges=masks.edges.count, rows=watch(network, task, masks))
    counter = _Counter(network, task, masks)
    return Cost(edges=masks.edges.count, rows=tuple(counter.row(operation) for operation in operations))


def stored_bytes(mask: Mask) -> int:
    """What a pruned matrix takes, dense or in compressed rows, whichever is less.

    >>> stored_bytes(Mask([[1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]]))  # 64 when dense
    40
    """
    dense = _FLOAT * mask.size
    if len(mask.shape) < 2:
        return dense
    compressed = _POINTER * (mask.shape[0] + 1) + (_FLOAT + _COLUMN) * mask.count
    return min(dense, compressed)


def dense_file_bytes(network: Network) -> int:
    """What the whole network takes in a file: its state dict as safetensors."""
    return len(to_bytes(own_copies(network.state_dict()), {}))


class _Counter:
    """Counts each kind of operation on one graph."""

    def __init__(self, network: Network, task: Task, masks: Masks) -> None:
        self.nodes, self.pairs = task.graph.num_nodes, task.graph.num_edges
        directions = 1 if task.graph.directed else 2
        self.messages = masks.edges.count * directions
        self.entries = self.messages + self.nodes  # of the sparse matrix: everybody hears itself
        self.pattern_bytes = _POINTER * (self.nodes + 1) + _COLUMN * self.entries
        self.x = task.x
        full = {name: Mask.full(value.shape) for name, value in network.named_parameters()}
        self.kept: Mapping[str, Mask] = {**full, **masks.weights}

    def row(self, operation: Operation) -> CostRow:
        """One line of the account."""
        kind, (macs, paper, moved) = self.count(operation)
        kept = [self.kept[name] for name in operation.parameters]
        return CostRow(
            layer=operation.layer,
            kind=kind,
            parameters=sum(mask.count for mask in kept),
            macs=macs,
            macs_paper=paper,
            bytes=moved + sum(stored_bytes(mask) for mask in kept),
        )

    def count(self, operation: Operation) -> tuple[Kind, tuple[int, int, int]]:
        """What is counted, and the multiplications, as needed and as papers count, and the bytes."""
        if isinstance(operation, Linear):
            return "linear", self.linear(operation)
        if isinstance(operation, Attention):
            return "attention", self.attention(operation)
        return "aggregation", self.aggregation(operation)

    def linear(self, operation: Linear) -> tuple[int, int, int]:
        """A non-zero of the input for each kept weight of its row."""
        mask = self.kept[operation.weight]
        used = self.users(operation)
        macs = int((used * mask.kept.cpu().sum(1)).sum())
        rows = self.rows(operation)
        moved = self.input_bytes(operation) + _FLOAT * rows * mask.shape[1]
        return macs, rows * mask.count, moved

    def rows(self, operation: Linear) -> int:
        """How many rows a product has."""
        return self.pairs if operation.per_pair else self.nodes

    def aggregation(self, operation: Aggregation) -> tuple[int, int, int]:
        """A multiplication for each number of each message."""
        rows = 2 * _FLOAT * self.nodes * operation.width  # sent and received
        coefficients = _FLOAT * self.entries * operation.heads
        return self.entries * operation.width, 0, self.pattern_bytes + coefficients + rows

    def attention(self, operation: Attention) -> tuple[int, int, int]:
        """Both halves of the attention logits, and a division by the softmax's sum for each message and head.

        (x·W)·a = x·(W·a): whichever needs fewer multiplications.
        """
        vectors, weight = [self.kept[name] for name in operation.parameters], self.kept[operation.product.weight]
        heads, width = vectors[0].shape
        halves = 2 * heads * _FLOAT * self.nodes
        per_unit = sum(vector.kept.cpu().flatten().long() for vector in vectors)
        assert isinstance(per_unit, Tensor)
        by_output = self.nodes * int(per_unit.sum())
        by_weight = int((weight.kept.cpu().sum(0) * per_unit).sum())
        by_weight += int(self.users(operation.product).sum()) * 2 * heads
        if by_output <= by_weight:
            read = _FLOAT * self.nodes * heads * width
        else:
            read = stored_bytes(weight) + 2 * _FLOAT * weight.shape[0] * 2 * heads
            read += self.input_bytes(operation.product)
        moved = read + 2 * halves + self.pattern_bytes + _FLOAT * self.entries * heads
        paper = self.messages * 2 * heads * width
        return min(by_output, by_weight) + self.entries * heads, paper, moved

    def users(self, operation: Linear) -> Tensor:
        """How many nodes, or pairs, have a number other than zero in each row of the weight matrix."""
        if operation.on_features:
            return torch.bincount(self.x.csr.indices, minlength=self.x.num_features).cpu()
        return torch.full((self.kept[operation.weight].shape[0],), self.rows(operation))

    def input_bytes(self, operation: Linear) -> int:
        """What the input of a product takes."""
        if operation.on_features and self.x.is_sparse:
            return _POINTER * (self.nodes + 1) + (_FLOAT + _COLUMN) * self.x.num_nonzero
        return _FLOAT * self.rows(operation) * self.kept[operation.weight].shape[0]
