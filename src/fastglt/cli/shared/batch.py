"""A batch of runs on the command line: what is finished is taken, what is left runs, each run is told of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fastglt.errors import FastGLTError, require

if TYPE_CHECKING:
    from fastglt.runs.experiment import Experiment
    from fastglt.runs.local import Outcome
    from fastglt.runs.plan import Run
    from fastglt.studies.compare import Comparison


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What all runs of a command share: where they are kept, and how they run."""

    command: str
    out: Path
    store: Path
    jobs: int
    checkpoint_every: float
    quiet: bool
    shown: str = "test"  # the scores that are told while runs end; val where these decide what runs next

    def __post_init__(self) -> None:
        require("not be negative", checkpoint_every=self.checkpoint_every)

    def results(self, experiments: "Sequence[Experiment]") -> "Comparison":
        """Run what is neither finished nor in the store, and tell of each run as it ends.

        Every finished run is in the store then, under this command's name unless it was there before.
        """
        from fastglt.cli.shared.progress import stop_cleanly
        from fastglt.runs.local import Workers
        from fastglt.runs.plan import plan
        from fastglt.studies.compare import Comparison

        runs = plan(experiments, self.out)
        outcomes, reused, older = self._finished(runs)
        done = {outcome.run.folder for outcome in outcomes}
        left = [run for run in runs if run.folder not in done]
        if len(outcomes) > reused:
            self._say(f"{len(outcomes) - reused} of {len(runs)} runs are finished already")
        if reused:
            other = f", {older} of them made by another, or a changed, revision of fastglt" if older else ""
            self._say(f"{reused} of {len(runs)} runs are taken from the store '{self.store}'{other}")
        if left:
            several = f"{len(left)} runs, {min(self.jobs, len(left))} at a time," if len(left) > 1 else "1 run"
            self._say(f"{several} in '{self.out}'")
        workers = Workers(
            self.jobs,
            logs=self.out / "logs",
            store=self.store,
            command=self.command,
            checkpoint_every=self.checkpoint_every,
        )
        with stop_cleanly(workers):
            for outcome in workers.run(left):
                outcomes.append(outcome)
                self._say(f"{self._line(outcome)}; {len(runs) - len(outcomes)} left")
        return Comparison(runs, outcomes)

    def _finished(self, runs: "Sequence[Run]") -> "tuple[list[Outcome], int, int]":
        """What need not run, how many of that the store has, and how many of those other code made.

        Finished folders that are not in the store get in.
        """
        from fastglt.runs.local import Outcome
        from fastglt.runs.store import Store
        from fastglt.system.provenance import revision

        store, found, reused, older = Store(self.store), [], 0, 0
        for run in runs:
            try:
                metrics = run.result()
            except FastGLTError:  # its process will say what is wrong with the folder
                continue
            if metrics is not None:
                store.ensure(run.entry(metrics, command=self.command))
                found.append(Outcome(run=run, metrics=metrics))
            elif (entry := store.find(run.key)) is not None:
                reused += 1
                older += entry.revision != revision() or str(entry.revision).endswith("-dirty")
                found.append(Outcome(run=run, metrics=entry.metrics, place=entry.folder))
        return found, reused, older

    def _line(self, outcome: "Outcome") -> str:
        from fastglt.report.wording import percent

        run, metrics = outcome.run, outcome.metrics
        if metrics is None:
            return f"{run.name}: failed: {outcome.reason}"
        phases = (run.method,) if run.is_dense else ("search", "isolated")
        scores = ", ".join(
            f"{phase.replace('_', ' ')} {percent(metrics[f'{phase}_{self.shown}'])} %" for phase in phases
        )
        seconds = sum(metrics.get(f"{phase}_seconds", 0.0) for phase in ("teacher", *phases))
        return f"{run.name}: {'validation: ' * (self.shown == 'val')}{scores}, {seconds:.1f} s"

    def _say(self, text: str) -> None:
        if not self.quiet:
            typer.echo(text, err=True)


def tell_failures(failures: Sequence[Mapping[str, Any]]) -> None:
    """Name the runs that failed, if any did, and end with their exit code."""
    for failure in failures:
        typer.echo(f"failed: {failure['run']}: {failure['reason']}", err=True)
    if failures:
        typer.echo("the same command tries again what failed, and nothing else", err=True)
        raise typer.Exit(1)


def how_many(jobs: int, threads: int, device: str) -> int:
    """Runs at a time; 0 asks for as many as the cores allow."""
    from fastglt.runs.experiment import available_threads

    require("not be negative", jobs=jobs)
    cores = available_threads()
    return jobs or (max(1, cores // (threads or cores)) if device == "cpu" else 1)
