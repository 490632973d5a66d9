"""What a batch consists of: a dense twin for every seed, and a ticket for every experiment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastglt.entries import entry_of, stored_settings
from fastglt.experiment import Experiment, Prepared
from fastglt.run_folder import RunFolder, settings_digest
from fastglt.store import Entry, key_of

DENSE = "dense"  # stands where a ticket has its method
OURS = "FASTGLT_"  # how the names of our environment variables begin
STOPPED = 130  # the exit code of a run's process that was stopped, to go on another time


@dataclass(frozen=True, kw_only=True)
class Run:
    """One process's work, in one folder: a ticket (search and isolation), or a dense twin."""

    method: str  # its name, or DENSE
    experiment: Experiment
    settings: Mapping[str, Any]  # all that decides the result
    folder: Path
    twin: Path | None = None  # the folder of a ticket's dense twin

    @property
    def is_dense(self) -> bool:
        """Whether it is the dense twin of a seed's tickets."""
        return self.method == DENSE

    @property
    def name(self) -> str:
        """In words, for people."""
        return f"{self.method}{_sparsities(self.method, self.experiment, ' ')} seed {self.experiment.seed}"

    def result(self) -> dict[str, Any] | None:
        """Its metrics, if it is finished."""
        return RunFolder(self.folder, self.settings).result()

    @property
    def key(self) -> str:
        """What its result is found by in the store, whichever command made it."""
        return key_of(stored_settings(self.settings))

    def entry(self, metrics: Mapping[str, Any], *, command: str) -> Entry:
        """What the store keeps of it, once it is finished."""
        return entry_of(self.settings, metrics, command=command, folder=self.folder)

    def job(self, **more: Any) -> dict[str, Any]:
        """What its process is told, in plain values."""
        return {
            "experiment": self.experiment.to_json(),
            "folder": str(self.folder),
            "dense": self.is_dense,
            "environment": {name: value for name, value in os.environ.items() if name.startswith(OURS)},
            **more,
        }

    @classmethod
    def of(cls, prepared: Prepared, out: Path, *, twin: Path | None) -> "Run":
        """The run that prepared things make: a ticket with its twin, or without one a twin."""
        experiment, settings = prepared.experiment, settings_of(prepared, dense=twin is None)
        method = DENSE if twin is None else prepared.method.name
        name = f"{method}{_sparsities(method, experiment, '-')}-s{experiment.seed}-{settings_digest(settings)}"
        return cls(method=method, experiment=experiment, settings=settings, folder=out / name, twin=twin)


def _sparsities(method: str, experiment: Experiment, separator: str) -> str:
    if method == DENSE:
        return ""
    graph, weight = experiment.targets.graph_sparsity, experiment.targets.weight_sparsity
    return f"{separator}g{100 * graph:g}{separator}w{100 * weight:g}"


def settings_of(prepared: Prepared, *, dense: bool) -> dict[str, Any]:
    """What tells a run from others; a ticket's says that its twin is elsewhere."""
    return prepared.dense_settings if dense else {**prepared.settings, "dense": False}


def plan(experiments: Sequence[Experiment], out: Path) -> list[Run]:
    """All runs, each twin before the first of its tickets, with everything checked that can be without training.

    The experiments differ in method, targets, budget and seed alone. A folder's name has a digest of the settings,
    so whatever is changed, nothing of another batch is used or overwritten.
    """
    runs: dict[Path, Run] = {}
    prepared: Prepared | None = None
    for experiment in experiments:
        prepared = experiment.prepare(like=prepared)
        twin = Run.of(prepared, out, twin=None)
        ticket = Run.of(prepared, out, twin=twin.folder)
        for run in (twin, ticket):
            runs.setdefault(run.folder, run)
    return list(runs.values())
