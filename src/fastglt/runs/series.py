"""A series of runs: what is finished is taken, what is left an engine executes, each run is told of as it ends."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fastglt.errors import FastGLTError, require, unknown_name
from fastglt.report.wording import duration, percent, phase_title
from fastglt.runs.engine import Engine, MakeEngine, Outcome
from fastglt.runs.experiment import Experiment, available_threads
from fastglt.runs.forecast import DryRun, forecast
from fastglt.runs.local import LocalEngine
from fastglt.runs.plan import Run, plan
from fastglt.runs.progress import Agenda
from fastglt.runs.ray_engine import RayEngine
from fastglt.runs.store import Store
from fastglt.system.provenance import revision
from fastglt.system.signals import stop_on_signals
from fastglt.system.terminal import safe, warn

ENGINES: dict[str, MakeEngine] = {"local": LocalEngine, "ray": RayEngine}
Tell = Callable[[str], None]


class Stopped(KeyboardInterrupt):
    """A series that was interrupted, with how far it came; run again, it goes on from there."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """What all runs of a series share: where they are kept, who executes them, who is told.

    >>> series = Series(command="compare", out=Path("runs/mine"), store=Path("runs/results.sqlite"), jobs=2)
    >>> runs, outcomes = series.run(experiments)  # doctest: +SKIP
    """

    command: str  # the name under which runs are recorded
    out: Path  # the folder of the runs' folders
    store: Path
    jobs: int = 1  # runs at a time
    checkpoint_every: float = 10.0  # seconds
    engine: str | MakeEngine | None = "local"  # None: nothing is executed, what is there is taken
    shown: str = "test"  # the scores that are told while runs end; val where these decide what runs next
    tell: Tell | None = None  # gets a line of text for whatever happens
    dry_run: bool = False  # raise `DryRun`, with what would be executed, instead of doing so
    with_tickets: bool = False  # of the store's runs only those whose tickets are at hand are taken

    def __post_init__(self) -> None:
        require("not be negative", checkpoint_every=self.checkpoint_every)
        if isinstance(self.engine, str) and self.engine not in ENGINES:
            raise unknown_name("engine", self.engine, ENGINES)

    def run(
        self, experiments: Sequence[Experiment], labels: Sequence[str] = (), *, plain_twins: bool = False
    ) -> tuple[list[Run], list[Outcome]]:
        """Execute what is neither finished nor in the store; gives all runs, and how each of them ended.

        Every finished run is in the store then, under this command's name unless it was there before. `labels` may
        say what the experiments' tickets are called; of the dense twins of taught ones, `plain_twins` has the plain
        network alone. Interrupted, it raises `Stopped`.
        """
        runs = plan(experiments, self.out, labels, plain_twins=plain_twins)
        if self.dry_run:
            with_ticket = runs if self.with_tickets else ()
            raise DryRun(forecast(runs, self.store, jobs=self.jobs, out=self.out, with_ticket=with_ticket))
        outcomes = self._finished(runs)
        done = {outcome.run.folder for outcome in outcomes}
        left = [run for run in runs if run.folder not in done]
        if self.engine is None:
            return runs, outcomes
        if left:
            several = f"{len(left)} runs, {min(self.jobs, len(left))} at a time," if len(left) > 1 else "1 run"
            self._tell(f"{several} in '{self.out}'")
        engine, clock, agenda = (
            self._make_engine(self.engine),
            _Clock(left),
            Agenda(self.out / "logs", [run.folder for run in left]),
        )
        with stop_on_signals(engine), agenda:
            try:
                for outcome in engine.run(left):
                    outcomes.append(outcome)
                    agenda.ended(outcome.run.folder, outcome.reason)
                    for message in outcome.warnings:
                        warn(f"{outcome.run.name}: {message}")
                    clock.ended(outcome.run)
                    self._tell(f"{self._line(outcome)}; {len(runs) - len(outcomes)} left{clock.time_left}")
            except KeyboardInterrupt as stopped:
                raise Stopped(*stopped.args) from None
        return runs, outcomes

    def _make_engine(self, engine: str | MakeEngine) -> Engine:
        make = ENGINES[engine] if isinstance(engine, str) else engine
        return make(
            self.jobs,
            logs=self.out / "logs",
            store=self.store,
            command=self.command,
            checkpoint_every=self.checkpoint_every,
        )

    def _finished(self, runs: Sequence[Run]) -> list[Outcome]:
        """What need not run: finished folders, which get into the store, and what the store has."""
        store, found, reused, older = Store(self.store), list[Outcome](), 0, 0
        for run in runs:
            try:
                metrics = run.result()
            except FastGLTError:  # its job will say what is wrong with the folder
                continue
            if metrics is not None:
                run.tidy()
                store.ensure(run.entry(metrics, command=self.command))
                found.append(Outcome(run=run, metrics=metrics))
            elif (entry := run.recorded(store, with_ticket=self.with_tickets)) is not None:
                reused += 1
                older += entry.revision != revision()
                found.append(Outcome(run=run, metrics=entry.metrics, place=entry.folder))
        if len(found) > reused:
            self._tell(f"{len(found) - reused} of {len(runs)} runs are finished already")
        if reused:
            other = f", {older} of them made by another, or a changed, revision of fastglt" if older else ""
            self._tell(f"{reused} of {len(runs)} runs are reused from the store '{self.store}'{other}")
        return found

    def _line(self, outcome: Outcome) -> str:
        run, metrics = outcome.run, outcome.metrics
        if metrics is None:
            return f"{run.name}: failed: {outcome.reason}"
        phases = (run.method,) if run.is_dense else ("search", "isolated")
        scores = ", ".join(
            f"{phase_title(phase)} {percent(metrics[f'{phase}_{self.shown}'])} %" for phase in phases
        )
        seconds = sum(metrics.get(f"{phase}_seconds", 0.0) for phase in ("teacher", *phases))
        return f"{run.name}: {'validation: ' * (self.shown == 'val')}{scores}, {seconds:.1f} s"

    def _tell(self, line: str) -> None:
        if self.tell is not None:
            self.tell(safe(line))


class _Clock:
    """How long the runs that are left will take: as long for an epoch as those that have ended."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._began, self._done, self._left = time.monotonic(), 0, sum(run.epochs for run in runs)

    def ended(self, run: Run) -> None:
        self._done, self._left = self._done + run.epochs, self._left - run.epochs

    @property
    def time_left(self) -> str:
        """In words that follow others; nothing at the end."""
        passed = time.monotonic() - self._began
        return f", about {duration(passed * self._left / self._done)}" if self._left and self._done else ""


def runs_at_a_time(jobs: int, threads: int, device: str) -> int:
    """So many; 0 asks for as many as the cores allow, or for one on a GPU."""
    require("not be negative", jobs=jobs)
    cores = available_threads()
    return jobs or (max(1, cores // (threads or cores)) if device == "cpu" else 1)


def tell_on_stderr(line: str) -> None:
    """Print a line where it is in nobody's way."""
    print(line, file=sys.stderr, flush=True)
