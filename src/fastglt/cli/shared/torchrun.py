"""`fastglt find` in several processes of torchrun: the first one talks and writes, the others help."""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fastglt.cli.shared.setup import Setup
from fastglt.errors import InputError
from fastglt.system import ranks

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared
    from fastglt.runs.run_folder import RunFolder
    from fastglt.tickets.phases import Journal, Progress


@dataclass(frozen=True)
class Helper:
    """A process that keeps silent until something goes wrong, and even then if another one has told it."""

    errors: int | None  # where standard error was; None: this process talks

    def speak(self, code: int) -> None:
        """Say what went wrong on the real standard error, or end without a word and with this exit code."""
        if ranks.started()[1] == 1:
            return
        if not ranks.tells():
            sys.exit(code)
        if self.errors is not None:
            os.dup2(self.errors, 2)


def silent_helper() -> Helper:
    """Silence a process that helps another one."""
    if ranks.started()[0] == 0:
        return Helper(None)
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    return Helper(kept)


def shared_out(setup: Setup, threads: int, *, prefer: str | None, out: Path | None) -> tuple[Setup, int]:
    """A setup for as many processes as there are: by default a part and a share for each, and a thread.

    A run that was begun in its folder with another number of processes keeps the shares that it has.
    """
    size = ranks.world().size
    if setup.parts and setup.shares is None and setup.parts_per_step is None and out is not None:
        setup = replace(setup, **_begun(out))
    if size == 1:
        return setup, threads
    from fastglt.runs.ranked import check_ranks

    if prefer is not None:
        raise InputError(f"--prefer makes runs of its own, each in one process (got {size}); leave torchrun out")
    check_ranks(size, parts=setup.parts, shares=setup.shares, exact=setup.exact)
    shares = size if setup.shares is None else setup.shares
    parts_per_step = shares if setup.parts_per_step is None else setup.parts_per_step
    return replace(setup, shares=shares, parts_per_step=parts_per_step), threads or 1


def _begun(out: Path) -> dict[str, Any]:
    """How a run that was begun in a folder divides its steps; nothing if there is none, or it is damaged."""
    from fastglt.runs.folder_files import RUN, read_json

    begun = read_json(out / RUN, "settings")
    settings = begun.get("settings") if begun else None
    found = settings if isinstance(settings, dict) else {}
    names = ("shares", "parts_per_step")
    return {name: found[name] for name in names if isinstance(found.get(name), int)}


def run_together(
    prepared: "Prepared", folder: "RunFolder", journal: "Journal", progress: "Progress"
) -> dict[str, Any]:
    """The first process's run, with or without others; returns the metrics, with what the processes took."""
    found = prepared.find(journal, progress)
    return prepared.keep(found, folder, **_taken())


def help_first(prepared: "Prepared") -> dict[str, Any]:
    """Another process's part in a run: it computes, and writes nothing."""
    from fastglt.runs.ranked import RankedJournal
    from fastglt.system.signals import stop_on_signals

    journal = RankedJournal(None)
    with journal.open() as finished:
        if finished is None:
            try:
                with stop_on_signals(journal):
                    prepared.warm_up()
                    prepared.find(journal)
                    _taken()
            except KeyboardInterrupt:  # the first process says so
                raise typer.Exit(130) from None
    return {}


def _taken() -> dict[str, Any]:
    from fastglt.system.process import peak_memory

    world = ranks.world()
    return {} if world.size == 1 else {"ranks": world.report(peak_memory())}
