"""Epochs whose steps see parts of the graph: one update of the weights for each step, masks over the whole graph.

A step has a few parts of the graph, in one share or in several. The parts of a share are one graph, with the edges
between them; shares are computed apart, by one process or by several, and their gradients averaged. What belongs to
the whole graph waits for the end of the epoch: the gradient of the soft edge mask, which is then moved once, and
the gradient whose size a method adds up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.func import functional_call

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.graphs.partition import Group, Partition, check_count, divided
from fastglt.graphs.parts import Cutter, Part
from fastglt.graphs.strips import Strips
from fastglt.masks import Mask
from fastglt.models.strips import InStrips, runs_in_strips
from fastglt.system import ranks
from fastglt.system.seeds import derive, set_random_state
from fastglt.tasks.base import Task
from fastglt.training.averages import Averages, EpochSums

if TYPE_CHECKING:
    from fastglt.training.hooks import Hooks
    from fastglt.training.loop import Training

_EDGES = 1 << 24  # that are looked at before their pages are given back


@dataclass(frozen=True, eq=False, kw_only=True)
class Share:
    """What a share of a step gives beside the gradients of weights: its weight, loss and edges' gradients."""

    weight: float  # training targets in it; with a teacher, nodes
    loss: float
    edges: Tensor  # ids in the whole graph
    gradient: Tensor | None  # of these edges' soft mask


