"""What travels between server and clients, as bytes: kept weights, a mask once, and a few numbers.

A message is a safetensors file in memory. `values` has the kept weights of all prunable matrices, then all that is
not pruned (biases), as one vector of float32 in the order of the network's state. `mask` has a bit for each
prunable weight. What comes from the other side may be anything: `Reply.read` raises a ValueError for what it
cannot use.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from fastglt.masks import Mask
from fastglt.models.base import Network
from fastglt.system.container import nan_as_null, read_meta, read_tensors, to_bytes
from fastglt.tickets.mask_bits import pack, unpack

DENSE = "dense"  # stands for the digest of no mask
TRAIN, EVALUATE = "train", "evaluate"


@dataclass(frozen=True)
class Layout:
    """In which order a network's numbers travel."""

    prunable: dict[str, tuple[int, ...]]  # shapes by name
    others: dict[str, tuple[int, ...]]

    @staticmethod
    def of(network: Network) -> "Layout":
        """Prunable matrices first, then whatever else has real numbers."""
        state = {name: value for name, value in network.state_dict().items() if value.is_floating_point()}
        prunable = {name: tuple(state[name].shape) for name in network.prunable}
        return Layout(prunable, {n: tuple(value.shape) for n, value in state.items() if n not in prunable})

    @property
    def prunable_size(self) -> int:
        """How many weights a mask decides on."""
        return sum(torch.Size(shape).numel() for shape in self.prunable.values())

    def vector(self, state: Mapping[str, Tensor], mask: Mask | None) -> Tensor:
        """What travels of a state."""
        weights = torch.cat([state[name].detach().flatten().float().cpu() for name in self.prunable])
        rest = [state[name].detach().flatten().float().cpu() for name in self.others]
        return torch.cat([weights if mask is None else weights[mask.kept], *rest])

    def length(self, mask: Mask | None) -> int:
        """How many numbers travel."""
        others = sum(torch.Size(shape).numel() for shape in self.others.values())
        return others + (self.prunable_size if mask is None else mask.count)

    def state(self, vector: Tensor, mask: Mask | None) -> dict[str, Tensor]:
        """The inverse of `vector`; pruned weights are zero."""
        count = self.prunable_size if mask is None else mask.count
        weights, rest = vector[:count], vector[count:]
        if mask is not None:
            whole = torch.zeros(self.prunable_size)
            whole[mask.kept] = weights
            weights = whole
        found: dict[str, Tensor] = {}
        for shapes, numbers in ((self.prunable, weights), (self.others, rest)):
            parts = torch.split(numbers, [torch.Size(shape).numel() for shape in shapes.values()])
            found |= {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        return found

    def masks(self, mask: Mask | None) -> dict[str, Mask]:
        """A mask for each matrix."""
        every = torch.ones(self.prunable_size, dtype=torch.bool) if mask is None else mask.kept
        parts = torch.split(every, [torch.Size(shape).numel() for shape in self.prunable.values()])
        return {n: Mask(part.reshape(shape)) for (n, shape), part in zip(self.prunable.items(), parts, strict=True)}


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the server asks of a client."""

    kind: str  # train, or evaluate
    round: int  # from 1
    mask_digest: str
    values: Tensor
    mask: Tensor | None = None  # its bits, for clients that do not have it yet

    def write(self) -> bytes:
        """As it travels."""
        meta = {"kind": self.kind, "round": self.round, "mask": self.mask_digest}
        tensors = {"values": self.values, **({} if self.mask is None else {"mask": self.mask})}
        return to_bytes(tensors, meta)

    @staticmethod
    def read(content: bytes, layout: Layout) -> "tuple[Order, Mask | None]":
        """The inverse, and the mask, where it comes along."""
        meta, tensors = read_meta(content), read_tensors(content)
        bits = tensors.get("mask")
        order = Order(kind=meta["kind"], round=meta["round"], mask_digest=meta["mask"], values=tensors["values"])
        return order, None if bits is None else unpack(bits, [layout.prunable_size])


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a client sends back: its weights after local training, and how the weights that it got did."""

    client: int
    round: int
    mask_digest: str
    train_nodes: int = 0  # that it has trained on; 0: it has no weights to tell
    scores: Mapping[str, float] = field(default_factory=dict)  # val, test: of the weights that it was sent
    counts: Mapping[str, int] = field(default_factory=dict)  # on how many nodes
    values: Tensor | None = None

    def write(self) -> bytes:
        """As it travels."""
        meta = {name: value for name, value in asdict(self).items() if name != "values"}
        return to_bytes({} if self.values is None else {"values": self.values}, nan_as_null(meta))

    @staticmethod
    def read(content: bytes, *, round: int, mask_digest: str, length: int) -> "Reply":
        """The reply, if it can be used in this round; else a ValueError that says why not."""
        meta, tensors = read_meta(content), read_tensors(content)
        if meta.get("round") != round:
            raise ValueError(f"it answers round {meta.get('round')}")
        if meta.get("mask_digest") != mask_digest:
            raise ValueError("it has another mask")
        nodes, values = meta.get("train_nodes"), tensors.get("values")
        if not isinstance(nodes, int) or isinstance(nodes, bool) or not 0 <= nodes < 2**40:
            raise ValueError(f"it says that it has trained on {nodes!r} nodes")
        if nodes and (values is None or values.shape != (length,) or values.dtype != torch.float32):
            got = "none" if values is None else f"{values.dtype}, shape {list(values.shape)}"
            raise ValueError(f"its weights have a wrong shape ({got} instead of {length} numbers)")
        if values is not None and not bool(torch.isfinite(values).all()):
            raise ValueError("its weights are not finite")
        scores, counts = _numbers(meta.get("scores")), _numbers(meta.get("counts"))
        return Reply(
            client=meta.get("client", -1),
            round=round,
            mask_digest=mask_digest,
            train_nodes=nodes,
            scores=scores,
            counts={name: int(value) for name, value in counts.items()},
            values=values if nodes else None,
        )


def _numbers(found: Any) -> dict[str, float]:
    if not isinstance(found, dict):
        return {}
    return {n: value for n, value in found.items() if isinstance(value, int | float) and 0 <= value < 2**40}


def bits(mask: Mask) -> Tensor:
    """A mask as it travels."""
    return pack(mask)
