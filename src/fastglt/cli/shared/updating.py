"""A ticket's graph as it was and as it is now, from what a user typed."""

from pathlib import Path
from typing import TYPE_CHECKING

from fastglt.cli.shared.tickets import OwnGraph, names_graph, task_of
from fastglt.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

    from fastglt.data import Dataset
    from fastglt.tasks import Task
    from fastglt.tickets.change import Change
    from fastglt.tickets.ticket import Ticket


def same_nodes(before: "Dataset", after: "Dataset") -> "Tensor":
    """Of each node its number before, −1 if it is new: by its id where both graphs have ids, else by its number."""
    import torch

    old, new = before.tensors["x"].shape[0], after.tensors["x"].shape[0]
    if before.names is not None and after.names is not None:
        known = {name: number for number, name in enumerate(before.names.nodes)}
        return torch.tensor([known.get(name, -1) for name in after.names.nodes])
    if new < old:
        rule = f"a graph whose nodes are numbers must have all {old} that it had before, in their order"
        raise InputError(f"{rule} (got {new}); say with --remove-nodes which have gone")
    return torch.where(torch.arange(new) < old, torch.arange(new), -1)


def task_for(ticket: "Ticket", dataset: "Dataset", device: str = "cpu") -> "Task":
    """The ticket's task on any graph."""
    told = {**dataset.direction, **ticket.task_options}
    return ticket.task.from_tensors(dataset.tensors, metric=ticket.config["metric"], **told).to(device)


def change_of(
    ticket: "Ticket", before: "Dataset", after: "Dataset", nodes: "Tensor", *, device: str = "cpu"
) -> "Change":
    """What has happened to the ticket's graph, which the first of the two has to be."""
    from fastglt.tickets.change import Change

    old = task_of(ticket, before).to(device)
    return Change(before=old, after=task_for(ticket, after, device), nodes_before=nodes)


def on_new_graph(ticket: "Ticket", file: Path, graph: OwnGraph, after: "Dataset") -> "tuple[Ticket, Dataset]":
    """The ticket on another graph with other edges, its weights as they are: as `fastglt update` does it.

    And that graph with the classes of the ticket's own.
    """
    from fastglt.data.following import with_classes
    from fastglt.tickets.update import update

    if not names_graph(file):
        rule = f"--other-graph with other edges needs the graph that '{file}' was found on, to tell new edges"
        raise InputError(f"{rule} (got no run.json that names it); use fastglt update --dataset … --to …")
    before = OwnGraph(data_root=graph.data_root, split_seed=graph.split_seed).load(file)
    after = with_classes(before, after)
    return update(ticket, None, change_of(ticket, before, after, same_nodes(before, after)), epochs=0), after
