"""What a person sees while a run is under way, and how it is stopped."""

import contextlib
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fastglt.system.signals import Stoppable, stop_on_signals

if TYPE_CHECKING:
    from fastglt.training.loop import Training

_ROOM_FOR_NOTES = 110  # columns of a terminal from which sparsities stand beside the bar
_LINE_EVERY = 15.0  # seconds between lines where there is no terminal


class Reporter:
    """A live bar on a terminal, a line now and then elsewhere; always on standard error."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        console = Console(stderr=True)
        self._notes = console.width >= _ROOM_FOR_NOTES
        self._bar = Progress(
            TextColumn("[bold]{task.description:<16}"),
            BarColumn(bar_width=24 if self._notes else 12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=not self._notes),
            console=console,
            disable=quiet or not sys.stderr.isatty(),
        )
        self._tasks: dict[str, TaskID] = {}
        self._next_line = 0.0

    def __enter__(self) -> "Reporter":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def after_epoch(self, phase: str, training: "Training", epochs: int) -> None:
        """Show where a phase is."""
        if self._quiet:
            return
        record = training.history[-1]
        note = f"validation {100 * record.val:.1f} %"
        if not phase.startswith(("dense", "teacher")) and (self._notes or self._bar.disable):
            note += f"  edges −{100 * record.graph_sparsity:.1f} %  weights −{100 * record.weight_sparsity:.1f} %"
        if self._bar.disable:
            now = time.monotonic()
            if now >= self._next_line or training.epoch == epochs:
                self._next_line = now + _LINE_EVERY
                typer.echo(f"{phase}: epoch {training.epoch}/{epochs}  {note}", err=True)
            return
        if phase not in self._tasks:
            self._tasks[phase] = self._bar.add_task(phase, total=epochs, note="")
        self._bar.update(self._tasks[phase], completed=training.epoch, note=note)


class Notes:
    """Where a long measurement is: a spinner on a terminal, a line now and then elsewhere; on standard error."""

    def __init__(self, about: str, *, quiet: bool) -> None:
        self._about, self._quiet = about, quiet
        self._spinner = Console(stderr=True).status(about) if sys.stderr.isatty() and not quiet else None
        self._next_line = 0.0

    def __enter__(self) -> "Notes":
        if self._spinner is not None:
            self._spinner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._spinner is not None:
            self._spinner.stop()

    def tell(self, what: str) -> None:
        """Say what is being done."""
        text, now = f"{self._about}: {what}", time.monotonic()
        if self._spinner is not None:
            self._spinner.update(text)
        elif not self._quiet and now >= self._next_line:
            self._next_line = now + _LINE_EVERY
            typer.echo(text, err=True)


@contextlib.contextmanager
def stop_cleanly(running: Stoppable) -> Iterator[None]:
    """Ctrl-C or a termination request: finish the epoch, write a checkpoint, say how to go on."""
    with stop_on_signals(running):
        try:
            yield
        except KeyboardInterrupt as stopped:
            raise tell_stopped(stopped) from None


def tell_stopped(stopped: KeyboardInterrupt) -> typer.Exit:
    """Say where it stopped and how to go on; gives what ends the command."""
    where = f" after {stopped}" if str(stopped) else ""
    typer.echo(f"stopped{where}; the same command goes on from there", err=True)
    return typer.Exit(130)
