"""A ticket on a graph that has changed: its rule decides on the new edges, its weights go on.

1. Kept edges that are still there stay; the method's rule chooses among the new ones, to the exact count that the
   ticket's sparsity gives on the new graph.
2. The trained weights go on for a few epochs under the masks, or stay. The best epoch on validation nodes counts,
   and the weights as they were are one of the candidates.
3. What has drifted is measured, and a fixed rule (`Drift`) says whether a new search would pay.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from fastglt.errors import InputError, check_seed, require
from fastglt.masks import Mask, Masks
from fastglt.methods import METHODS, Budget, FixedMasks, Method, Targets, make
from fastglt.methods.base import train_sparse
from fastglt.methods.parts.schedules import kept_count
from fastglt.models.base import Network
from fastglt.report.bars import shown
from fastglt.system.modes import ordinary_mode
from fastglt.system.seeds import derive, own_random_state, set_random_state
from fastglt.tasks import Task
from fastglt.tickets.change import Change
from fastglt.tickets.drift import Drift, since_search
from fastglt.tickets.find import make_ticket
from fastglt.tickets.networks import check_fits, restore_start, restore_trained
from fastglt.tickets.phases import Journal, PhaseResult, Progress, run_phase
from fastglt.tickets.ticket import Ticket
from fastglt.training.loop import Training

if TYPE_CHECKING:
    from torch_geometric.data import Data

EPOCHS = 10  # of the weights, unless somebody says otherwise
PHASE = "update"
_KEPT = ("method", "options", "targets", "findings", "taken", "directed")  # of what the ticket says of its search


@dataclass(frozen=True, kw_only=True)
class Refine(FixedMasks):
    """Trained weights that go on for some epochs; as they are, they are the first candidate for the best epoch."""

    name = PHASE
    summary = "no search: trained weights go on under given masks"

    length: int = EPOCHS

    @property
    def epochs(self) -> int:
        """May be none at all."""
        return self.length

    def begin(self, training: Training) -> None:
        """A stage as a search's last one, and a look at the weights as they are."""
        train_sparse(training, self.targets, stage=PHASE, soft_edges=training.soft_edge_mask is not None)
        training.measure(PHASE)


@ordinary_mode()
def update_ticket(
    ticket: Ticket,
    data: "Data",
    new_data: "Data",
    *,
    model: nn.Module | str | None = None,
    nodes_before: Tensor | None = None,
    epochs: int = EPOCHS,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | bool | None = None,
) -> Ticket:
    """The ticket for its graph as it is now, with nodes and edges that have come or gone.

    >>> import fastglt
    >>> later = fastglt.update_ticket(ticket, data, new_data)  # doctest: +SKIP
    >>> later.config["update"]["search_again"]  # why a new search would pay; empty: it would not  # doctest: +SKIP

    It is an ordinary ticket of the new graph, at the same sparsity. Which of the new edges stay is decided by the
    method's rule: predictions' agreement (forest), degrees (fastglt, teddy), or chance for masks that were learnt
    edge by edge. What was measured is in ``config["update"]``, the rule for a new search in `tickets.drift`.

    Args:
        ticket: A ticket, of a search or of an earlier update.
        data: Its graph, as it was.
        new_data: The graph as it is now, with the same features and classes.
        model: The model of a ticket of your own model.
        nodes_before: For each node of `new_data` its number in `data`, −1 if it is new (default: the nodes of
            `data` come first, in their order, and new ones after them).
        epochs: How long the trained weights go on; 0: they stay as they are.
        seed: Random seed (edges that are drawn, dropout; default: the ticket's).
        device: cpu, cuda, ….
        progress: True for a bar, in terminals and notebooks; or what is called after each epoch with the phase, the
            `Training` and the number of epochs.
    """
    ticket.require_nothing_hidden("updated")
    options: dict[str, Any] = {"metric": ticket.config["metric"], "directed": ticket.directed}
    before = ticket.task.from_data(data, **options, **ticket.task_options).to(device)
    after = ticket.task.from_data(new_data, **options, **ticket.task_options).to(device)
    ticket.check(before)
    change = Change(before=before, after=after, nodes_before=_in_front(nodes_before, before, after))
    with shown(progress) as after_epoch:
        return update(ticket, model, change, epochs=epochs, seed=seed, progress=after_epoch)


def _in_front(nodes_before: Tensor | None, before: Task, after: Task) -> Tensor:
    """The numbers of before: as they were said, or the first ones."""
    old, new = before.graph.num_nodes, after.graph.num_nodes
    if isinstance(nodes_before, Tensor):
        return nodes_before.cpu()
    if nodes_before is not None:
        raise InputError(
            f"nodes_before must be an int64 tensor of {new} nodes (got {type(nodes_before).__name__}); "
            "torch.tensor makes one"
        )
    if new < old:
        rule = f"nodes_before must say which of the {old} nodes are left where some are gone"
        raise InputError(f"{rule} (got none, and {new} nodes)")
    return torch.where(torch.arange(new) < old, torch.arange(new), -1)


