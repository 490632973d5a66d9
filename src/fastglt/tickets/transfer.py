"""A ticket's masks on another network, or another graph: what fits is taken over, what does not stays whole."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fastglt.errors import InputError
from fastglt.masks import Mask, Masks
from fastglt.methods.base import Budget, FixedMasks, Targets
from fastglt.methods.settings import with_defaults
from fastglt.methods.settings.defaults import SomeBudget
from fastglt.methods.settings.networks import WIDTH
from fastglt.models.base import Network
from fastglt.report.bars import shown
from fastglt.system.modes import ordinary_mode
from fastglt.tasks import Task
from fastglt.tickets.find import make_ticket, published_name
from fastglt.tickets.networks import as_network
from fastglt.tickets.phases import Journal, Progress, train_fixed, train_teacher
from fastglt.tickets.ticket import Ticket

if TYPE_CHECKING:
    from torch_geometric.data import Data


class Transferred(FixedMasks):
    """Masks from another ticket; no search."""

    name = "transfer"
    summary = "no search: the masks of a ticket that was found elsewhere"


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What of a ticket's masks can be used."""

    masks: Masks  # under the network's own parameter names
    edges: bool  # whether the edge mask is the ticket's; else every edge stays
    matrices: tuple[str, ...]  # the weight matrices whose masks are the ticket's; the others stay whole

    @staticmethod
    def of(ticket: Ticket, network: Network, task: Task) -> "Fit":
        """The edge mask on the ticket's own graph, and weight masks where a matrix has the same name and shape."""
        edges = task.graph.fingerprint == ticket.graph_fingerprint
        weights, matrices = {}, []
        for name, shape in network.weight_shapes.items():
            mask = ticket.masks.weights.get(network.public_name(name))
            fits = mask is not None and mask.kept.shape == shape
            weights[name] = mask if mask is not None and fits else Mask.full(shape)
            matrices += [network.public_name(name)] * fits
        if not edges and not matrices:
            raise InputError(
                "nothing of the ticket fits: it was found on another graph, and no weight matrix has the name and "
                f"shape of one of its own (got {_shapes(network)})"
            )
        kept = ticket.masks.edges if edges else Mask.full(torch.Size([task.graph.num_edges]))
        return Fit(masks=Masks(edges=kept, weights=weights), edges=edges, matrices=tuple(matrices))


@ordinary_mode()
def transfer_ticket(
    ticket: Ticket,
    model: nn.Module | str,
    data: "Data",
    *,
    seed: int = 0,
    budget: SomeBudget = None,
    hidden: int | None = None,
    model_options: Mapping[str, Any] | None = None,
    metric: str | None = None,
    directed: bool | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | bool | None = None,
) -> Ticket:
    """A ticket for another model, or other data, with the masks of one that was found before.

    >>> import fastglt
    >>> other = fastglt.transfer_ticket(ticket, "gat", data)  # doctest: +SKIP
    >>> other.scores["isolated_test"]  # doctest: +SKIP

    The edge mask goes along on the same graph, a weight mask where a matrix has the same name and shape. The new
    ticket is trained once, from the model's own initial weights; `evaluate` judges it like any other.

    Args:
        ticket: Whose masks are taken.
        model: The other model: a PyG model, a backbone, or a backbone's name.
        data: The other data, or the same.
        seed: Random seed (initial weights of a backbone that is named, dropout).
        budget: A `Budget`, or what differs from the default, which is `find_ticket`'s on that data.
        hidden: Width of the hidden layer of a backbone that is named (default: the ticket's).
        model_options: Other options of such a backbone.
        metric: How it is scored (default: as in the ticket's search).
        directed: Whether each direction of an edge counts on its own (default: if the data is directed).
        device: cpu, cuda, ….
        progress: True for a bar, in terminals and notebooks; or what is called after each epoch with the phase, the
            `Training` and the number of epochs.
    """
    metric, options = metric or ticket.config["metric"], ticket.task_options
    task = ticket.task.from_data(data, metric=metric, directed=directed, **options).to(device)
    width = width_for(ticket, hidden)
    network = as_network(model, task, hidden=width, seed=seed, options=model_options, soft_edges=False)
    names = (Transferred.name, published_name(task, data), network.spec["name"])
    chosen, _ = with_defaults(*names, budget=budget)
    with shown(progress) as after_epoch:
        made = transfer(ticket, network, task, seed=seed, budget=chosen, progress=after_epoch)
    return made.with_config(**({} if directed is None else {"directed": directed}))


def width_for(ticket: Ticket, hidden: int | None) -> int:
    """How wide another network is: as was said, or as the ticket's, if that has a width."""
    return int(ticket.model.get("hidden", WIDTH)) if hidden is None else hidden


def transfer(
    ticket: Ticket,
    network: Network,
    task: Task,
    *,
    seed: int,
    budget: Budget,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Ticket:
    """`transfer_ticket` for a network and a task that are prepared already."""
    fit, teacher, seconds = Fit.of(ticket, network, task), None, {}
    if budget.distill > 0:
        first, teacher = train_teacher(network, task, budget, seed=seed, journal=journal, progress=progress)
        seconds["teacher"] = first.seconds
    result = train_fixed(
        "isolated",
        network,
        task,
        budget,
        seed=seed,
        masks=fit.masks,
        teacher=teacher,
        journal=journal,
        progress=progress,
    )
    targets = Targets(graph_sparsity=fit.masks.graph_sparsity, weight_sparsity=fit.masks.weight_sparsity)
    method = Transferred(targets=targets, budget=budget)
    made = make_ticket(
        network, task, method, seed, result.best, {"isolated": result.best.scores}, taken=_origin(ticket, fit)
    )
    return replace(made, history=result.history, seconds={**seconds, "isolated": result.seconds})


def _origin(ticket: Ticket, fit: Fit) -> dict[str, Any]:
    return {
        "edges": fit.edges,
        "matrices": list(fit.matrices),
        "method": ticket.config["method"],
        "model": dict(ticket.model),
        "initial_hash": ticket.initial_hash,
    }


def _shapes(network: Network) -> str:
    shapes = network.weight_shapes.items()
    return ", ".join(f"{network.public_name(name)} {tuple(shape)}" for name, shape in shapes)
