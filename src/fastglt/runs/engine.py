"""Who executes a series of runs: an engine gets runs, has each one's job done somewhere, and yields outcomes.

The simplest engine works in this process. Whatever else one does (processes, a cluster), the job stays the same:

>>> from fastglt.runs.worker import work
>>> class InThisProcess:
...     def __init__(self, jobs, *, logs, **job_settings):
...         self.stop, self._job_settings = False, job_settings
...     def run(self, runs):
...         for number, run in enumerate(runs):
...             if self.stop:
...                 raise KeyboardInterrupt(f"{number} of {len(runs)} runs")
...             work(run.job(**self._job_settings))
...             yield Outcome(run=run, metrics=run.result())

It gets a name by one line in `fastglt.runs.series.ENGINES`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fastglt.errors import InputError
from fastglt.methods import lookup
from fastglt.runs.plan import Run
from fastglt.system.plugins import is_ours


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: with metrics, or with the reason why there are none."""

    run: Run
    metrics: Mapping[str, Any] | None = None
    reason: str = ""
    warnings: Sequence[str] = ()  # what it has warned of, such as a damaged checkpoint
    place: str | None = None  # the folder it is in, where another command made it


class Engine(Protocol):
    """Executes runs, in whichever order and place; one that fails takes no other with it."""

    stop: bool  # set it, and runs stop as soon as they can go on from there another time

    def run(self, runs: Sequence[Run]) -> Iterator[Outcome]:
        """Outcomes as they come in; KeyboardInterrupt, with how many have ended, if the rest was stopped."""
        ...


class MakeEngine(Protocol):
    """How an engine is made: mostly its class."""

    def __call__(
        self,
        jobs: int,  # runs at a time, at most
        *,
        logs: Path,  # a folder for what failed runs have printed
        store: Path,  # this one and the next two are told to every job
        command: str,
        checkpoint_every: float,
    ) -> Engine:
        """An engine for one series."""
        ...


def refuse_what_only_this_process_has(runs: Sequence[Run]) -> None:
    """A method that was defined at a prompt, or in the script itself, cannot be found by a run's process."""
    for run in runs:
        asked = run.experiment.method
        if ":" not in asked and not is_ours(method := lookup(asked)):
            rule = f"method '{asked}' must be in a module that other processes can import"
            remedy = "put its class into a file of its own, and import it from there"
            raise InputError(f"{rule} (got one from {method.__module__}); {remedy}")
