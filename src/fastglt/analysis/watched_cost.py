"""The cost of a network that does not say what it computes, found by watching one forward pass.

Counted are the matrix products that PyTorch is asked for (mm, addmm, bmm) and messages, one multiplication for each
number of each: those of PyG's `MessagePassing` layers, else those of our kernels, which run by gather and scatter
meanwhile and send a message from each node to itself too. Not counted: elementwise steps, norms, attention logits
and their softmax, and products that are written as elementwise ones. Features are read dense, as PyG holds them;
PyG's messages are the edge_index (16 bytes each), what is sent and what is received. All else is as in `cost`.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from fastglt.analysis.cost import CostRow, stored_bytes
from fastglt.graphs.features import Features
from fastglt.kernels import Table, use_backend, use_table
from fastglt.masks import Mask, Masks
from fastglt.models.base import Network
from fastglt.models.pyg_checks import message_passing_layers
from fastglt.system.seeds import own_random_state
from fastglt.tasks import Task

_EDGE_BYTES = 16
_FLOAT, _COLUMN, _POINTER = 4, 4, 8  # bytes
_DENSE = Table(features=((math.inf, "dense"),))


def watch(network: Network, task: Task, masks: Masks) -> tuple[CostRow, ...]:
    """A row for each product and each layer's messages, in the order they come; what is left is "other"."""
    graph, was_training = task.graph.prune(masks.edges), network.training
    watcher = _Watcher(network, task, masks.weights)
    hooks = watcher.hooks()
    try:
        with own_random_state(task.device), torch.no_grad(), use_table(_DENSE), use_backend("plain"), watcher:
            network.eval()(Features(task.x.dense), graph, None, task.edge_targets)
    finally:
        network.train(was_training)
        for hook in hooks:
            hook.remove()
    return watcher.finish()


class _Watcher(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every product that PyTorch computes, and knows which operand is which parameter."""

    def __init__(self, network: Network, task: Task, masks: Mapping[str, Mask]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows: list[CostRow] = []
        self.x, self.network = task.x.dense, network
        self.parameters = dict(network.named_parameters())
        self.masks = {name: masks.get(name) or Mask.full(value.shape) for name, value in self.parameters.items()}
        self.unused = dict(self.masks)
        self.names = {part: name or "model" for name, part in network.public.named_modules()}
        self.layers = message_passing_layers(network.public)
        self.running: list[str] = ["model"]  # the modules that are at it, the innermost last

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm"):
            self._product(args[-2], args[-1], out)
        elif name in ("index_add", "index_add_") and not self.layers:
            self._messages(args[3], out)
        return out

    def hooks(self) -> list[Any]:
        """Listen to the layers that send messages or, if they do so by our kernels, to all of them."""
        if self.layers:
            return [hook for layer in self.layers for hook in self._listen(layer, self.names[layer])]
        parts = [(part, name) for part, name in self.names.items() if part is not self.network.public]
        before = [part.register_forward_pre_hook(self._enter(name)) for part, name in parts]
        return [*before, *(part.register_forward_hook(self._leave) for part, _ in parts)]

    def finish(self) -> tuple[CostRow, ...]:
        """The rows, with the parameters that no product used."""
        left = sum(mask.count for mask in self.unused.values())
        moved = sum(self.parameters[name].nbytes for name in self.unused)
        other = CostRow(layer="rest", kind="other", parameters=left, macs=0, macs_paper=0, bytes=moved)
        return (*self.rows, other) if self.unused else tuple(self.rows)

    def _enter(self, name: str) -> Any:
        def enter(_part: nn.Module, _inputs: Any) -> None:
            self.running.append(name)

        return enter

    def _leave(self, _part: nn.Module, _inputs: Any, _output: Any) -> None:
        self.running.pop()

    def _listen(self, layer: Any, name: str) -> list[Any]:
        """Count a PyG layer's messages each time it sends some."""
        sent: list[Tensor] = []

        def after_message(_layer: Any, _inputs: Any, output: Tensor) -> None:
            sent.append(output)

        def after_propagate(_layer: Any, _inputs: Any, output: Tensor) -> None:
            messages = sum(part.shape[_layer.node_dim] for part in sent)
            numbers = sum(part.numel() for part in sent)
            moved = _EDGE_BYTES * messages + sum(part.nbytes for part in (*sent, output))
            sent.clear()
            self._add_messages(name, numbers, moved)

        return [
            layer.register_message_forward_hook(after_message),
            layer.register_propagate_forward_hook(after_propagate),
        ]

    def _messages(self, sent: Tensor, received: Tensor) -> None:
        """What a sparse product of ours adds up: the pattern in compressed rows, a factor each, rows in and out."""
        entries, rows = sent.shape[0], received.shape[0]
        pattern = _POINTER * (rows + 1) + (_COLUMN + _FLOAT) * entries
        self._add_messages(self.running[-1], sent.numel(), pattern + 2 * received.nbytes)

    def _add_messages(self, layer: str, numbers: int, moved: int) -> None:
        self.rows.append(
            CostRow(layer=layer, kind="aggregation", parameters=0, macs=numbers, macs_paper=0, bytes=moved)
        )

    def _product(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        """The number of pairs of a non-zero feature, or any other number, and a kept weight."""
        owner, kept = self._owner(right)
        swapped = owner is None and self._owner(left)[0] is not None
        if swapped:  # weight times columns
            left, right = right.mT, left.mT
            owner, kept = self._owner(right)
        on_features = left.shape == self.x.shape and torch.equal(left.to(self.x.dtype), self.x)
        used = (left != 0) if on_features else torch.ones_like(left, dtype=torch.bool)
        weight_uses = used.sum(-2).unsqueeze(-1) * kept
        parameters = 0
        moved = left.nbytes + out.nbytes + right.nbytes
        if owner is not None:
            moved += stored_bytes(self.masks[owner]) - right.nbytes
            parameters = self.masks[owner].count if self.unused.pop(owner, None) is not None else 0
        self.rows.append(
            CostRow(
                layer=self.network.public_name(owner or "").rpartition(".")[0] or "model",
                kind="linear",
                parameters=parameters,
                macs=int(weight_uses.sum()),
                macs_paper=int(kept.sum()) * left.shape[-2],
                bytes=moved,
            )
        )

    def _owner(self, operand: Tensor) -> tuple[str | None, Tensor]:
        """The parameter that an operand is a view of, and where it is kept."""
        start = operand.untyped_storage().data_ptr()
        for name, parameter in self.parameters.items():
            if parameter.untyped_storage().data_ptr() == start and parameter.is_contiguous():
                kept = self.masks[name].kept.to(operand.device)
                offset = operand.storage_offset() - parameter.storage_offset()
                return name, kept.as_strided(operand.shape, operand.stride(), offset)
        return None, torch.ones_like(operand, dtype=torch.bool)
