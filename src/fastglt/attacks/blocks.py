"""Random block coordinate descent on edges, as PR-BCD (Geisler et al., NeurIPS 2021), on our sparse kernels.

All pairs of nodes are too many to look at. So a block of pairs is drawn; by how much each of them is changed is
trained for some steps, a new edge added or an old one taken away; pairs that did not help make room for others. In
the end exactly as many pairs are changed as the budget allows. Memory is linear in edges and block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fastglt.attacks.surrogate import Pattern, Surrogate
from fastglt.errors import InputError, check_seed, require
from fastglt.system.seeds import derive
from fastglt.tasks import Task
from fastglt.tasks.node_classification import NodeClassification

Tell = Callable[[str], None]
_TINY = 1e-7  # where a pair that was just drawn starts
_SAMPLES = 10  # of changes that are tried in the end


@dataclass(frozen=True, eq=False, kw_only=True)
class Attack:
    """The edges after an attack, and what was changed."""

    edges: Tensor  # int64 [2, edges], source < target
    added: Tensor  # int64 [2, …]
    removed: Tensor
    loss_before: float
    loss_after: float
    wrong_before: float  # share of attacked nodes for which the surrogate predicts another class than before: 0
    wrong_after: float


@dataclass(frozen=True, kw_only=True)
class AttackSettings:
    """How the attack searches."""

    steps: int = 125  # of gradient ascent
    fresh: int = 100  # steps in which the block takes new pairs; the rest only settles
    block: int = 250_000  # pairs that are looked at at a time; twice as many as are changed at least
    width: int = 64  # hidden units of the network that is attacked
    epochs: int = 200  # that it is trained for
    lr: float = 10.0  # of the changes, for the whole budget
    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        lengths = {name: getattr(self, name) for name in ("steps", "block", "width", "epochs")}
        require("be a whole number", **lengths, fresh=self.fresh)
        require("be at least 1", **lengths)
        require("not be negative", fresh=self.fresh)
        require("be positive", lr=self.lr)


def attack_task_edges(
    task: Task,
    *,
    rate: float,
    settings: AttackSettings | None = None,
    surrogate: Surrogate | None = None,
    tell: Tell | None = None,
) -> Attack:
    """Change round(rate × edges) pairs so that a GCN errs on nodes that are not trained on; test labels are unused.

    What those nodes should be is what the GCN predicts on the graph as it is.
    """
    chosen, say = settings or AttackSettings(), tell or (lambda what: None)
    checked, budget = _check(task, rate)
    if surrogate is None:
        say("training the network that is attacked")
        shape = {"width": chosen.width, "epochs": chosen.epochs}
        surrogate = Surrogate.train(checked, **shape, seed=derive(chosen.seed, "surrogate"))
    search = _Search(checked, surrogate, budget, chosen)
    for step in range(chosen.steps):
        search.step(step)
        say(f"step {step + 1} of {chosen.steps}, loss {search.loss:.3f}")
    return search.finish()


class _Search:
    """Pairs under consideration, and by how much each of them is changed."""

    def __init__(
        self, task: NodeClassification, surrogate: Surrogate, budget: int, settings: AttackSettings
    ) -> None:
        self._task, self._surrogate, self._budget, self._settings = task, surrogate, budget, settings
        self._nodes = task.graph.num_nodes
        most = self._nodes * (self._nodes - 1) // 2
        self._size = min(max(settings.block, 2 * budget), most)  # of a full block: as many again have room
        self._edges = _keys(task.graph.edges, self._nodes).sort().values
        self._rng = np.random.default_rng(derive(settings.seed, "pairs"))
        everywhere = Pattern.of(self._pairs(self._edges), self._nodes)
        with torch.no_grad():
            before = surrogate.outputs(everywhere, torch.ones(len(self._edges)))
        self._labels = before.argmax(-1)
        self._labels[task.train] = task.y[task.train]
        self._attacked = task.unlabelled
        self.loss_before, self.loss = (float(self._loss(before)),) * 2
        self._block, self._change = torch.empty(0, dtype=torch.int64), torch.empty(0)
        self._refill()

    def step(self, number: int) -> None:
        """One step uphill; then the changes are cut back to the budget, and pairs of no use are exchanged."""
        loss, slope = self._slope()
        rate = self._settings.lr * self._budget / max(1, len(self._block)) / max(1.0, number / 10) ** 0.5
        size = float(slope.abs().max())
        self.loss = loss
        if size > 0:
            self._change = project(self._change + rate * slope / slope.norm() * len(slope) ** 0.5, self._budget)
        if number + 1 < self._settings.fresh:
            used = self._change > _TINY
            if int(used.sum()) > len(self._block) // 2:  # half of the block stays for new pairs
                least = self._change.topk(max(1, len(self._block) // 2)).values[-1]
                used = self._change > max(float(least), _TINY)
            self._block, self._change = self._block[used], self._change[used]
            self._refill()

    def finish(self) -> Attack:
        """Change exactly as many pairs as the budget allows: the best of several draws by the trained changes."""
        best: tuple[float, Tensor] | None = None
        for sample in range(_SAMPLES):
            noise = torch.zeros_like(self._change)
            if sample:  # the first are simply the largest
                noise = torch.from_numpy(self._rng.gumbel(size=len(noise))).float()
            order = (self._change.clamp(min=1e-12).log() + noise).argsort(descending=True)
            pairs = self._block[order[: self._budget]]
            loss = self._loss_of(pairs)
            if best is None or loss > best[0]:
                best = loss, pairs
        assert best is not None
        return self._result(*best)

    def _result(self, loss: float, pairs: Tensor) -> Attack:
        there = torch.isin(pairs, self._edges)
        kept = self._edges[~torch.isin(self._edges, pairs[there])]
        after = torch.cat([kept, pairs[~there]]).sort().values
        outputs = self._surrogate.outputs(Pattern.of(self._pairs(after), self._nodes), torch.ones(len(after)))
        wrong = (outputs.argmax(-1) != self._labels)[self._attacked].double().mean()
        return Attack(
            edges=self._pairs(after),
            added=self._pairs(pairs[~there]),
            removed=self._pairs(pairs[there]),
            loss_before=self.loss_before,
            loss_after=loss,
            wrong_before=0.0,
            wrong_after=float(wrong),
        )

    def _loss_of(self, changed: Tensor) -> float:
        """The loss if some pairs are changed wholly."""
        there = torch.isin(changed, self._edges)
        kept = self._edges[~torch.isin(self._edges, changed[there])]
        after = torch.cat([kept, changed[~there]]).sort().values
        with torch.no_grad():
            outputs = self._surrogate.outputs(Pattern.of(self._pairs(after), self._nodes), torch.ones(len(after)))
            return float(self._loss(outputs))

    def _slope(self) -> tuple[float, Tensor]:
        """The loss at the changes as they are, and its gradient by them."""
        place = torch.searchsorted(self._edges, self._block).clamp(max=len(self._edges) - 1)
        there = self._edges[place] == self._block
        pairs = torch.cat([self._edges, self._block[~there]])
        change = self._change.clone().requires_grad_()
        of_edges = torch.ones(len(self._edges)).index_add(0, place[there], -change[there])
        outputs = self._surrogate.outputs(
            Pattern.of(self._pairs(pairs), self._nodes), torch.cat([of_edges, change[~there]])
        )
        loss = self._loss(outputs)
        (slope,) = torch.autograd.grad(loss, change)
        return float(loss.detach()), slope

    def _loss(self, outputs: Tensor) -> Tensor:
        """tanh of the margin by which attacked nodes miss their class: those that are lost anyhow count little."""
        rows = outputs.log_softmax(-1)[self._attacked]
        own = self._labels[self._attacked].unsqueeze(1)
        right = rows.gather(1, own).squeeze(1)
        other = rows.scatter(1, own, -torch.inf).amax(1)
        return torch.tanh(other - right).mean()

    def _refill(self) -> None:
        """Draw pairs until the block is full; it has none twice, and as many as are to be changed in any case."""
        if self._size == self._nodes * (self._nodes - 1) // 2 and not len(self._block):
            self._block = self._all_pairs()
        for _ in range(20):
            lacking = self._size - len(self._block)
            if lacking <= 0:
                break
            ends = torch.from_numpy(self._rng.integers(0, self._nodes, (2, lacking + lacking // 8 + 8)))
            drawn = torch.from_numpy(np.unique(_keys(ends[:, ends[0] != ends[1]], self._nodes).numpy()))
            fresh = drawn[~torch.isin(drawn, self._block)]
            self._block = torch.cat(
                [self._block, fresh[torch.from_numpy(self._rng.permutation(len(fresh)))][:lacking]]
            )
        if len(self._block) < self._budget:  # of nearly all pairs, draws miss some
            others = self._all_pairs()
            others = others[~torch.isin(others, self._block)]
            self._block = torch.cat([self._block, others[: self._size - len(self._block)]])
        self._change = torch.cat([self._change, torch.full((len(self._block) - len(self._change),), _TINY)])

    def _all_pairs(self) -> Tensor:
        return _keys(torch.triu_indices(self._nodes, self._nodes, 1), self._nodes)

    def _pairs(self, keys: Tensor) -> Tensor:
        return torch.stack([keys // self._nodes, keys % self._nodes])


def project(change: Tensor, budget: int) -> Tensor:
    """The nearest changes in [0, 1] whose sum is the budget at most.

    >>> [round(value, 4) for value in project(torch.tensor([0.9, 0.7, -1.0]), 1).tolist()]
    [0.6, 0.4, 0.0]
    """
    if float(change.clamp(0, 1).sum()) <= budget:
        return change.clamp(0, 1)
    low, high = float(change.min()) - 1, float(change.max())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float((change - middle).clamp(0, 1).sum()) > budget else (low, middle)
    return (change - high).clamp(0, 1)


def _keys(pairs: Tensor, nodes: int) -> Tensor:
    """A pair as one number, the smaller node first."""
    return pairs.amin(0) * nodes + pairs.amax(0)


def _check(task: Task, rate: float) -> tuple[NodeClassification, int]:
    require("lie in (0, 1]", rate=rate)
    if not isinstance(task, NodeClassification) or task.num_outputs < 2:
        raise InputError(f"the attack is on predicted classes (got the task '{task.name}')")
    if task.graph.directed:
        raise InputError("the attack is on undirected graphs (got a directed one)")
    budget = round(rate * task.graph.num_edges)
    if budget < 1:
        raise InputError(f"rate must change an edge at least (got {rate} of {task.graph.num_edges})")
    return task, budget
