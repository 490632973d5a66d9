"""A method decides which masks are in force, between epochs; `Hooks` is where it may reach into one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from fastglt.errors import InputError, require, unknown_name
from fastglt.methods.budget import USUAL_BUDGET, Budget
from fastglt.methods.cuts import (
    best_soft_masks,
    cut_lowest,
    cut_random,
    cut_smallest,
    draw_lowest,
    draw_smallest,
    get_masks,
    set_masks,
    swap_edges,
)
from fastglt.methods.parts.ranking import keep_random
from fastglt.methods.parts.schedules import check_sparsity, kept_count
from fastglt.models.base import Network
from fastglt.models.units import Units
from fastglt.tasks import Task
from fastglt.training.hooks import Hooks
from fastglt.training.loop import Training
from fastglt.training.recipe import Recipe

__all__ = [
    "STRUCTURES",
    "UNITS",
    "WEIGHTS",
    "Budget",
    "FixedMasks",
    "Method",
    "Targets",
    "best_soft_masks",
    "cut_lowest",
    "cut_random",
    "cut_smallest",
    "draw_lowest",
    "draw_smallest",
    "get_masks",
    "set_masks",
    "swap_edges",
    "train_soft_masks",
    "train_sparse",
]

WEIGHTS, UNITS = "weights", "units"
STRUCTURES = (WEIGHTS, UNITS)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """How sparse the ticket is to be, and whether single weights go or whole hidden units."""

    graph_sparsity: float = 0.2  # share of edges to remove
    weight_sparsity: float = 0.9  # share of weights to remove
    structure: str = WEIGHTS  # weights: one by one; units: all of a hidden unit's as one

    def __post_init__(self) -> None:
        require("lie in [0, 1)", graph_sparsity=self.graph_sparsity, weight_sparsity=self.weight_sparsity)
        if self.structure not in STRUCTURES:
            raise unknown_name("structure", self.structure, STRUCTURES)

    @property
    def settings(self) -> dict[str, Any]:
        """As plain values; the structure only where it is units, as runs of before know of none."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("structure", WEIGHTS)}

    def check(self, task: Task, weights: int) -> None:
        """Refuse targets that this graph or network cannot meet."""
        if self.graph_sparsity > 0 and task.graph.num_edges == 0:
            raise InputError(f"graph_sparsity must be 0 on a graph without edges (got {self.graph_sparsity})")
        check_sparsity("graph_sparsity", self.graph_sparsity, task.graph.num_edges)
        check_sparsity("weight_sparsity", self.weight_sparsity, weights)

    def kept(self, training: Training) -> tuple[int, int]:
        """How many edges and weights the finished ticket keeps."""
        edges, weights = training.masks.edges.size, training.masks.weights_total
        return kept_count(self.graph_sparsity, edges), kept_count(self.weight_sparsity, weights)


_WHOLE = {  # hooks that parts of a graph have no answer to
    "wants_all_nodes": "looks at the outputs of all nodes in every step",
    "extra_loss": "adds to the loss of every step what is over the whole graph",
    "soften": "weighs all edges anew in every step",
}


