"""What a person sees while a run is under way, and how it is stopped."""

import contextlib
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fastglt.report.tables import say
from fastglt.report.wording import duration
from fastglt.system.signals import Stoppable, stop_on_signals

if TYPE_CHECKING:
    from fastglt.training.loop import Training

_ROOM_FOR_NOTES = 110  # columns of a terminal from which sparsities stand beside the bar
_LINE_EVERY = 15.0  # seconds between lines where there is no terminal


class TimeLeft:
    """How long several trainings, as long as each other, still take: at the pace of those so far."""

    def __init__(self, trainings: int) -> None:
        self.trainings, self.done = trainings, 0.0
        self._first: tuple[float, float] | None = None  # when, and how far, it was after the first epoch

    def after_epoch(self, epoch: int, epochs: int) -> None:
        """A training is so far; after its last epoch the next one follows."""
        self.done = int(self.done) + (1.0 if epoch == epochs else min(epoch / epochs, 0.999))
        self._first = self._first or (time.monotonic(), self.done)

    @property
    def text(self) -> str:
        """In words; nothing while there is nothing to go by."""
        began, before = self._first or (0.0, self.done)
        left = self.trainings - self.done
        if left <= 0 or self.done <= before:
            return ""
        return f"about {duration((time.monotonic() - began) * left / (self.done - before))} left"

    @property
    def count(self) -> str:
        """The training that is under way, among all."""
        return f"{min(int(self.done) + (self.done % 1 > 0), self.trainings)}/{self.trainings}"


class Reporter:
    """A live bar on a terminal, a line now and then elsewhere; always on standard error.

    Each phase has a bar and its time left; of several trainings there is one bar, with the time left for all.
    """

    def __init__(self, *, quiet: bool, left: TimeLeft | None = None) -> None:
        self._quiet, self._left = quiet, left
        console = Console(stderr=True)
        self._notes = console.width >= _ROOM_FOR_NOTES
        self._bar = Progress(
            TextColumn("[bold]{task.description:<16}"),
            BarColumn(bar_width=24 if self._notes else 12),
            MofNCompleteColumn() if left is None else TextColumn("[green]{task.fields[count]}"),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=not self._notes) if left is None else TextColumn("{task.fields[left]}"),
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
        if self._left is not None:
            self._left.after_epoch(training.epoch, epochs)
        if self._quiet:
            return
        record = training.history[-1]
        note = f"validation {100 * record.val:.1f} %"
        sparse = not phase.startswith(("dense", "teacher"))
        if sparse and (self._notes or self._bar.disable) and self._left is None:
            note += f"  edges −{100 * record.graph_sparsity:.1f} %  weights −{100 * record.weight_sparsity:.1f} %"
        if self._bar.disable:
            self._tell(phase, training.epoch, epochs, note)
        elif self._left is None:
            self._show(phase, phase, training.epoch, epochs, note=note)
        else:
            left = self._left
            self._show("all", phase, left.done, left.trainings, note=note, count=left.count, left=left.text)

    def _show(self, bar: str, phase: str, done: float, total: float, **texts: Any) -> None:
        if bar not in self._tasks:
            self._tasks[bar] = self._bar.add_task(phase, total=total, note="", count="", left="")
        self._bar.update(self._tasks[bar], description=phase, completed=done, **texts)

    def _tell(self, phase: str, epoch: int, epochs: int, note: str) -> None:
        now = time.monotonic()
        if now < self._next_line and epoch < epochs:
            return
        self._next_line = now + _LINE_EVERY
        if self._left is not None:
            note += "  ".join(["", f"training {self._left.count}", *filter(None, [self._left.text])])
        say(f"{phase}: epoch {epoch}/{epochs}  {note}", err=True)


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
            say(text, err=True)


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
    say(f"stopped{where}; the same command goes on from there", err=True)
    return typer.Exit(130)
