"""A ticket from what a user typed, and the graph it belongs to."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.completion import complete, datasets
from fastglt.errors import InputError, MachineError
from fastglt.system import digests, plain_json
from fastglt.system.storage import disk_errors, read_bytes
from fastglt.system.terminal import warn

if TYPE_CHECKING:
    from fastglt.data import Dataset
    from fastglt.data.origin import Origin
    from fastglt.tasks import Task
    from fastglt.tasks.inductive import Inductive
    from fastglt.tickets.ticket import Ticket

_MOST = 1 << 24  # bytes of a run.json
OwnSplitSeed = Annotated[
    int | None,
    typer.Option("--split-seed", help="Seed of the random split, if the data has none (default: as in run.json)."),
]


def open_ticket(path: Path) -> "tuple[Ticket, Path]":
    """The ticket in a file or in a run's folder, verified, and its file."""
    from fastglt.tickets.ticket_file import load

    with disk_errors(path, "read"):
        file = path / "ticket.safetensors" if path.is_dir() else path
    return load(file), file


def refuse_users_model(ticket: "Ticket", instead: str) -> None:
    """A ticket does not have a user's model in it, only its weights."""
    if ticket.is_of_users_model:
        rule = f"the command line can only build fastglt's own models (got a user's, {ticket.model['class']})"
        raise InputError(f"{rule}; use {instead} in Python")


def run_settings(file: Path) -> dict[str, Any]:
    """The settings of the run that left a ticket; nothing where no run.json tells."""
    return _run(file)[0]


def _run(file: Path) -> "tuple[dict[str, Any], Origin | None]":
    """What run.json tells: the run's settings, and the files of its graph where it came from files."""
    from fastglt.data.origin import Origin

    folder = file.resolve().parent
    record = (folder.parent if folder.name == "rounds" else folder) / "run.json"
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
        if "graph_from" in begun:
            origin = Origin.read(begun["graph_from"], record.parent)
    except (OSError, MachineError, ValueError, KeyError, TypeError, AttributeError):
        fits = False
    if not fits:
        raise InputError(f"'{record}' cannot be read; pass --dataset, with the ticket in another folder") from None
    return settings, origin


def same_split(path: Path, file: Path, task: "Task") -> bool | None:
    """Whether labels and split are those of the ticket's run; None if nobody knows. If they are not, it is told."""
    recorded = run_settings(file).get("labels_and_split")
    same = None if recorded is None else bool(recorded == task.digests["labels_and_split"])
    if same is False:
        tell_of_other_split(path)
    return same


def tell_of_other_split(path: Path | str) -> None:
    """Scores there may be of nodes that were learnt from."""
    what = "labels or split are not the search's, which may have been trained on what are test nodes now"
    warn(f"{path}: {what}")


def names_graph(file: Path) -> bool:
    """Whether the run that left a ticket tells which graph to load: by its name, or by where its files are."""
    from fastglt.data.named import known_name

    settings, origin = _run(file)
    if origin is None:
        name = str(settings.get("dataset"))
        return known_name(name) is not None or known_name(name.partition(":")[0]) is not None
    try:
        return bool(origin.dataset)
    except InputError:  # gone, or another one by now
        return False


def origin_of(file: Path) -> "Origin | None":
    """The files of the graph that a ticket was found on, if its run has recorded them."""
    return _run(file)[1]


@dataclass(frozen=True, kw_only=True)
class OwnGraph:
    """The options that name a ticket's graph."""

    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            "--graph",
            help="The graph (default: what run.json beside the ticket names).",
            autocompletion=complete(datasets),
        ),
    ] = None
    split_seed: OwnSplitSeed = None
    data_root: arguments.DataRoot = None
    directed: arguments.Directed = False

    def load(self, file: Path) -> "Dataset":
        """The dataset that was named for a ticket or, without a name, that the ticket's run was made on."""
        from fastglt.data import load

        name, directed = self.place(file)
        return load(name, root=self.data_root, split_seed=self.split_seed_of(file), directed=directed)

    def place(self, file: Path) -> tuple[str, bool]:
        """What is loaded, and whether as a directed graph."""
        if self.dataset is not None:
            return self.dataset, self.directed
        origin = origin_of(file)
        if origin is None:
            return _recorded(file), self.directed
        if self.directed and not origin.directed:
            rule = "--directed must come with --dataset, or with a ticket whose run has read its graph so"
            raise InputError(f"{rule} (got '{file}', whose run has not); leave it out")
        return origin.dataset, origin.directed

    def split_seed_of(self, file: Path) -> int:
        """What decides the split."""
        return int(run_settings(file).get("split_seed", 0)) if self.split_seed is None else self.split_seed


def _recorded(file: Path) -> str:
    dataset = run_settings(file).get("dataset")
    if dataset is None:
        raise InputError(f"the ticket's graph must be named (got no run.json beside '{file}'); pass --dataset")
    if not names_graph(file):
        raise InputError(f"the ticket's graph came from a file (got '{dataset}'); pass its path as --dataset")
    return str(dataset)


@contextmanager
def warnings_told(path: Path) -> Iterator[None]:
    """Tell each warning about a ticket in one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        warn(f"{path}: {message}")


def task_of(ticket: "Ticket", dataset: "Dataset", *, other_graph: bool = False) -> "Task":
    """The task of a dataset, refused if it is not on the ticket's graph, unless told otherwise.

    Of a ticket from which nodes were hidden it is the part that the ticket has seen.
    """
    return task_and_hidden(ticket, dataset, other_graph=other_graph)[0]


def task_and_hidden(
    ticket: "Ticket", dataset: "Dataset", *, other_graph: bool = False, device: str = "cpu"
) -> "tuple[Task, Inductive | None]":
    """`task_of`, and the nodes that were hidden from the ticket; None if none were."""
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
    ticket: "Ticket", dataset: "Dataset", direction: dict[str, Any], device: str
) -> "tuple[Task, Inductive | None]":
    """The ticket's task, or the part of it that the ticket has seen; then with the nodes that were hidden."""
    from fastglt.tasks.inductive import hide

    told = {**direction, **ticket.task_options}
    task = ticket.task.from_tensors(dataset.tensors, metric=ticket.config["metric"], **told).to(device)
    said = ticket.config.get("inductive")
    if said is None:
        return task, None
    hidden = hide(task, said["share"], seed=said["split_seed"])
    return hidden.seen, hidden
