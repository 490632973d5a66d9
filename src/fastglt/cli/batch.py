"""A batch of runs on the command line: what is finished is taken, what is left runs, each run is told of."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fastglt.errors import FastGLTError, require

if TYPE_CHECKING:
    from fastglt.batch import Outcome, Run


def finish(
    runs: "list[Run]",
    out: Path,
    jobs: int,
    checkpoint_every: float,
    *,
    command: str,
    store: Path,
    quiet: bool,
) -> "list[Outcome]":
    """Run what is neither finished nor in the store, and tell of each run as it ends; returns how all ended.

    Every finished run is in the store then, under the command's name unless it was there before.
    """
    from fastglt.batch import Workers
    from fastglt.cli.progress import stop_cleanly

    outcomes, reused = _finished(runs, store, command)
    done = {outcome.run.folder for outcome in outcomes}
    left = [run for run in runs if run.folder not in done]
    if not quiet:
        if len(outcomes) > reused:
            typer.echo(f"{len(outcomes) - reused} of {len(runs)} runs are finished already", err=True)
        if reused:
            typer.echo(f"{reused} of {len(runs)} runs are taken from the store '{store}'", err=True)
        if left:
            typer.echo(f"{len(left)} runs, {min(jobs, len(left))} at a time, in '{out}'", err=True)
    workers = Workers(jobs, logs=out / "logs", store=store, command=command, checkpoint_every=checkpoint_every)
    with stop_cleanly(workers):
        for outcome in workers.run(left):
            outcomes.append(outcome)
            if not quiet:
                typer.echo(f"{_line(outcome)}; {len(runs) - len(outcomes)} left", err=True)
    return outcomes


def _finished(runs: "list[Run]", path: Path, command: str) -> "tuple[list[Outcome], int]":
    """What need not run, with how many of them from the store; finished folders that are not in it get in."""
    from fastglt.batch import Outcome
    from fastglt.store import Store

    store, found, reused = Store(path), [], 0
    for run in runs:
        try:
            metrics: Mapping[str, Any] | None = run.result()
        except FastGLTError:  # its process will say what is wrong with the folder
            continue
        if metrics is not None:
            store.ensure(run.entry(metrics, command=command))
        else:
            entry = store.find(run.key)
            metrics = None if entry is None else entry.metrics
            reused += entry is not None
        if metrics is not None:
            found.append(Outcome(run=run, metrics=metrics))
    return found, reused


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
