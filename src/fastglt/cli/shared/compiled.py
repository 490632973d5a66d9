"""A ticket and its graph from what a user typed, compiled to answer questions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.tickets import (
    OwnGraph,
    open_ticket,
    refuse_users_model,
    same_split,
    task_of,
    warnings_told,
)
from fastglt.cli.shared.updating import on_new_graph, task_for

if TYPE_CHECKING:
    from fastglt.data.base import Names
    from fastglt.deploy import Predictor
    from fastglt.tasks import Task

TicketPath = Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")]


OtherGraph = Annotated[
    bool,
    typer.Option(
        "--other-graph",
        help="Use the ticket on a graph that is not its own. With as many edges, its mask counts as it is; with "
        "others, as [bold]fastglt update --epochs 0[/] would have it.",
        rich_help_panel=arguments.RUN,
    ),
]


def compiled(
    path: Path, graph: OwnGraph, *, other_graph: bool = False, layout: str = "whole rows"
) -> "tuple[Predictor, Task, Names | None]":
    """The predictor; its task; names from a file. Trials of layouts only pay for many answers.

    Classes have names only where the labels are those of the ticket's run, and each of its classes has one: else
    they may be numbered otherwise.
    """
    from fastglt.deploy.compiling import compile_for, labels_in

    ticket, file = open_ticket(path)
    refuse_users_model(ticket, "fastglt.compile_ticket(ticket, data, model)")
    ticket.require_nothing_hidden("compiled")
    dataset = graph.load(file)
    with warnings_told(path):
        if other_graph and task_for(ticket, dataset).graph.num_edges != ticket.masks.edges.size:
            ticket, dataset = on_new_graph(ticket, file, graph, dataset)
        task = task_of(ticket, dataset, other_graph=other_graph)
        labels = labels_in(dataset.tensors)
        predictor = compile_for(ticket, task.graph, task.x, layout=layout, other_graph=other_graph, labels=labels)
    names, same = dataset.names, same_split(path, file, task)
    if names is not None and (not same or len(names.classes) < ticket.model.get("out_channels", 0)):
        names = names._replace(classes=())
    return predictor, task, names
