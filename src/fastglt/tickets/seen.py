"""The part of a graph that a ticket has seen: all of it, or what is left without the nodes that were hidden."""

from typing import TYPE_CHECKING

from torch import Tensor

from fastglt.graphs.features import Features
from fastglt.graphs.graph import Graph
from fastglt.tasks import Task
from fastglt.tasks.inductive import Inductive, hide

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fastglt.tickets.ticket import Ticket


def seen_part(ticket: "Ticket", whole: Task) -> tuple[Task, Inductive | None]:
    """What a ticket has seen of a task, and the nodes that were hidden from it; None if none were."""
    said = ticket.config.get("inductive")
    if said is None:
        return whole, None
    hidden = hide(whole, said["share"], seed=said["split_seed"])
    return hidden.seen, hidden


def seen_in(ticket: "Ticket", data: "Data") -> tuple[Graph, Features | None, Tensor | None]:
    """The graph that a ticket has seen in its data, with features and labels, each where there are such."""
    if ticket.config.get("inductive") is not None:  # the split decides what was hidden
        options = {"metric": ticket.config["metric"], "directed": ticket.directed, **ticket.task_options}
        _, hidden = seen_part(ticket, ticket.task.from_data(data, **options))
        assert hidden is not None
        return hidden.seen.graph, hidden.seen.x, hidden.seen.y
    graph = Graph.from_data(ticket.message_data(data), directed=ticket.directed)
    x = Features(data.x.detach().float()) if isinstance(data.x, Tensor) and data.x.dim() == 2 else None
    return graph, x, data.y if isinstance(data.y, Tensor) else None


def classes_in(labels: Tensor | None, nodes: int) -> Tensor | None:
    """Labels that are one whole number for each node; None where they are something else."""
    fit = labels is not None and labels.shape == (nodes,) and not labels.is_floating_point()
    return labels if fit else None
