"""What the shares of a step and the steps of an epoch add up to: the same, however many processes compute."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fastglt.system import ranks
from fastglt.system.ranges import Ranges

if TYPE_CHECKING:
    from fastglt.training.hooks import Hooks
    from fastglt.training.loop import Training


@dataclass(eq=False)
class Averages:
    """The gradients of a step's shares, side by side, averaged by the number of their targets.

    A single share of a single process leaves its gradients where they are. Several have a row each: its weight, its
    loss, which tensors have a gradient, the gradients, and what batch norms have counted. Every row is written by
    one process and zero elsewhere, so that adding up the processes' tables is exact.
    """

    leaves: list[Tensor]
    buffers: list[Tensor]
    count: int
    alone: tuple[float, float] = (0.0, 0.0)
    table: Tensor | None = None

    @staticmethod
    def of(training: "Training", count: int) -> "Averages":
        """For a step of so many shares."""
        found = Averages(training.leaves, list(training.network.buffers()), count)
        if count > 1 or ranks.world().size > 1:
            numbers = sum(part.numel() for part in (*found.leaves, *found.buffers))
            kinds = {part.dtype for part in found.leaves} | {torch.float32}
            widest = max(kinds, key=lambda kind: torch.finfo(kind).bits)
            size = (count, 2 + len(found.leaves) + numbers)
            found.table = torch.zeros(size, dtype=widest, device=training.task.device)
        return found

    @contextmanager
    def share(self, place: int) -> Iterator[None]:
        """Compute one share: gradients begin at none, what batch norms count at what they had before the step."""
        before = [part.clone() for part in self.buffers] if self.table is not None else []
        yield
        if self.table is None:
            return
        row = self.table[place]
        flags, start = row[2 : 2 + len(self.leaves)], 2 + len(self.leaves)
        for index, leaf in enumerate(self.leaves):
            if leaf.grad is not None:
                flags[index] = 1
                row[start : start + leaf.numel()] = leaf.grad.flatten()
                leaf.grad = None
            start += leaf.numel()
        for buffer, old in zip(self.buffers, before, strict=True):
            row[start : start + buffer.numel()] = buffer.flatten()
            buffer.copy_(old)
            start += buffer.numel()

    def note(self, place: int, weight: float, loss: float) -> None:
        """Keep what a share weighs and its loss."""
        if self.table is None:
            self.alone = weight, loss
        else:
            self.table[place, 0], self.table[place, 1] = weight, loss

    def finish(self) -> tuple[float, float]:
        """Put the averages in place; returns the weight and the mean loss of all shares together."""
        if self.table is None:
            return self.alone
        table = ranks.world().add_up(self.table, "gradients")
        weights = [float(weight) for weight in table[:, 0].tolist()]
        total = sum(weights)
        if total == 0:
            return 0.0, 0.0
        mean = torch.zeros_like(table[0])
        for weight, row in zip(weights, table, strict=True):  # in this order, whoever computed them
            if weight:
                mean.add_(row, alpha=weight / total)
        start = 2 + len(self.leaves)
        for index, leaf in enumerate(self.leaves):
            part = mean[start : start + leaf.numel()]
            leaf.grad = part.view_as(leaf).to(leaf.dtype, copy=True) if float(mean[2 + index]) > 0 else None
            start += leaf.numel()
        for buffer in self.buffers:
            part = mean[start : start + buffer.numel()].view_as(buffer)
            buffer.copy_(part if buffer.is_floating_point() else part.round())
            start += buffer.numel()
        return total, float(mean[1])


@dataclass(eq=False)
class EpochSums:
    """What is over the whole graph: the gradients of an epoch's steps, weighed by the number of their targets.

    Of several processes each has the sums of the edges that it owns. Every edge is in one share of an epoch at
    most, so that one number is handed over for it.
    """

    edges: Tensor | None
    weights: dict[str, Tensor]
    ranges: Ranges
    weight: float = 0.0
    loss: float = 0.0
    waiting: list[tuple[Tensor, Tensor]] = field(default_factory=list)  # edges and gradients of this step

    @staticmethod
    def of(training: "Training") -> "EpochSums":
        """For what a training needs: nothing where no edges are trained and no gradients summed."""
        mask = training.own_edges
        return EpochSums(
            None if mask is None else torch.zeros_like(mask, requires_grad=False),
            {name: torch.zeros_like(total) for name, total in training.gradient_sum.items()},
            training.ranges,
        )

    def add_edges(self, ids: Tensor, gradient: Tensor | None, weight: float) -> None:
        """Of a share's edges, in their order."""
        if self.edges is None or gradient is None:
            return
        if self.ranges.alone:
            self.edges.index_add_(0, ids, gradient, alpha=weight)
        else:
            self.waiting.append((ids, gradient * weight))

    def hand_over(self) -> None:
        """After a step, bring the gradients of its edges to the processes that own them."""
        if self.edges is not None and not self.ranges.alone:
            self.edges.index_add_(0, *self.ranges.to_owners(self.waiting, self.edges, "edges"))
            self.waiting.clear()

    def add_step(self, training: "Training", weight: float, loss: float) -> None:
        """Of a step whose gradients are in place."""
        self.weight, self.loss = self.weight + weight, self.loss + weight * loss
        training.step_weight = weight
        for name, total in self.weights.items():
            gradient = training.weights[name].grad
            if gradient is not None:
                total.add_(gradient, alpha=weight)

    @torch.no_grad()
    def finish(self, training: "Training", hooks: "Hooks", pulled: Tensor | None) -> float:
        """Move the soft edge mask, add the gradients' sizes up; returns the mean loss."""
        total = max(self.weight, 1.0)
        for name, gradient in self.weights.items():
            training.gradient_sum[name].add_(gradient.div_(total).abs_())
        if self.edges is not None and training.own_edges is not None:
            training.move_edges(self.edges.div_(total), pulled)
        training.ends_epoch = True
        hooks.after_step(training)
        return self.loss / total