def update(
    ticket: Ticket,
    model: nn.Module | str | None,
    change: Change,
    *,
    epochs: int = EPOCHS,
    seed: int | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Ticket:
    """`update_ticket` for tasks that are prepared already."""
    require("be a whole number", epochs=epochs)
    require("not be negative", epochs=epochs)
    seed = ticket.seed if seed is None else seed
    check_seed(seed)
    ticket.require_nothing_hidden("updated")
    start, masks = restore_start(ticket, model)
    check_fits(start, change.after, soft_edges=False)
    trained, _ = restore_trained(ticket, model)
    method = method_of(ticket)
    work = _Update(ticket=ticket, trained=trained, masks=masks, change=change, method=method, seed=seed)
    refine = Refine(targets=work.targets, budget=method.budget, length=epochs)
    result = run_phase(PHASE, work.begin, refine, journal or Journal(), progress)
    made = make_ticket(start, change.after, method, ticket.seed, result.best, {})
    made = replace(made, history=result.history, seconds={PHASE: result.seconds})
    kept = {name: ticket.config[name] for name in _KEPT if name in ticket.config}
    return made.with_config(**kept, update={**work.record(result), "epochs": epochs})


def method_of(ticket: Ticket) -> Method:
    """The ticket's method as its search left it: what knows which new edges to keep.

    One that is not known here, or no method at all, has no rule: its new edges are drawn.
    """
    config = ticket.config
    targets, budget = Targets(**config.get("targets", {})), Budget(**config["budget"])
    if config["method"] not in METHODS:
        return FixedMasks(targets=targets, budget=budget)
    found = make(config["method"], targets=targets, budget=budget, **config["options"])
    return found.decided_by(config.get("findings") or {})


@dataclass(frozen=True, kw_only=True)
class _Update:
    """A ticket on its way to the graph as it is now."""

    ticket: Ticket
    trained: Network
    masks: Masks  # of before, under the network's own names
    change: Change
    method: Method
    seed: int

    @property
    def sparsity(self) -> float:
        """The search's target, if it is what the mask has; else the mask's own sparsity."""
        edges, target = self.masks.edges, self.method.targets.graph_sparsity
        return target if kept_count(target, edges.size) == edges.count else edges.sparsity

    @property
    def targets(self) -> Targets:
        """At which sparsities the weights go on."""
        return Targets(graph_sparsity=self.sparsity, weight_sparsity=self.masks.weight_sparsity)

    def begin(self) -> Training:
        """The trained network on the new graph, under the masks that it is to have there."""
        every = Mask(self.change.carried(self.masks.edges.kept, True))
        training = self._training(self.change.after, every)
        device = self.change.after.device
        soft = self.change.soft_mask(self.ticket.soft_edge_mask, self.masks.edges)
        training.soft_edge_mask = None if soft is None else soft.to(device).requires_grad_()
        with own_random_state(device):
            set_random_state(derive(self.seed, "new edges"), device)  # for a model that draws even here
            edges = self.change.keep(
                self.masks.edges, training, self.method, sparsity=self.sparsity, seed=self.seed
            )
        training.apply(Masks(edges=edges, weights=self.masks.weights))
        return training

    def record(self, result: PhaseResult) -> dict[str, Any]:
        """What the updated ticket says of how it came about, and of how far it has drifted."""
        ticket, facts, scores = self.ticket, self.change.facts, result.best.scores
        edges = self.change.before.graph.num_edges
        known = since_search(ticket.config.get("update"), val=ticket.scores["search_val"], edges=edges)
        known["number"] += 1
        known["edges_changed"] += facts["edges_added"] + facts["edges_removed"]
        drift = Drift(
            lost=known["search_val"] - scores.val,
            changed=known["edges_changed"] / max(1, known["search_edges"]),
            agreed=self._agreed(result),
        )
        return {
            **known,
            **facts,
            "val_before_refining": result.history[0].val,
            "val": scores.val,
            "agreed": drift.agreed,
            "changed": drift.changed,
            "lost": drift.lost,
            "search_again": drift.reasons,
        }

    def _agreed(self, result: PhaseResult) -> float:
        """The share of the nodes of both graphs whose prediction is what it was."""
        change, ticket, best = self.change, self.ticket, result.best
        stayed = (change.nodes_before >= 0).nonzero().squeeze(1)
        old = self._training(change.before, self.masks.edges)
        soft = ticket.soft_edge_mask
        if soft is not None:
            whole = soft.new_ones(self.masks.edges.size)
            whole[self.masks.edges.kept] = soft
            old.soft_edge_mask = whole.to(change.before.device)
        new = self._training(change.after, best.masks.edges)
        new.network.load_state_dict(best.state)
        new.soft_edge_mask = best.soft_edge_mask
        said = change.before.decide(self._outputs(old)).cpu()[change.nodes_before[stayed]]
        says = change.after.decide(self._outputs(new)).cpu()[stayed]
        same = (said == says).flatten(1).all(1) if said.dim() > 1 else said == says
        return float(same.float().mean()) if stayed.numel() else 0.0

    def _outputs(self, training: Training) -> Tensor:
        training.network.eval()
        with torch.no_grad(), own_random_state(training.task.device):
            set_random_state(derive(self.seed, "agreed"), training.task.device)
            return training.outputs(None)

    def _training(self, task: Task, edges: Mask) -> Training:
        recipe = self.method.budget.recipe
        masks = Masks(edges=edges, weights=self.masks.weights)
        return Training(self.trained, task, recipe, seed=self.seed, masks=masks)