@dataclass(frozen=True, kw_only=True)
class Method(Hooks, ABC):
    """The base of every method; its fields are its options."""

    name: ClassVar[str]
    summary: ClassVar[str]  # what it does, in one line
    paper: ClassVar[str] = ""
    prunes: ClassVar[str] = "edges and weights"
    whole_graph: ClassVar[str] = ""  # why it cannot be trained by parts of the graph, if so; goes after "it"
    structures: ClassVar[tuple[str, ...]] = (WEIGHTS,)  # units too, if all cuts of weights are those of this module

    targets: Targets = Targets()
    budget: Budget = USUAL_BUDGET

    @property
    def epochs(self) -> int:
        """How many epochs a search takes, at most."""
        return self.budget.epochs

    @property
    def options(self) -> dict[str, Any]:
        """The method's own options, without targets and budget."""
        return {name: value for name, value in asdict(self).items() if name not in ("targets", "budget")}

    @property
    def recipe(self) -> Recipe:
        """How the search trains; dense and retrained runs go by the budget's."""
        return self.budget.recipe

    @property
    def needs(self) -> tuple[str, ...]:
        """What the method asks of a task besides loss and scores: groups, distribution, certainty."""
        return ()

    def check(self, network: Network) -> None:
        """Refuse a network that this method, as it is set, cannot prune."""

    def check_parts(self) -> None:
        """Refuse mini-batches where a method needs all of the graph in every step."""
        if self.budget.parts == 1 or self.budget.exact:
            return
        reached = {name: getattr(type(self), name) is not getattr(Hooks, name) for name in _WHOLE}
        reason = next((why for name, why in _WHOLE.items() if reached[name]), self.whole_graph)
        if reason:
            got = f"(got {self.budget.parts}): it {reason}; with exact, parts may be more"
            raise InputError(f"parts must be 1 for method '{self.name}' {got}")

    def units(self, network: Network, task: Task) -> Units | None:
        """The network's hidden units, if weights are pruned by them; None: they are pruned one by one."""
        if self.targets.structure not in self.structures:
            rule = f"structure must be {' or '.join(self.structures)} for method '{self.name}'"
            raise InputError(f"{rule} (got {self.targets.structure}); fastglt, forest and oneshot can do both")
        pruned = self.targets.structure == UNITS and self.targets.weight_sparsity > 0
        return network.units(task.x, task.graph) if pruned else None

    @abstractmethod
    def begin(self, training: Training) -> None:
        """Set the first masks, before any epoch."""

    def after_epoch(self, training: Training) -> None:
        """Revise the masks, if it is time to."""

    def finished(self, training: Training) -> bool:
        """Whether the search is over."""
        return training.epoch >= self.epochs

    def decided_by(self, findings: Mapping[str, Any]) -> "Method":
        """This method with what its search has found out decided; itself where there is nothing to decide."""
        return self

    def keep_new_edges(self, training: Training, new: Tensor, count: int, *, seed: int) -> Tensor:
        """Which of the edges that a graph has gained since the search to keep, by a network trained before.

        Masks that were learnt edge by edge say nothing of others: these are drawn at random. A method with a rule
        goes by that.
        """
        kept = torch.zeros_like(new)
        kept[new] = keep_random(int(new.sum()), count, seed)
        return kept


@dataclass(frozen=True, kw_only=True)
class FixedMasks(Method):
    """No search: train under the masks the training started with (dense, or a ticket in isolation)."""

    name = "fixed"
    summary = "no search: train under given masks"

    def begin(self, training: Training) -> None:
        """Nothing to do."""


def train_soft_masks(
    training: Training,
    targets: Targets,
    *,
    stage: str = "oneshot",
    soft_edges: bool = True,
    l1: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Begin a stage that trains soft masks beside the weights, for whatever is to be pruned."""
    edges, weights = soft_edges and targets.graph_sparsity > 0, targets.weight_sparsity > 0
    training.begin_stage(stage, soft_edges=edges, soft_weights=weights, l1=l1)


def train_sparse(
    training: Training,
    targets: Targets,
    *,
    stage: str,
    soft_edges: bool = True,
    sum_gradients: bool = False,
    regrow: bool = False,
) -> None:
    """Begin a stage under hard masks; the soft mask of kept edges goes on, and the target counts decide the best.

    Weight decay is scaled by the share of weights that stay: a hundredth of the weights must be a hundred
    times as large to compute the same, and would pay a hundred times as much for it. Left as it is, the decay
    outweighs the loss and a very sparse network hardly learns. Matrices that a caller spares stay whole.
    """
    kept = targets.kept(training)
    share = weight_density(training.network, kept[1], training.masks.weights_total)
    training.begin_stage(
        stage,
        soft_edges=soft_edges and targets.graph_sparsity > 0,
        sum_gradients=sum_gradients,
        regrow=regrow,
        target=kept,
        weight_decay=training.recipe.weight_decay * share,
    )


def weight_density(network: Network, kept: int, total: int) -> float:
    """The share of weights that stay, of so many prunable ones and of those that a caller spares."""
    weights = total + network.spared
    return (kept + network.spared) / weights if weights else 1.0
