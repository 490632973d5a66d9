"""What a person sees while a run is under way, and how it is stopped."""

import contextlib
import sys
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from fastglt.report.bars import Bar, TimeLeft, note_of
from fastglt.report.tables import say
from fastglt.report.wording import phase_title
from fastglt.system.signals import Stoppable, stop_on_signals

if TYPE_CHECKING:
    from fastglt.training.loop import Training

_LINE_EVERY = 15.0  # seconds between lines where there is no terminal


class Reporter:
    """A live bar on a terminal, a line now and then elsewhere; always on standard error."""

    def __init__(self, *, quiet: bool, left: TimeLeft | None = None) -> None:
        self._quiet, self._left = quiet, left
        self._bar = Bar(left=left, hidden=quiet or not sys.stderr.isatty())
        self._next_line = 0.0

    def __enter__(self) -> "Reporter":
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def after_epoch(self, phase: str, training: "Training", epochs: int) -> None:
        """Show where a phase is."""
        self._bar.after_epoch(phase, training, epochs)
        now = time.monotonic()
        if self._quiet or self._bar.is_shown or (now < self._next_line and training.epoch < epochs):
            return
        self._next_line = now + _LINE_EVERY
        note = note_of(phase, training, sparsities=self._left is None)
        if self._left is not None:
            note += "  ".join(["", f"training {self._left.count}", *filter(None, [self._left.text])])
        say(f"{phase_title(phase)}: epoch {training.epoch}/{epochs}  {note}", err=True)


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
