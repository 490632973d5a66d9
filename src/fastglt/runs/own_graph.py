"""The graph that a ticket in a file is for: what its run tells, and its task on that graph."""

from pathlib import Path
from typing import Any

from torch import Tensor

from fastglt.data import Dataset
from fastglt.data.origin import Origin
from fastglt.errors import InputError, MachineError
from fastglt.runs.folder_files import ORIGIN, RUN
from fastglt.system import digests, plain_json
from fastglt.system.storage import read_bytes
from fastglt.tasks import Task
from fastglt.tasks.inductive import Inductive
from fastglt.tickets.seen import classes_in, seen_part
from fastglt.tickets.ticket import Ticket

_MOST = 1 << 24  # bytes of a run.json


def run_of(file: Path) -> tuple[dict[str, Any], Origin | None]:
    """What run.json tells of a ticket: the run's settings, and the files of its graph where it came from files.

    The ticket is in the run's folder, or in the folder of its rounds; nothing where no run.json is.
    """
    folder = file.resolve().parent
    record = (folder.parent if folder.name == "rounds" else folder) / RUN
    settings: dict[str, Any] = {}
    origin = None
    try:
        if not record.exists():
            return {}, None
        if not record.is_file():
            raise IsADirectoryError(record)
        content = read_bytes(record, most=_MOST)
        begun = plain_json.loads(content)
        settings = begun["settings"]
        fits = isinstance(settings.get("dataset", ""), str) and isinstance(settings.get("split_seed", 0), int)
        fits = fits and digests.is_as_recorded(record, content) is not False
        if ORIGIN in begun:
            origin = Origin.read(begun[ORIGIN], record.parent)
    except (OSError, MachineError, ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise InputError(f"'{record}' cannot be read; pass --dataset, with the ticket in another folder") from None
    return settings, origin


def task_and_hidden(
    ticket: Ticket, dataset: Dataset, *, other_graph: bool = False, device: str = "cpu"
) -> tuple[Task, Inductive | None]:
    """The task of a dataset, refused if it is not on the ticket's graph, unless told otherwise.

    Of a ticket from which nodes were hidden it is the part that the ticket has seen, and what was hidden beside it.
    """
    task, hidden = _read_task(ticket, dataset, dataset.direction, device)
    if dataset.directed and task.graph.fingerprint != ticket.graph_fingerprint:
        # Older tickets have taken a graph for undirected whose edges all go both ways, whatever was said.
        older = _read_task(ticket, dataset, {}, device)
        task, hidden = older if older[0].graph.fingerprint == ticket.graph_fingerprint else (task, hidden)
    if task.graph.fingerprint != ticket.graph_fingerprint and not other_graph:
        raise InputError(
            f"the ticket was found on another graph (got '{dataset.name}'); pass that one as --dataset, "
            "with --directed if it was directed; to a graph that has changed since, fastglt update takes it"
        )
    ticket.check(task, other_graph=other_graph)
    return task, hidden


def _read_task(
    ticket: Ticket, dataset: Dataset, direction: dict[str, Any], device: str
) -> tuple[Task, Inductive | None]:
    told = {**direction, **ticket.task_options}
    whole = ticket.task.from_tensors(dataset.tensors, metric=ticket.config["metric"], **told).to(device)
    return seen_part(ticket, whole)


def classes_seen(dataset: Dataset, task: Task, hidden: Inductive | None) -> Tensor | None:
    """The class of each node of a task's graph; None where labels are something else."""
    labels = dataset.tensors.get("y") if hidden is None else hidden.seen.y
    return classes_in(labels, task.graph.num_nodes)