class ByParts:
    """The steps of a training by parts, and outputs for the whole graph in strips."""

    def __init__(self, task: Task, *, parts: int, kind: str, parts_per_step: int, shares: int) -> None:
        if type(task).step_in is Task.step_in:
            rule = "parts must be 1 for a task that does not say what a step on a part of the graph is"
            raise InputError(f"{rule} (got {parts} and '{task.name}'); give it a method step_in")
        check_count(task.graph, parts)
        self._task, self._count, self._kind = task, parts, kind
        self._parts_per_step, self._shares = parts_per_step, shares
        self._pruned: dict[tuple[int, ...], tuple[Mask, Graph, Tensor]] = {}
        self._strips: tuple[Mask | None, Strips] | None = None

    def run(self, training: "Training", hooks: "Hooks") -> float:
        """An epoch's steps; returns the mean loss of its targets."""
        seed, sums = derive(training.seed, "steps", training.epoch), EpochSums.of(training)
        given = self._task.graph, self._count, self._kind
        partition, cutter = divided(*given), _cutter(*given)
        steps = partition.steps(seed, parts=self._parts_per_step, shares=self._shares)
        for index, groups in enumerate(steps):
            averages = Averages.of(training, len(groups))
            for place in ranks.world().mine(range(len(groups))):
                with averages.share(place):
                    part = self._part(partition, cutter, groups[place])
                    noise = derive(training.seed, "epoch", training.epoch, "step", index, place)
                    share = self._compute(training, part, groups[place][0], noise)
                    if share is not None:
                        averages.note(place, share.weight, share.loss)
                        sums.add_edges(share.edges, share.gradient, share.weight)
            self._task.graph.release()
            sums.hand_over()
            weight, loss = averages.finish()
            if weight == 0:  # nothing to learn from in these parts
                continue
            training.check_loss(loss)
            sums.add_step(training, weight, loss)
            training.update(hooks, summed=False, ends_epoch=False)
        ranks.world().epochs += 1
        pulls = training.l1[0] > 0 and training.soft_edge_mask is not None
        pulled = self._seen(steps, training.ranges.mine) if pulls else None
        return sums.finish(training, hooks, pulled)

    def _seen(self, steps: list[list[Group]], own: slice) -> Tensor:
        """Which of some edges are in a share of some step: nothing speaks for others, so nothing pulls them."""
        share = torch.empty(self._task.graph.num_nodes, dtype=torch.int32)
        for number, (_, nodes) in enumerate(group for step in steps for group in step):
            share[nodes] = number
        graph, pieces = self._task.graph, list[Tensor]()
        share = share.to(graph.edges.device)
        for source, target in (some.unbind() for some in torch.split(graph.edges[:, own], _EDGES, dim=1)):
            pieces.append(share.index_select(0, source) == share.index_select(0, target))
            graph.release()
        return torch.cat(pieces)

    def _compute(self, training: "Training", part: Part, key: tuple[int, ...], seed: int) -> Share | None:
        """Gradients of one share, left where the optimiser looks for them; None where there is nothing to learn."""
        task, teacher = self._task, training.teacher
        step = task.step_in(part, derive(seed, "targets"))
        taught = None if teacher is None else teacher.within(task, part)
        if step is None and taught is None:
            return None
        set_random_state(seed, task.device)
        graph, ids = self._masked(training.masks.edges, part, key)
        mask = training.soft_edge_mask
        score = None if mask is None else mask.detach().index_select(0, ids).requires_grad_()
        targets = None if step is None or step.nodes is None else part.numbers_of(step.nodes)
        own, every = _outputs(training, part, graph, score, targets, teacher is not None)
        loss = every.sum() * 0.0
        if step is not None:
            loss = task.loss(own, step) * (1.0 if teacher is None else teacher.labels)
        if taught is not None:
            loss = loss + taught.divergence(task, every)
        loss.backward()  # type: ignore[no-untyped-call]
        weight = len(part.nodes) if teacher is not None or targets is None else len(targets)
        gradient = None if score is None else score.grad
        return Share(weight=float(weight), loss=float(loss.detach()), edges=ids, gradient=gradient)

    def _part(self, partition: Partition, cutter: Cutter, group: Group) -> Part:
        """A group's part; single ones that stay the same are cut once."""
        numbers, nodes = group
        nodes = nodes.to(self._task.device)
        if self._task.graph.on_disk is not None:
            return cutter.cut(nodes)
        return (
            cutter.remembered(numbers[0], nodes) if partition.is_fixed and len(numbers) == 1 else cutter.cut(nodes)
        )

    def _masked(self, mask: Mask, part: Part, key: tuple[int, ...]) -> tuple[Graph, Tensor]:
        """A part's graph under a hard mask, and the ids of its edges."""
        if mask.count == mask.size:
            return part.graph, part.edges
        known = self._pruned.get(key)
        if known is not None and known[0] is mask:
            return known[1], known[2]
        graph, ids = part.pruned(mask.kept.to(part.edges.device))
        if part.remembered:
            self._pruned[key] = mask, graph, ids
        return graph, ids

    def outputs(
        self,
        training: "Training",
        score: Tensor | None,
        weights: Mapping[str, Tensor],
        nodes: Tensor | None,
        *,
        whole: bool = False,
    ) -> Tensor | None:
        """The outputs for some targets on the pruned graph, or the whole; None for a network without strips."""
        if not runs_in_strips(training.network):
            return None
        mask = None if whole else training.masks.edges
        if self._strips is None or self._strips[0] is not mask:
            kept = None if mask is None else mask.kept.to(self._task.device)
            self._strips = mask, Strips(self._task.graph, kept)
        given = {f"network.{place}": value for place, value in training.placed(weights).items()}
        inputs = (self._task.x, self._strips[1], score, nodes)
        return functional_call(InStrips(training.network), given, inputs, tie_weights=False)  # type: ignore[no-any-return]


def _outputs(
    training: "Training", part: Part, graph: Graph, score: Tensor | None, targets: Tensor | None, overview: bool
) -> tuple[Tensor, Tensor]:
    """The outputs for a share's targets; and for the part of the task's overview that is in it."""
    task, given = training.task, training.placed(training.soft_weights)

    def compute(nodes: Tensor | None) -> Tensor:
        inputs = (task.x.take(part.nodes), graph, score, nodes)
        return functional_call(training.network, given, inputs, tie_weights=False)  # type: ignore[no-any-return]

    if not task.of_pairs:
        every = compute(None)
        return (every if targets is None else every[targets]), every
    more = task.overview if overview else None
    inside = [] if more is None else [part.numbers_of(more[part.holds(more).all(-1)])]
    own = targets if targets is not None else part.nodes.new_empty((0, 2))
    found = compute(torch.cat([own, *inside]))
    return found[: len(own)], found[len(own) :]


def _cutter(graph: Graph, count: int, kind: str) -> Cutter:
    """What cuts a graph into the parts of a partition, and remembers them: found once for each."""
    known: dict[tuple[int, str], Cutter] = graph.__dict__.setdefault("_cutters", {})
    if (count, kind) not in known:
        known[count, kind] = Cutter(graph)
    return known[count, kind]
