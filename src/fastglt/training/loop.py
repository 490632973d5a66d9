"""The only training loop: one network under hard masks, with or without soft ones, epoch by epoch.

A `Training` is the whole state of a run. It can be written down after any epoch and read back, and goes
on bit for bit as if nothing had happened: every epoch draws its random numbers from a seed of its own.
"""

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from statistics import fmean
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.kernels import true_indices, zero_outside
from fastglt.kernels.optimizer import Adam, Limits, Product
from fastglt.masks import Mask, Masks, lay_side_by_side, zeros_side_by_side
from fastglt.models.base import Network
from fastglt.models.units import Units
from fastglt.system import ranks
from fastglt.system.process import keep_large_memory
from fastglt.system.ranges import Ranges
from fastglt.system.seeds import derive, own_random_state, set_random_state
from fastglt.tasks.base import Scores, Step, Task
from fastglt.training.distillation import Teacher
from fastglt.training.hooks import Hooks
from fastglt.training.recipe import Recipe
from fastglt.training.records import EpochRecord, Snapshot

if TYPE_CHECKING:
    from fastglt.methods.base import Method


class Training:
    """A network, its masks, its optimiser and what has happened so far.

    The weights that a mask removes are zero and stay zero, with no optimiser state, so that the network
    itself is the sparse network and a weight that returns starts afresh. A stage that lets weights `regrow` leaves
    them their optimiser state. With a `teacher`, every epoch of every stage is taught by it.
    """

    def __init__(
        self,
        network: Network,
        task: Task,
        recipe: Recipe,
        *,
        seed: int,
        masks: Masks | None = None,
        teacher: Teacher | None = None,
        units: Units | None = None,
    ) -> None:
        self.units = units  # that weights are pruned by; None: they are pruned one by one
        self.network, self.teacher = copy.deepcopy(network).to(task.device), teacher
        self.task, self.recipe, self.seed, self._start = task, recipe, seed, network
        recipe.prepare(self.network, task)
        self.hooks, self._by_parts = Hooks(), recipe.by_parts(task)
        self.step_weight, self.ends_epoch = 1.0, True
        shared = self._by_parts is not None  # else every process computes all of it
        self.ranges = Ranges(task.graph.num_edges, ranks.world()) if shared else Ranges(task.graph.num_edges)
        if task.graph.is_large:
            keep_large_memory()
        self.weights = {name: self.network.get_parameter(name) for name in network.prunable}
        lay_side_by_side(self.weights)  # they are ranked as one
        self._places = {name: _places_of(weight, self.network) for name, weight in self.weights.items()}
        self.soft_edge_mask: Tensor | None = None
        self.own_edges: Tensor | None = None  # the part of it that this process moves; alone, all of it
        self.soft_weight_masks: dict[str, Tensor] = {}
        self.gradient_sum: dict[str, Tensor] = {}
        self.method_state: dict[str, Tensor] = {}  # what the method keeps from epoch to epoch
        self.rounds: list[Snapshot] = []  # tickets on the way, sparser and sparser
        self.epoch, self.stage = 0, "train"
        self.target: tuple[int, int] | None = None  # (edges, weights) kept: only such epochs can be the best
        self.best: Snapshot | None = None
        self.history: list[EpochRecord] = []
        self._kept_weights: dict[str, Tensor] = {}
        self.begin_stage("train")
        self.masks = Masks.full(task.graph.num_edges, network.weight_shapes)
        self._graph: Graph | None = task.graph
        self.apply(masks or self.masks)

    def begin_stage(
        self,
        name: str,
        *,
        soft_edges: bool = False,
        soft_weights: bool = False,
        sum_gradients: bool = False,
        regrow: bool = False,
        target: tuple[int, int] | None = None,
        weight_decay: float | None = None,
        l1: tuple[float, float] = (0.0, 0.0),
        extra: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Start anew with a fresh optimiser and no best epoch; soft scores of edges that exist already go on.

        With `regrow`, pruned weights are trained too, and the method prunes anew after each step. The l1 terms pull
        the soft scores of edges and of weights towards zero. `extra` tensors are trained beside the weights,
        without decay.
        """
        self.weight_decay = self.recipe.weight_decay if weight_decay is None else weight_decay
        self.stage, self.target, self.best, self.regrow, self.l1 = name, target, None, regrow, l1
        device = self.task.device
        copies = {key: part.detach().to(device, copy=True) for key, part in (extra or {}).items()}
        self.extra = {key: part.requires_grad_() for key, part in copies.items()}
        if not soft_edges:
            self.soft_edge_mask = None
        elif self.soft_edge_mask is None:
            self.soft_edge_mask = torch.ones(
                self.task.graph.num_edges, dtype=torch.float32, device=device, requires_grad=True
            )
        weights = self.weights
        self.soft_weight_masks = {
            n: torch.ones_like(w, requires_grad=True) for n, w in weights.items() if soft_weights
        }
        self.gradient_sum = zeros_side_by_side(weights) if sum_gradients else {}
        self._soft = {
            name: Product(weights[name], score, l1=l1[1]) for name, score in self.soft_weight_masks.items()
        }
        self.own_edges = mask = self.soft_edge_mask
        if mask is not None and not self.ranges.alone:
            self.own_edges = self.ranges.own(mask.detach())
        edges = [] if self.own_edges is None else [self.own_edges]
        groups: list[tuple[Iterable[Tensor], float]] = [
            (self.network.parameters(), self.weight_decay),
            ([*self.soft_weight_masks.values(), *edges, *self.extra.values()], 0.0),
        ]
        self.optimizer = Adam(groups, lr=self.recipe.lr)
        self._zero_pruned()

    @property
    def graph(self) -> Graph:
        """The pruned graph, cut when first asked for."""
        if self._graph is None:
            self._graph = self.task.graph.prune(self.masks.edges)
        return self._graph

    @property
    def leaves(self) -> list[Tensor]:
        """What a step's gradients are for, the soft edge mask apart."""
        products = [product.value for product in self._soft.values()]
        return [
            part for part in (*self.network.parameters(), *products, *self.extra.values()) if part.requires_grad
        ]

    @property
    def start(self) -> Network:
        """The network at Θ0, which is never changed."""
        return self._start

    def end_stage(self) -> None:
        """Forget the optimiser's moments and the best epoch, which the next stage starts without."""
        self.optimizer.state.clear()
        self.best = None

    def rewind(self) -> None:
        """Back to Θ0 under the masks in force, without soft scores; the next stage brings a fresh optimiser."""
        self.network.load_state_dict(self._start.state_dict())
        self.soft_edge_mask, self.own_edges, self.soft_weight_masks, self._soft = None, None, {}, {}
        self.end_stage()
        self.apply(self.masks)

    @property
    def initial_weights(self) -> dict[str, Tensor]:
        """The prunable weights of Θ0, under no mask."""
        return {name: self._start.get_parameter(name).detach() for name in self.weights}

    def end_round(self, number: int) -> None:
        """Keep the best epoch as the ticket of a round (from 1); the search goes on to a sparser one."""
        assert self.best is not None, "the round has been trained"
        self.best = replace(self.best, round=number)
        self.rounds.append(self.whole_best())

    def whole_best(self) -> Snapshot:
        """The best epoch with the soft mask of all edges; of several processes each keeps that of its own."""
        assert self.best is not None, "it has been trained"
        own = self.best.soft_edge_mask
        if own is None or self.ranges.alone:
            return self.best
        return replace(self.best, soft_edge_mask=self.ranges.whole(own, "edges"))

    def run_epoch(self, hooks: Hooks) -> None:
        """The epoch's steps, then a look at validation and test."""
        self.hooks = hooks
        set_random_state(derive(self.seed, "epoch", self.epoch), self.task.device)
        self.network.train()
        if self._by_parts is None:
            steps = self.task.steps(derive(self.seed, "steps", self.epoch))
            loss = fmean([self._step(step, hooks) for step in steps])
        else:
            loss = self._by_parts.run(self, hooks)
        self.epoch += 1
        self._consider(loss)

    def _step(self, step: Step, hooks: Hooks) -> float:
        """One step of the optimiser; returns its loss. With a teacher the task's whole overview is computed."""
        wanted = hooks.wants_all_nodes(self)
        own, outputs = self._outputs_of(step, overview=wanted or self.teacher is not None)
        loss = self.task.loss(own, step) * (1.0 if self.teacher is None else self.teacher.labels)
        extra = hooks.extra_loss(self, outputs if wanted else own)
        loss = loss if extra is None else loss + extra
        if self.teacher is not None:
            loss = loss + self.teacher.divergence(self.task, outputs)
        value = self.check_loss(float(loss.detach()))
        loss.backward()  # type: ignore[no-untyped-call]
        self.update(hooks)
        return value

    def check_loss(self, value: float) -> float:
        """Refuse to go on with a loss that is no number."""
        if not math.isfinite(value):
            raise InputError(
                f"the loss must stay finite (got {value} in epoch {self.epoch + 1}); try a lower learning rate"
            )
        return value

    def update(self, hooks: Hooks, *, summed: bool = True, ends_epoch: bool = True) -> None:
        """Let the optimiser move what has a gradient; `summed`: the gradients' sizes are added up for a method."""
        self.ends_epoch = ends_epoch
        hooks.before_step(self)
        self.optimizer.step(self._soft.values(), self._finish_gradients(summed=summed))
        hooks.after_step(self)

    def move_edges(self, gradient: Tensor, pulled: Tensor | None) -> None:
        """Move the soft edge mask alone, each process its own edges, by their gradients over the whole graph.

        The l1 term pulls those of them that are `pulled`.
        """
        assert self.soft_edge_mask is not None
        assert self.own_edges is not None
        if pulled is not None:
            gradient.add_(self.own_edges.detach().sign().mul_(pulled), alpha=self.l1[0])
        self.own_edges.grad = gradient
        self.optimizer.step()
        self.ranges.fill(self.soft_edge_mask.detach(), "edges")

    def _outputs_of(self, step: Step, *, overview: bool) -> tuple[Tensor, Tensor]:
        """The outputs for a step's targets; and for those of the task's overview, or else the same again."""
        if not overview:
            own = self.outputs(step.nodes)
            return own, own
        more = self.task.overview
        if more is None or step.nodes is None:
            every = self.outputs(None)
            return step.pick(every), every
        both = self.outputs(torch.cat([step.nodes, more]))
        own, every = torch.split(both, [len(step.nodes), len(more)])
        return own, every

    def outputs(self, nodes: Tensor | None) -> Tensor:
        """The outputs for some targets (None: for all nodes), under the hard and soft masks of the moment."""
        score, weights = self.hooks.soften(self)
        if self._by_parts is not None and not torch.is_grad_enabled():
            found = self._by_parts.outputs(self, score, weights, nodes)
            if found is not None:
                return found
        if score is not None and self.graph is not self.task.graph:
            score = score.index_select(0, true_indices(self.masks.edges.kept).to(score.device))
        if not weights:
            with self.network.computing(None if self.regrow or self.gradient_sum else self._read_units):
                return self.network(self.task.x, self.graph, score, nodes)  # type: ignore[no-any-return]
        inputs = (self.task.x, self.graph, score, nodes)
        return functional_call(self.network, self.placed(weights), inputs, tie_weights=False)  # type: ignore[no-any-return]

    def outputs_unweighted(self, nodes: Tensor | None, *, whole: bool) -> Tensor:
        """The outputs for some targets of the network's own weights, on the pruned graph or the whole."""
        if self._by_parts is not None:
            found = self._by_parts.outputs(self, None, {}, nodes, whole=whole)
            if found is not None:
                return found
        graph = self.task.graph if whole else self.graph
        return self.network(self.task.x, graph, None, nodes)  # type: ignore[no-any-return]

    def placed(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights to compute with, under every name that the network has for them."""
        return {place: value for name, value in weights.items() for place in self._places[name]}

    @property
    def soft_weights(self) -> dict[str, Tensor]:
        """Each weight matrix times its soft mask, where they are trained."""
        for product in self._soft.values():
            product.refresh()
        return {name: product.value for name, product in self._soft.items()}

    def evaluate(self) -> Scores:
        """Validation and test scores of the network as it is."""
        self.network.eval()
        with torch.no_grad():
            return self.task.evaluate(self.outputs)

    def revise(self, masks: Masks) -> None:
        """Change the hard masks between two epochs, and note in the history what went and what returned."""
        edges = Mask.difference(self.masks.edges, masks.edges)
        weights = [Mask.difference(self.masks.weights[name], mask) for name, mask in masks.weights.items()]
        self.apply(masks)
        if self.history:
            self.history[-1] = replace(
                self.history[-1],
                edges_dropped=edges[0],
                edges_grown=edges[1],
                weights_dropped=sum(dropped for dropped, _ in weights),
                weights_grown=sum(grown for _, grown in weights),
            )

    def apply(self, masks: Masks) -> None:
        """Put hard masks in force: pruned edges leave the graph, pruned weights are zero.

        So are their moments, unless they may regrow at any step.
        """
        for name, mask in masks.weights.items():
            if mask.shape != tuple(self.weights[name].shape):
                raise InputError(
                    f"the mask of '{name}' must have its shape {tuple(self.weights[name].shape)} (got {mask.shape})"
                )
        device = self.task.device
        if masks.edges.of_size(self.task.graph.num_edges) != self.masks.edges:
            self._graph = None
        self.masks = masks
        self._kept_weights = {
            name: mask.kept.to(device) for name, mask in masks.weights.items() if mask.count < mask.size
        }
        kept = {name: mask.kept for name, mask in masks.weights.items()}
        units = self.network.read_units(kept) if self._kept_weights else None
        self._read_units = None if units is None else units.to(device)
        self._zero_pruned()
        if self.own_edges is not None:
            for moment in self._moments(self.own_edges):
                moment.mul_(self.ranges.own(masks.edges.kept).to(device))

    @torch.no_grad()
    def _zero_pruned(self) -> None:
        for name, kept in self._kept_weights.items():
            for tensor in (self.weights[name], *([] if self.regrow else self._moments(self.weights[name]))):
                zero_outside(tensor, kept)

    def measure(self, stage: str) -> None:
        """Look at the network once more without training it, after masks changed at the very end."""
        self.stage = stage
        self._consider(self.history[-1].loss if self.history else float("nan"))

    def _consider(self, loss: float) -> None:
        scores = self.evaluate()
        masks = self.masks
        self.history.append(
            EpochRecord(
                epoch=self.epoch,
                stage=self.stage,
                loss=loss,
                graph_sparsity=masks.graph_sparsity,
                weight_sparsity=masks.weight_sparsity,
                **asdict(scores),
            )
        )
        eligible = self.target is None or self.target == (masks.edges.count, masks.weights_kept)
        if eligible and (self.best is None or scores.better_than(self.best.scores)):
            self.best = None  # its tensors make room for the new ones
            soft = None if self.soft_edge_mask is None else self.ranges.own(self.soft_edge_mask.detach())
            self.best = Snapshot(
                epoch=self.epoch,
                scores=scores,
                state={name: value.detach().clone() for name, value in self.network.state_dict().items()},
                masks=masks,
                soft_edge_mask=None if soft is None else soft.clone(),
                soft_weight_masks={name: m.detach().clone() for name, m in self.soft_weight_masks.items()},
                findings=self.hooks.findings(self),
            )

    def _finish_gradients(self, *, summed: bool) -> dict[Tensor, Limits]:
        """Pull soft edge scores; returns where weights may move, and what the method wants summed."""
        if self.soft_edge_mask is not None and self.soft_edge_mask.grad is not None and self.l1[0] > 0:
            self.soft_edge_mask.grad.add_(self.soft_edge_mask.detach().sign(), alpha=self.l1[0])
        for name, product in self._soft.items():
            if product.value.grad is not None and name in self._movable:
                product.value.grad.mul_(self._movable[name])
        return {
            weight: (self._movable.get(name), self.gradient_sum.get(name) if summed else None)
            for name, weight in self.weights.items()
        }

    @property
    def _movable(self) -> dict[str, Tensor]:
        """Where the weights of pruned matrices may move."""
        return {} if self.regrow else self._kept_weights

    def _moments(self, parameter: Tensor) -> list[Tensor]:
        state = self.optimizer.state.get(parameter, {})
        return [state[key] for key in ("exp_avg", "exp_avg_sq") if key in state]


def _places_of(weight: Tensor, network: nn.Module) -> tuple[str, ...]:
    """Where modules hold a weight, each of them once: PyTorch would not give a place back that it took twice."""
    found = []
    for prefix, owner in network.named_modules():
        found += [f"{prefix}.{name}".lstrip(".") for name, value in owner._parameters.items() if value is weight]
    return tuple(found)


def train(training: Training, method: "Method", after_epoch: Callable[[Training], None] | None = None) -> Snapshot:
    """Run a method to its end; returns the network at its best epoch. The caller's random state is kept."""
    with own_random_state(training.task.device):
        if training.epoch == 0:
            set_random_state(derive(training.seed, "begin"), training.task.device)
            method.begin(training)
        while not method.finished(training):
            training.run_epoch(method)
            method.after_epoch(training)
            if after_epoch is not None:
                after_epoch(training)
    if training.best is None:
        rule = "a search must end with an epoch under masks of exactly the target counts"
        raise InputError(f"{rule} (got none from method '{method.name}'); cut to them before its last stage")
    return training.whole_best()
