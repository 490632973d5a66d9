"""A series of runs on the command line: what is told on the way, when it is stopped, and of runs that failed."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import typer

from fastglt.report.tables import say
from fastglt.system.terminal import safe


def teller(*, quiet: bool) -> "bool | Callable[[str], None]":
    """What a study tells of its progress by."""
    return False if quiet else lambda line: say(line, err=True)


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
