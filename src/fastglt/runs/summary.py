"""What came out of a run, as plain values: fractions, counts and seconds."""

from collections.abc import Mapping
from typing import Any

from fastglt.analysis.cost import count_macs
from fastglt.masks import Masks
from fastglt.methods import Method
from fastglt.models.base import Network
from fastglt.system.container import nan_as_null
from fastglt.tasks import Task
from fastglt.tickets.find import Found
from fastglt.tickets.phases import DENSE, DISTILLED, SAME_LR, PhaseResult
from fastglt.tickets.ticket import Ticket


def metrics_of(found: Found, network: Network, task: Task, method: Method) -> dict[str, Any]:
    """All that a search and the trainings beside it have shown."""
    masks, scores, phases = found.ticket.masks, nan_as_null(found.ticket.scores), found.phases
    dense = Masks.full(task.graph.num_edges, network.weight_shapes)
    under_its_names = {network.private_name(name): mask for name, mask in masks.weights.items()}
    pruned = Masks(edges=masks.edges, weights=under_its_names)
    dense_cost, ticket_cost = (count_macs(network, task, kept) for kept in (dense, pruned))
    return {
        "method": method.name,
        **method.budget.teaching,
        **({"isolated_decay": decay} if (decay := method.budget.isolated_decay) != "whole" else {}),
        **found.ticket.config.get("findings", {}),
        "graph_sparsity": masks.graph_sparsity,
        "weight_sparsity": masks.weight_sparsity,
        "edges_kept": masks.edges.count,
        "edges_total": masks.edges.size,
        "weights_kept": masks.weights_kept,
        "weights_total": masks.weights_total,
        **scores,
        **_wins(scores, DENSE, ""),
        **_wins(scores, DISTILLED, "_distilled"),
        **_wins(scores, SAME_LR, "_same_lr"),
        "search_best_epoch": phases["search"].best.epoch,
        "epochs": method.budget.epochs,
        "search_epochs": phases["search"].history[-1].epoch,
        "rounds": [_round(ticket) for ticket in found.rounds],
        **{f"{name}_seconds": result.seconds for name, result in phases.items()},
        "macs_dense": dense_cost.macs,
        "macs_ticket": ticket_cost.macs,
        "macs_paper_dense": dense_cost.macs_paper,
        "macs_paper_ticket": ticket_cost.macs_paper,
    }


def phase_metrics(phases: Mapping[str, PhaseResult]) -> dict[str, float | None]:
    """How each phase scored at its best epoch, and how long it took."""
    found: dict[str, float | None] = {}
    for name, result in phases.items():
        scores = result.best.scores
        found |= nan_as_null({f"{name}_val": scores.val, f"{name}_test": scores.test})
        found[f"{name}_seconds"] = result.seconds
    return found


def _round(ticket: Ticket) -> dict[str, Any]:
    """A point of a sparsity curve: the round's ticket after its own training in the search."""
    sparsities = {"graph_sparsity": ticket.graph_sparsity, "weight_sparsity": ticket.weight_sparsity}
    return {
        "round": ticket.config["round"],
        **sparsities,
        **nan_as_null({name: ticket.scores[name] for name in ("search_val", "search_test")}),
    }


def _wins(scores: Mapping[str, float | None], twin: str, ending: str) -> dict[str, bool | None]:
    """The papers' plain rule, test score at least the twin's; nothing without that twin."""
    if f"{twin}_test" not in scores:
        return {}
    dense, tickets = scores[f"{twin}_test"], {run: scores[f"{run}_test"] for run in ("search", "isolated")}
    return {
        f"winning_{run}{ending}": None if ticket is None or dense is None else ticket >= dense
        for run, ticket in tickets.items()
    }
