"""A batch of runs on the command line: what is finished is taken, what is left runs, each run is told of."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fastglt.errors import FastGLTError, require

if TYPE_CHECKING:
    from fastglt.batch import Outcome, Run


def finish(runs: "list[Run]", out: Path, jobs: int, checkpoint_every: float, *, quiet: bool) -> "list[Outcome]":
    """Run what is not finished yet, and tell of each run as it ends; returns how all of them ended."""
    from fastglt.batch import Workers
    from fastglt.cli.progress import stop_cleanly

    outcomes = _finished(runs)
    done = {outcome.run.folder for outcome in outcomes}
    left = [run for run in runs if run.folder not in done]
    if outcomes and not quiet:
        typer.echo(f"{len(outcomes)} of {len(runs)} runs are finished already", err=True)
    if left and not quiet:
        typer.echo(f"{len(left)} runs, {min(jobs, len(left))} at a time, in '{out}'", err=True)
    workers = Workers(jobs, logs=out / "logs", checkpoint_every=checkpoint_every)
    with stop_cleanly(workers):
        for outcome in workers.run(left):
            outcomes.append(outcome)
            if not quiet:
                typer.echo(f"{_line(outcome)}; {len(runs) - len(outcomes)} left", err=True)
    return outcomes


def _finished(runs: "list[Run]") -> "list[Outcome]":
    from fastglt.batch import Outcome

    found = []
    for run in runs:
        with contextlib.suppress(FastGLTError):  # its process will say what is wrong with the folder
            metrics = run.result()
            if metrics is not None:
                found.append(Outcome(run=run, metrics=metrics))
    return found


def _line(outcome: "Outcome") -> str:
    from fastglt.compare.table import percent

    run, metrics = outcome.run, outcome.metrics
    if metrics is None:
        return f"{run.name}: failed: {outcome.reason}"
    phases = ("dense",) if run.is_dense else ("search", "isolated")
    scores = ", ".join(f"{phase} {percent(metrics[f'{phase}_test'])} %" for phase in phases)
    return f"{run.name}: {scores}, {sum(metrics[f'{phase}_seconds'] for phase in phases):.1f} s"


def how_many(jobs: int, threads: int, device: str) -> int:
    """Runs at a time; 0 asks for as many as the cores allow."""
    from fastglt.experiment import available_threads

    require("not be negative", jobs=jobs)
    cores = available_threads()
    return jobs or (max(1, cores // (threads or cores)) if device == "cpu" else 1)
