"""A run is a few trainings in a row, its phases; a journal keeps what they did so that a kill costs little."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from fastglt.masks import Masks
from fastglt.methods.base import Budget, FixedMasks, Method, weight_density
from fastglt.models.base import Network
from fastglt.system.seeds import derive, own_random_state, set_random_state
from fastglt.tasks import Scores, Task
from fastglt.training.distillation import Teacher
from fastglt.training.loop import Training, train
from fastglt.training.outputs import network_outputs
from fastglt.training.recipe import Recipe
from fastglt.training.records import EpochRecord, Snapshot

# A ticket's opponents, by the phases that train them: the plain dense network, one taught as the ticket is, and a
# plain one at the learning rate of a taught ticket, where that has its own.
DENSE, DISTILLED, SAME_LR = "dense", "dense_distilled", "dense_same_lr"


def opponents(budget: Budget) -> tuple[str, ...]:
    """What a ticket with this budget is compared with."""
    return (DENSE, *[DISTILLED] * (budget.distill > 0), *[SAME_LR] * budget.changes_lr)


@dataclass(frozen=True, kw_only=True)
class PhaseResult:
    """What a finished phase leaves behind."""

    best: Snapshot
    history: tuple[EpochRecord, ...]
    seconds: float
    rounds: tuple[Snapshot, ...] = ()  # tickets on the way


class Journal:
    """Forgets everything: the journal of a run that is not written down."""

    def finished(self, phase: str) -> PhaseResult | None:
        """The result of a phase that an earlier process finished."""
        return None

    def resume(self, phase: str, training: Training) -> float:
        """Bring a training to where an earlier process left it; returns the seconds already spent."""
        return 0.0

    def after_epoch(self, phase: str, training: Training, seconds: float) -> None:
        """Called after every epoch."""

    def finish(self, phase: str, result: PhaseResult) -> None:
        """Called at the end of a phase."""


Progress = Callable[[str, Training, int], None]  # phase, training, epochs of the phase


def run_phase(
    phase: str,
    start: Callable[[], Training],
    method: Method,
    journal: Journal,
    progress: Progress | None = None,
) -> PhaseResult:
    """Run one phase, or what is left of it."""
    done = journal.finished(phase)
    if done is not None:
        return done
    training = start()
    before = journal.resume(phase, training)
    began = time.monotonic()

    def after_epoch(training: Training) -> None:
        journal.after_epoch(phase, training, before + time.monotonic() - began)
        if progress is not None:
            progress(phase, training, method.epochs)

    best = train(training, method, after_epoch)
    seconds = before + time.monotonic() - began
    result = PhaseResult(best=best, history=tuple(training.history), seconds=seconds, rounds=tuple(training.rounds))
    journal.finish(phase, result)
    return result


def train_fixed(
    phase: str,
    network: Network,
    task: Task,
    budget: Budget,
    *,
    seed: int,
    masks: Masks | None = None,
    teacher: Teacher | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> PhaseResult:
    """Train from the network's weights under fixed masks: the dense network, or a ticket in isolation."""
    recipe = fixed_recipe(budget, network, masks, taught=teacher is not None)
    return run_phase(
        phase,
        lambda: Training(network, task, recipe, seed=seed, masks=masks, teacher=teacher),
        FixedMasks(budget=budget),
        journal or Journal(),
        progress,
    )


def fixed_recipe(budget: Budget, network: Network, masks: Masks | None, *, taught: bool) -> Recipe:
    """How weights are trained under fixed masks: as the budget says of taught ones and of sparse ones."""
    recipe = budget.taught_recipe if taught else budget.recipe
    if budget.isolated_decay == "whole" or masks is None:
        return recipe
    density = weight_density(network, masks.weights_kept, masks.weights_total)
    return replace(recipe, weight_decay=recipe.weight_decay * density)


def train_opponent(
    name: str,
    network: Network,
    task: Task,
    budget: Budget,
    *,
    seed: int,
    teacher: Teacher | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> PhaseResult:
    """Train one of a ticket's opponents; the teacher is for the one that is taught."""
    at = replace(budget, lr=budget.distill_lr) if name == SAME_LR else budget
    taught = teacher if name == DISTILLED else None
    return train_fixed(name, network, task, at, seed=seed, teacher=taught, journal=journal, progress=progress)


def train_teacher(
    network: Network,
    task: Task,
    budget: Budget,
    *,
    seed: int,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[PhaseResult, Teacher]:
    """The dense network trained plainly, as the phase "teacher", and what it teaches."""
    result = train_fixed("teacher", network, task, budget, seed=seed, journal=journal, progress=progress)
    return result, teacher_of(result.best, network, task, budget, seed=seed)


def teacher_of(best: Snapshot, network: Network, task: Task, budget: Budget, *, seed: int) -> Teacher:
    """What a trained network says about all nodes at its best epoch, to be taught as the budget says.

    It is computed from the snapshot alone: a run that goes on has the same teacher, bit for bit.
    """
    training = Training(network, task, budget.recipe, seed=seed, masks=best.masks)
    with own_random_state(task.device):
        set_random_state(derive(seed, "teacher"), task.device)  # for a model that draws random numbers even here
        return Teacher(outputs=network_outputs(training, best, targets=task.overview), **how_to_teach(budget, task))


def teacher_of_search(teacher: Teacher | None, budget: Budget) -> Teacher | None:
    """The teacher as far as the search is taught; None if it is not."""
    if teacher is None or budget.distill_search == 0:
        return None
    return replace(teacher, weight=teacher.weight * budget.distill_search)


def how_to_teach(budget: Budget, task: Task) -> dict[str, Any]:
    """All of a teacher but what it says."""
    return {
        "weight": budget.distill,
        "temperature": budget.distill_temperature,
        "labels": budget.distill_labels,
        "nodes": None if budget.distill_nodes == "all" else task.unlabelled,
    }


def score_state(
    network: Network,
    task: Task,
    budget: Budget,
    state: Mapping[str, Tensor],
    *,
    seed: int,
    masks: Masks,
    soft_edge_mask: Tensor | None = None,
) -> Scores:
    """Evaluate trained weights as they are on the hard-pruned graph; kept edges' scores count as 1 unless given."""
    training = Training(network, task, budget.recipe, seed=seed, masks=masks)
    training.network.load_state_dict(dict(state))
    training.soft_edge_mask = None if soft_edge_mask is None else soft_edge_mask.to(task.device)
    with own_random_state(task.device):
        drawn = derive(seed, "unweighted")  # for a model that draws random numbers even here
        set_random_state(drawn, task.device)
        return training.evaluate()
