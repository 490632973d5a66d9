"""Dense against ticket, trained from the same start with the same budget, seed by seed."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from torch import nn

from fastglt.errors import InputError
from fastglt.masks import Masks
from fastglt.methods.base import Budget, FixedMasks
from fastglt.models import Network, build
from fastglt.models.pyg import PyGNetwork
from fastglt.phases import Journal, PhaseResult, Progress, run_phase
from fastglt.task import Task
from fastglt.ticket import Ticket
from fastglt.training import Training

if TYPE_CHECKING:
    from torch_geometric.data import Data


def train_fixed(
    phase: str,
    network: Network,
    task: Task,
    budget: Budget,
    *,
    seed: int,
    masks: Masks | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> PhaseResult:
    """Train from the network's weights under fixed masks: the dense network, or a ticket in isolation."""
    return run_phase(
        phase,
        lambda: Training(network, task, budget.recipe, seed=seed, masks=masks),
        FixedMasks(budget=budget),
        journal or Journal(),
        progress,
    )


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Test scores at the best validation epoch, paired by seed."""

    seeds: tuple[int, ...]
    dense_scores: tuple[float, ...]
    ticket_scores: tuple[float, ...]

    @property
    def difference(self) -> float:
        """Mean ticket score minus mean dense score."""
        return fmean(self.ticket_scores) - fmean(self.dense_scores)

    @property
    def plain_winning(self) -> bool:
        """The papers' rule: the ticket's mean is at least the dense mean."""
        return self.difference >= 0

    def __str__(self) -> str:
        dense, ticket = _mean_and_std(self.dense_scores), _mean_and_std(self.ticket_scores)
        verdict = "winning" if self.plain_winning else "not winning"
        return (
            f"{verdict} by the plain rule: ticket {ticket}, dense {dense}, "
            f"difference {100 * self.difference:+.2f} points, n = {len(self.seeds)} (test, from the same start)"
        )


def evaluate(
    ticket: Ticket,
    model: nn.Module | None,
    data: "Data",
    *,
    seeds: Iterable[int] = range(10),
    metric: str = "accuracy",
    other_graph: bool = False,
    progress: Progress | None = None,
) -> Verdict:
    """Train dense and ticket in isolation from the ticket's Θ0, once per seed of training noise.

    `model` is the user's model the ticket was found with, or None for one of fastglt's backbones.
    """
    seeds = tuple(seeds)
    if not seeds:
        raise InputError("seeds must name at least one seed (got none)")
    task = Task.from_data(data, metric=metric)
    ticket.check(task, other_graph=other_graph)
    network, masks = restore_start(ticket, model)
    budget = Budget(**ticket.config["budget"])
    scores: dict[str, list[float]] = {"dense": [], "ticket": []}
    for seed in seeds:
        for name, kept in (("dense", None), ("ticket", masks)):
            phase = f"{name}, seed {seed}"
            result = train_fixed(phase, network, task, budget, seed=seed, masks=kept, progress=progress)
            scores[name].append(result.best.scores.test)
    return Verdict(seeds=seeds, dense_scores=tuple(scores["dense"]), ticket_scores=tuple(scores["ticket"]))


def restore_start(ticket: Ticket, model: nn.Module | None) -> tuple[Network, Masks]:
    """The network at Θ0 and the masks under its own parameter names."""
    spec: dict[str, Any] = dict(ticket.model)
    if spec["name"] != "pyg":
        network: Network = build(spec)
        network.load_state_dict(dict(ticket.initial))
        return network, ticket.masks
    if model is None:
        raise InputError(f"the ticket belongs to a user's model, {spec['class']}; pass that model")
    wrapped = PyGNetwork(model, prunable=spec["prunable"])
    try:
        wrapped.module.load_state_dict(dict(ticket.initial))
    except RuntimeError as error:
        reason = str(error).split("\n")[0]
        raise InputError(
            f"the model must be the one the ticket was found with, {spec['class']} ({reason})"
        ) from None
    weights = {wrapped.PREFIX + name: mask for name, mask in ticket.masks.weights.items()}
    return wrapped, Masks(edges=ticket.masks.edges, weights=weights)


def _mean_and_std(scores: tuple[float, ...]) -> str:
    spread = f" ± {100 * stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{100 * fmean(scores):.2f}{spread} %"
