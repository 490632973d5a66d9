"""Bars for trainings that are under way, in terminals and notebooks, and the time that is left."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fastglt.report.wording import duration, phase_title

if TYPE_CHECKING:
    from rich.progress import TaskID

_ROOM_FOR_NOTES = 110  # columns of a terminal from which sparsities stand beside the bar
AfterEpoch = Callable[[str, Any, int], None]  # phase, training, epochs of the phase


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


class Bar:
    """A live bar for each phase with its time left or, of several trainings, one with the time left for all.

    It is shown on standard error of a terminal, or in a notebook; anywhere else there is none.
    """

    def __init__(self, *, left: TimeLeft | None = None, hidden: bool = False) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._left, self._notes = left, console.width >= _ROOM_FOR_NOTES
        self.is_shown = not hidden and (console.is_jupyter or console.is_terminal)
        self._bar = Progress(
            TextColumn("[bold]{task.description:<16}"),
            BarColumn(bar_width=24 if self._notes else 12),
            MofNCompleteColumn() if left is None else TextColumn("[green]{task.fields[count]}"),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(compact=not self._notes) if left is None else TextColumn("{task.fields[left]}"),
            console=console,
            disable=not self.is_shown,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Bar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def after_epoch(self, phase: str, training: Any, epochs: int) -> None:
        """Show where a phase is."""
        left = self._left
        if left is not None:
            left.after_epoch(training.epoch, epochs)
        if not self.is_shown:
            return
        note = note_of(phase, training, sparsities=self._notes and left is None)
        if left is None:
            self._show(phase, phase_title(phase), training.epoch, epochs, note=note)
        else:
            self._show(
                "all", phase_title(phase), left.done, left.trainings, note=note, count=left.count, left=left.text
            )

    def _show(self, bar: str, title: str, done: float, total: float, **texts: Any) -> None:
        if bar not in self._tasks:
            self._tasks[bar] = self._bar.add_task(title, total=total, note="", count="", left="")
        self._bar.update(self._tasks[bar], description=title, completed=done, **texts)


def note_of(phase: str, training: Any, *, sparsities: bool) -> str:
    """How a training is doing, in a few words."""
    record = training.history[-1]
    note = f"validation {100 * record.val:.1f} %"
    if sparsities and not phase.startswith(("dense", "teacher")):
        note += f"  edges −{100 * record.graph_sparsity:.1f} %  weights −{100 * record.weight_sparsity:.1f} %"
    return note


@contextmanager
def shown(progress: AfterEpoch | bool | None, *, trainings: int | None = None) -> Iterator[AfterEpoch | None]:
    """What is called after each epoch: a bar if one is asked for with True, or what the caller has given."""
    if progress is not True:
        yield progress or None
        return
    with Bar(left=None if trainings is None else TimeLeft(trainings)) as bar:
        yield bar.after_epoch
