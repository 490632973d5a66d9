"""A ticket and its graph from what a user typed, compiled to answer questions."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli import arguments
from fastglt.cli.tickets import (
    OwnDataset,
    OwnSplitSeed,
    dataset_of,
    open_ticket,
    refuse_users_model,
    run_settings,
    task_of,
)

if TYPE_CHECKING:
    from fastglt.data.base import Names
    from fastglt.deploy import Predictor
    from fastglt.task import Task

TicketPath = Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")]


@dataclass(frozen=True)
class OwnGraph:
    """The options that name a ticket's graph."""

    dataset: OwnDataset = None
    split_seed: OwnSplitSeed = None
    data_root: arguments.DataRoot = None
    directed: arguments.Directed = False
    other_graph: Annotated[
        bool,
        typer.Option(
            "--other-graph",
            help="Use the ticket on a graph that is not its own; it must have as many edges.",
            rich_help_panel=arguments.RUN,
        ),
    ] = False


def compiled(path: Path, graph: OwnGraph) -> "tuple[Predictor, Task, Names | None]":
    """The predictor, without trials of layouts, which only pay for many answers; its task; names from a file.

    Classes have names only where the labels are those of the ticket's run: others may be numbered otherwise.
    """
    from fastglt.deploy.compiling import compile_for
    from fastglt.task import Task

    ticket, file = open_ticket(path)
    refuse_users_model(ticket, "fastglt.compile_ticket(ticket, data, model)")
    dataset = dataset_of(file, graph.dataset, graph.split_seed, graph.data_root, directed=graph.directed)
    if graph.other_graph:
        task = Task.from_tensors(dataset.tensors, metric=dataset.metric)
    else:
        task = task_of(ticket, dataset)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predictor = compile_for(ticket, task.graph, task.x, layout="whole rows", other_graph=graph.other_graph)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"warning: {path}: {message}", err=True)
    names = dataset.names
    if names is not None and run_settings(file).get("labels_and_split") != task.digests["labels_and_split"]:
        names = names._replace(classes=())
    return predictor, task, names
