"""AdaGLT (Zhang et al., ICLR'24): thresholds that are learned beside the weights decide what is pruned."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fastglt.errors import require
from fastglt.masks import flatten
from fastglt.methods.base import Method, cut_lowest, train_sparse
from fastglt.system.seeds import derive, uniform
from fastglt.training.loop import Training

SEARCH, TRAIN = "search", "train"
EDGES, WEIGHTS, SCORER = "edges", "weights/", "scorer/"  # names of what is trained beside the network
UNIT = "unit"  # of the weights' thresholds: the mean |w| of the network at first
_EDGE_START = -1.0  # three standard deviations below the mean strength: hardly an edge is pruned at first


@dataclass(frozen=True, kw_only=True)
class AdaGLT(Method):
    """Keep weights with |w| > t, each layer with a t of its own, and edges whose strength exceeds another t.

    A small network rates an edge by its end nodes' features, alike for both directions of an undirected edge, and
    one edge mask serves all layers. The pressure Σ exp(−t) raises the thresholds, of edges or of weights, until the
    target's share is pruned. All layers' rise at the same speed: were it a share of each layer's own size, a small
    layer would be lost before a large one has shrunk. When edges and weights are close to their targets, at the
    latest after half of the epochs, what lies lowest by strength − t and |w| − t is cut by exact count, and the
    ticket is trained from the weights it has.
    """

    name = "adaglt"
    summary = "learned thresholds for weights and for edge strengths from node features"
    paper = "Zhang et al., Graph Lottery Ticket Automated, ICLR 2024"

    pressure: float = 10.0  # weight of Σ exp(−t) in the loss
    threshold_lr: float = 0.03  # how far a threshold moves in an epoch: times the mean |w|, or the edges' 3 sigma
    tolerance: float = 0.02  # how close the sparsities must come to their targets for the cut
    edge_hidden: int = 32  # width of the network that rates edges

    def __post_init__(self) -> None:
        require("be positive", pressure=self.pressure, threshold_lr=self.threshold_lr, tolerance=self.tolerance)
        require("be at least 1", edge_hidden=self.edge_hidden)

    def begin(self, training: Training) -> None:
        """Train thresholds and strengths for whatever is to be pruned; little is, at first."""
        extra: dict[str, Tensor] = {}
        if self.targets.graph_sparsity > 0:
            extra |= {EDGES: _zeros(), **self._scorer(training)}
        if self.targets.weight_sparsity > 0:
            extra |= {WEIGHTS + name: _zeros() for name in training.weights}
            training.method_state = {UNIT: flatten(training.weights).detach().abs().mean()}
        training.begin_stage(SEARCH, extra=extra)

    def soften(self, training: Training) -> tuple[Tensor | None, dict[str, Tensor]]:
        """Compute with what exceeds its threshold."""
        if training.stage != SEARCH:
            return super().soften(training)
        edges, weights = self.edge_margins(training), self.weight_margins(training)
        kept = {name: training.weights[name] * step(margins) for name, margins in weights.items()}
        return None if edges is None else step(edges), kept

    def before_step(self, training: Training) -> None:
        """Raise the thresholds of a mask that is not sparse enough; those of one that is lose their momentum.

        They would coast far beyond the target otherwise. The task's loss moves them either way.
        """
        if training.stage != SEARCH:
            return
        for mask, (sparsity, target) in self.progress(training).items():
            for name in (name for name in training.extra if name.startswith(mask)):
                if sparsity < target:
                    pressure = self.pressure * torch.exp(-self.threshold(training, name))
                    pressure.backward()  # type: ignore[no-untyped-call]
                else:
                    training.optimizer.state.pop(training.extra[name], None)

    def after_epoch(self, training: Training) -> None:
        """Cut when edges and weights are close to their targets, or when half of the epochs are over."""
        if training.stage != SEARCH:
            return
        progress = self.progress(training).values()
        close = all(abs(sparsity - target) <= self.tolerance for sparsity, target in progress)
        if close or training.epoch == self.epochs // 2:
            with torch.no_grad():
                edges, weights = self.edge_margins(training), self.weight_margins(training)
            cut_lowest(
                training,
                self.targets.graph_sparsity,
                self.targets.weight_sparsity,
                edges=edges,
                weights=flatten(weights) if weights else None,
            )
            training.method_state = {}
            train_sparse(training, self.targets, stage=TRAIN, soft_edges=False)

    @torch.no_grad()
    def progress(self, training: Training) -> dict[str, tuple[float, float]]:
        """How sparse the edges and the weights are, and how sparse they are to be."""
        edges, weights = self.edge_margins(training), self.weight_margins(training)
        found = {} if edges is None else {EDGES: (pruned(edges), self.targets.graph_sparsity)}
        if weights:
            found[WEIGHTS] = (pruned(*weights.values()), self.targets.weight_sparsity)
        return found

    def edge_margins(self, training: Training) -> Tensor | None:
        """How far the edges' strengths lie above their threshold."""
        return edge_strengths(training) - self.threshold(training, EDGES) if EDGES in training.extra else None

    def weight_margins(self, training: Training) -> dict[str, Tensor]:
        """How far the weights' sizes lie above their layer's threshold."""
        return {
            name: weight.abs() - self.threshold(training, WEIGHTS + name)
            for name, weight in training.weights.items()
            if WEIGHTS + name in training.extra
        }

    def threshold(self, training: Training, name: str) -> Tensor:
        """A threshold from what is trained, which the optimiser moves by its learning rate in a step."""
        moved = self.threshold_lr / training.recipe.lr * training.extra[name]
        return _EDGE_START + moved if name == EDGES else training.method_state[UNIT] * moved

    def _scorer(self, training: Training) -> dict[str, Tensor]:
        """The initial weights of the network that rates edges; tail and head of an arrow have their own."""
        task, width = training.task, self.edge_hidden
        features, columns = task.x.num_features, width * (2 if task.graph.directed else 1)
        return {
            SCORER + "ends": uniform((features, columns), features**-0.5, derive(training.seed, "scorer", "ends")),
            SCORER + "bias": _zeros(width),
            SCORER + "out": uniform((width,), width**-0.5, derive(training.seed, "scorer", "out")),
        }


