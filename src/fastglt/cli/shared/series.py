"""A series of runs on the command line: what is told on the way, when it is stopped, and of runs that failed."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

from fastglt.errors import InputError
from fastglt.report.tables import say
from fastglt.system.terminal import safe


def teller(*, quiet: bool) -> "bool | Callable[[str], None]":
    """What a study tells of its progress by."""
    return False if quiet else lambda line: say(line, err=True)


def executed_by(engine: str, ray_address: str | None, *, jobs: int, threads: int, device: str) -> dict[str, Any]:
    """The engine, and how many runs at a time; Ray must be there, a cluster that is named answer."""
    if engine != "ray":
        if ray_address not in (None, os.environ.get("RAY_ADDRESS")):
            raise InputError(f"--ray-address must come with --engine ray (got '{ray_address}' with {engine})")
        return {"engine": engine, "jobs": jobs}
    from fastglt.runs.ray_cluster import cluster_jobs, require_ray
    from fastglt.runs.ray_engine import ray_at

    require_ray()
    room = cluster_jobs(ray_address, threads=threads, device=device) if ray_address else 0
    return {"engine": ray_at(ray_address), "jobs": jobs or room}


@contextlib.contextmanager
def told_how_to_go_on() -> Iterator[None]:
    """A series that was interrupted ends the command, with how to go on."""
    from fastglt.cli.shared.progress import tell_stopped
    from fastglt.runs.series import Stopped

    try:
        yield
    except Stopped as stopped:
        raise tell_stopped(stopped) from None


def tell_failures(failures: Sequence[Mapping[str, Any]]) -> None:
    """Name the runs that failed, if any did, and end with their exit code."""
    for failure in failures:
        say(safe(f"failed: {failure['run']}: {failure['reason']}"), err=True)
    if failures:
        say("the same command tries again what failed, and nothing else", err=True)
        raise typer.Exit(1)
