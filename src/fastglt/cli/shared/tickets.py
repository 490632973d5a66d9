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
from fastglt.errors import InputError
from fastglt.system.storage import disk_errors
from fastglt.system.terminal import warn

if TYPE_CHECKING:
    from fastglt.data import Dataset
    from fastglt.data.origin import Origin
    from fastglt.tasks import Task
    from fastglt.tickets.ticket import Ticket

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
    from fastglt.runs.own_graph import run_of

    return run_of(file)[0]


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
    from fastglt.runs.own_graph import run_of

    settings, origin = run_of(file)
    if origin is None:
        name = str(settings.get("dataset"))
        return known_name(name) is not None or known_name(name.partition(":")[0]) is not None
    try:
        return bool(origin.dataset)
    except InputError:  # gone, or another one by now
        return False


def origin_of(file: Path) -> "Origin | None":
    """The files of the graph that a ticket was found on, if its run has recorded them."""
    from fastglt.runs.own_graph import run_of

    return run_of(file)[1]


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
        return self.load_at(*self.place(file), self.split_seed_of(file))

    def load_at(self, name: str, directed: bool, split_seed: int) -> "Dataset":
        """The dataset at a place."""
        from fastglt.data import load

        return load(name, root=self.data_root, split_seed=split_seed, directed=directed)

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
    from fastglt.runs.own_graph import task_and_hidden

    return task_and_hidden(ticket, dataset, other_graph=other_graph)[0]