def _zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float32)


def edge_strengths(training: Training) -> Tensor:
    """Each edge's strength from its end nodes' features, in units of three standard deviations; their mean is 0."""
    extra, graph = training.extra, training.task.graph
    ends = training.task.x @ extra[SCORER + "ends"]
    tail, head = ends.chunk(2, dim=1) if graph.directed else (ends, ends)
    source, target = graph.edges
    both = tail.index_select(0, source) + head.index_select(0, target)  # whose gradients add up in a fixed order
    strength = torch.relu(both + extra[SCORER + "bias"]) @ extra[SCORER + "out"]
    return (strength - strength.mean()) / (3 * strength.std(correction=0)).clamp(min=1e-12)


def pruned(*margins: Tensor) -> float:
    """The share of elements that do not exceed their threshold.

    >>> pruned(torch.tensor([0.5, 0.0, -0.1]), torch.tensor([0.2]))
    0.5
    """
    kept = sum(int(torch.count_nonzero(part > 0)) for part in margins)
    return 1 - kept / sum(part.numel() for part in margins)


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, margin: Tensor) -> Tensor:
        context.save_for_backward(margin)
        return (margin > 0).to(margin.dtype)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Tensor:
        size: Tensor = context.saved_tensors[0].abs()
        return gradient * (2 - 4 * size).clamp_(min=0.4).mul_(size <= 1)


def step(margin: Tensor) -> Tensor:
    """1 above the threshold and 0 below; gradients pass straight through, less of them the farther away.

    They are multiplied by 2 − 4|x| near the threshold, by 0.4 from |x| = 0.4 to 1, and by nothing beyond.
    """
    return _Step.apply(margin)  # type: ignore[no-any-return, no-untyped-call]
