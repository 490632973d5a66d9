"""What a series of runs consists of: the dense twins of every seed, and a ticket for every experiment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fastglt.errors import InputError
from fastglt.methods.base import UNITS
from fastglt.runs.entries import entry_of, stored_settings
from fastglt.runs.experiment import Experiment, Prepared
from fastglt.runs.run_folder import RunFolder, settings_digest
from fastglt.runs.store import Entry, Store, key_of
from fastglt.tickets.phases import DENSE, DISTILLED, SAME_LR

OURS = "FASTGLT_"  # how the names of our environment variables begin
STOPPED = 130  # the exit code of a run's process that was stopped, to go on another time


@dataclass(frozen=True, kw_only=True)
class Run:
    """One process's work, in one folder: a ticket (search and isolation), or a dense twin.

    A distilled ticket, and a distilled twin, train their teacher themselves.
    """

    method: str  # its name, or its variant's label; a twin's stands where a ticket has its method
    experiment: Experiment
    settings: Mapping[str, Any]  # all that decides the result
    folder: Path
    twins: Mapping[str, Path] = field(default_factory=dict)  # the folders of a ticket's dense twins
    names_split: bool = False  # its series has several splits

    @property
    def is_dense(self) -> bool:
        """Whether it is a dense twin of a seed's tickets."""
        return self.method in (DENSE, DISTILLED, SAME_LR)

    @property
    def name(self) -> str:
        """In words, for people."""
        words = [self.method.replace("_", " ")] if self.is_dense else _words(self.method, self.experiment)
        split = [f"split {self.experiment.split_seed}"] if self.names_split else []
        return " ".join([*words, *split, f"seed {self.experiment.seed}"])

    @property
    def epochs(self) -> int:
        """Of all its trainings together."""
        budget = self.experiment.budget
        taught = budget.epochs if budget.distill > 0 and self.method not in (DENSE, SAME_LR) else 0
        return taught + budget.epochs + (0 if self.is_dense else self.experiment.make_method().epochs)

    def result(self) -> dict[str, Any] | None:
        """Its metrics, if it is finished."""
        return RunFolder(self.folder, self.settings).result()

    def tidy(self) -> None:
        """Remove what a kill has left beside the result of a finished run."""
        RunFolder(self.folder, self.settings).tidy()

    @property
    def key(self) -> str:
        """What its result is found by in the store, whichever command made it."""
        return key_of(stored_settings(self.settings))

    def recorded(self, store: Store, *, with_ticket: bool = False) -> Entry | None:
        """Its row in a store; `with_ticket`: if its ticket is at hand too, which rows from elsewhere lack."""
        found = store.find(self.key)
        if found is None or self.is_dense or not with_ticket:
            return found
        return found if found.ticket and Path(found.ticket).is_file() else None

    def entry(self, metrics: Mapping[str, Any], *, command: str) -> Entry:
        """What the store keeps of it, once it is finished."""
        return entry_of(self.settings, metrics, command=command, folder=self.folder)

    def job(self, **more: Any) -> dict[str, Any]:
        """What its process is told, in plain values."""
        return {
            "experiment": self.experiment.to_json(),
            "folder": str(self.folder),
            "twin": self.method if self.is_dense else None,
            "environment": {name: value for name, value in os.environ.items() if name.startswith(OURS)},
            **more,
        }

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        out: Path,
        *,
        twin: str | None,
        twins: Mapping[str, Path] | None = None,
        label: str | None = None,
        names_split: bool = False,
    ) -> "Run":
        """The run that prepared things make: one of the ticket's twins or, without a name, the ticket.

        A label is what people read instead of the method's name; the folder goes by the name.
        """
        experiment, settings, method = prepared.experiment, settings_of(prepared, twin), prepared.method.name
        words = _words(method, experiment) if twin is None else [twin]
        name = "-".join([*words, f"s{experiment.seed}", settings_digest(settings)])
        return cls(
            method=twin or label or method,
            experiment=experiment,
            settings=settings,
            folder=out / name,
            twins=twins or {},
            names_split=names_split,
        )


def _words(method: str, experiment: Experiment) -> list[str]:
    """What a ticket is called."""
    graph, weight = experiment.targets.graph_sparsity, experiment.targets.weight_sparsity
    units = ["units"] if experiment.targets.structure == UNITS else []
    taught = ["distilled"] if experiment.budget.distill > 0 else []
    taught += ["inductive"] if experiment.inductive is not None else []
    return [method, f"g{100 * graph:g}", f"w{100 * weight:g}", *units, *taught]


def settings_of(prepared: Prepared, twin: str | None) -> dict[str, Any]:
    """What tells a run from others; a ticket's says that its twins are elsewhere."""
    return {**prepared.settings, "dense": False} if twin is None else prepared.twins[twin]


def plan(
    experiments: Sequence[Experiment], out: Path, labels: Sequence[str] = (), *, plain_twins: bool = False
) -> list[Run]:
    """All runs, all twins before the first of their tickets, with everything checked that can be without training.

    The experiments differ in method, targets, budget and seeds alone; `labels` may say what their tickets are
    called. Of several twins the plain dense network alone is trained where nobody looks at the others
    (`plain_twins`). A folder's name has a digest of the settings, so whatever is changed, nothing of another series
    is used or overwritten.
    """
    runs: dict[Path, Run] = {}
    splits: dict[str, int] = {}
    several = len({experiment.split_seed for experiment in experiments}) > 1
    prepared: Prepared | None = None
    for experiment, label in zip_longest(experiments, labels):
        prepared = experiment.prepare(like=prepared)
        _check_split(prepared, splits)
        twins = {name: Run.of(prepared, out, twin=name, names_split=several) for name in prepared.twins}
        if plain_twins:
            twins = {DENSE: twins[DENSE]}
        folders = {name: run.folder for name, run in twins.items()}
        ticket = Run.of(prepared, out, twin=None, twins=folders, label=label, names_split=several)
        for run in (*twins.values(), ticket):
            runs.setdefault(run.folder, run)
    return list(runs.values())


def _check_split(prepared: Prepared, known: dict[str, int]) -> None:
    """Refuse two split seeds that give one split: it would count twice."""
    seed = prepared.experiment.split_seed
    first = known.setdefault(prepared.task.digest, seed)
    if first != seed:
        rule = f"split_seeds must give different splits, and that of '{prepared.dataset.name}' is fixed"
        raise InputError(f"{rule} (got the same for {first} and {seed}); leave split_seeds out")
