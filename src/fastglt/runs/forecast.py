"""What a series of runs would do, and a measured guess of how long it would take; nothing is written."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError
from fastglt.methods import FixedMasks, Method
from fastglt.runs.experiment import Prepared
from fastglt.runs.plan import Run
from fastglt.runs.store import Store
from fastglt.system.seeds import own_random_state
from fastglt.training.loop import Training

_PROBE_EPOCHS = 3


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How many runs of a series are there already, how many would be executed, and for how long."""

    runs: int
    finished: int  # in their folders
    reused: int  # from the store
    left: Mapping[str, int]  # how many runs of each kind would be executed
    epochs: int
    seconds: float
    jobs: int  # runs at a time
    out: str
    more: Mapping[str, Any] = field(default_factory=dict)  # what the study adds

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "more"}
        return {**values, "left": dict(self.left), **self.more}


class DryRun(Exception):  # noqa: N818 - as KeyboardInterrupt, it is no error
    """Ends a study that was only to say what it would do."""

    def __init__(self, forecast: Forecast) -> None:
        super().__init__(forecast)
        self.forecast = forecast


def forecast(
    runs: Sequence[Run], store: Path, *, jobs: int, out: Path, with_ticket: Iterable[Run] = ()
) -> Forecast:
    """Look which runs are there, and time a few epochs of each kind of run that is not.

    Of some runs the ticket's file must be at hand as well.
    """
    tickets = {run.folder for run in with_ticket}
    finished = reused = 0
    left: list[Run] = []
    known = Store(store) if store.exists() else None
    for run in runs:
        if _is_finished(run):
            finished += 1
        elif known is not None and run.recorded(known, with_ticket=run.folder in tickets) is not None:
            reused += 1
        else:
            left.append(run)
    at_once = max(1, min(jobs, len(left)))
    return Forecast(
        runs=len(runs),
        finished=finished,
        reused=reused,
        left=Counter(_kind(run) for run in left),
        epochs=sum(run.epochs for run in left),
        seconds=_seconds(left) / at_once,
        jobs=at_once,
        out=str(out),
    )


def _is_finished(run: Run) -> bool:
    try:
        return run.result() is not None
    except FastGLTError:  # its job will say what is wrong with the folder
        return False


def _kind(run: Run) -> str:
    """A run's name without its seed."""
    return run.name.rpartition(" seed ")[0]


def _seconds(left: Sequence[Run]) -> float:
    """Of all runs one after the other: an epoch of each kind is measured, with the first seed that has it."""
    found: dict[str, float] = {}
    prepared: Prepared | None = None
    for run in left:
        if (kind := _kind(run)) not in found:
            run.experiment.use_machine()
            prepared = run.experiment.prepare(like=prepared)
            method = FixedMasks(budget=prepared.method.budget) if run.is_dense else prepared.method
            found[kind] = seconds_per_epoch(prepared, method)
    return sum(found[_kind(run)] * run.epochs for run in left)


def seconds_per_epoch(prepared: Prepared, method: Method) -> float:
    """Measured on a training that is thrown away."""
    with own_random_state(prepared.task.device):
        return probe(prepared.rehearse(method), method)


def probe(training: Training, method: Method) -> float:
    """Seconds for each of a few epochs of a training that has begun, after one that warms up."""
    training.run_epoch(method)
    began = time.monotonic()
    for _ in range(_PROBE_EPOCHS):
        training.run_epoch(method)
    return (time.monotonic() - began) / _PROBE_EPOCHS
