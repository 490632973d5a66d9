"""Ctrl-C and termination requests as a wish: what is running ends where it can go on another time."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Protocol


class Stoppable(Protocol):
    """A run, or several, that stop after the epoch which is running once they are told to."""

    stop: bool


@contextlib.contextmanager
def stop_on_signals(running: Stoppable) -> Iterator[None]:
    """Ask what is running to stop when a signal comes; a second Ctrl-C does not wait.

    Only the main thread gets signals: anywhere else nothing changes.
    """

    def ask(signum: int, frame: FrameType | None) -> None:
        running.stop = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
