"""How far runs are that are not finished, as other processes can see it: from their folders, and from who waits.

A run notes its last epoch beside its checkpoints now and then; who works in a folder holds its lock; a series notes
which runs it has still to make, and which have failed.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastglt.errors import FastGLTError
from fastglt.runs.folder_files import CHECKPOINTS, METRICS, RUN, has_ticket_alone, read_json
from fastglt.system import plain_json
from fastglt.system.numbers import real
from fastglt.system.process import is_alive

NOTE = "progress.json"  # in the folder of a run's checkpoints
RUNNING, STOPPED, QUEUED, FAILED = "running", "stopped", "queued", "failed"
_EVERY = 1.0  # seconds between two notes
_FRESH = 5.0  # seconds
_MOST = 1 << 22  # bytes of a file that is looked at
_LOCKS = Path("/proc/locks")


class Notes:
    """Writes a run's last epoch down, once a second at most; nothing depends on it, so nothing is waited for."""

    def __init__(self, folder: Path) -> None:
        self._path, self._next = folder / NOTE, 0.0

    def after_epoch(self, phase: str, record: Any, seconds: float) -> None:
        """Note an epoch."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        names = ("epoch", "stage", "val", "graph_sparsity", "weight_sparsity")
        values = {name: getattr(record, name) for name in names}
        note(self._path, {"phase": phase, "seconds": seconds, "at": time.time(), **values})


def note(path: Path, values: Mapping[str, Any]) -> None:
    """Replace a small file in one go; a disk that refuses is of no account."""
    part = path.with_name(f".{path.name}.{os.getpid():08}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(values))
        part.replace(path)


@dataclass(frozen=True, kw_only=True)
class UnderWay:
    """A run that is not finished."""

    name: str  # of its folder
    folder: str
    state: str  # running, stopped, queued or failed
    phase: str | None = None
    epoch: int | None = None
    epochs: int | None = None  # of the phase, where that can be told
    val: float | None = None
    seconds: float | None = None  # of the phase so far
    reason: str = ""  # why it has failed

    @property
    def order(self) -> tuple[int, str]:
        """Running ones first."""
        return (RUNNING, FAILED, STOPPED, QUEUED).index(self.state), self.name


def under_way(root: Path) -> list[UnderWay]:
    """Every unfinished run in a folder's folders and in theirs, and those that wait for their turn."""
    waiting = [one for agenda in sorted(root.glob("*/logs/series-*.json")) for one in _waiting(agenda)]
    found, locks = {one.folder: one for one in waiting}, _locked_files()
    for path in (*root.glob(f"*/{RUN}"), *root.glob(f"*/*/{RUN}")):
        place = str(path.parent.absolute())
        if (path.parent / METRICS).exists() or has_ticket_alone(path.parent):
            found.pop(place, None)
            continue
        begun = _begun(path.parent.absolute(), locks)
        has_failed = place in found and found[place].state == FAILED
        if begun.state == RUNNING or not has_failed:
            found[place] = begun
    return sorted(found.values(), key=lambda one: one.order)


def _begun(folder: Path, locks: set[tuple[int, int]]) -> UnderWay:
    """A run that has been begun, whoever works at it."""
    try:
        settings = read_json(folder / RUN, "settings")["settings"]
    except (FastGLTError, TypeError) as error:
        return UnderWay(name=folder.name, folder=str(folder), state=FAILED, reason=str(error))
    told = _read(folder / CHECKPOINTS / NOTE)
    phase = told.get("phase")
    return UnderWay(
        name=folder.name,
        folder=str(folder),
        state=RUNNING if _is_locked(folder / ".lock", locks) or _is_fresh(told.get("at")) else STOPPED,
        phase=phase if isinstance(phase, str) else None,
        epoch=_whole(told.get("epoch")),
        epochs=_epochs(settings, phase),
        val=real(told.get("val")),
        seconds=real(told.get("seconds")),
    )


def _epochs(settings: Any, phase: Any) -> int | None:
    """How many epochs a phase has, from the run's settings."""
    if not isinstance(settings, Mapping) or not isinstance(phase, str):
        return None
    budget = [settings.get("oneshot_epochs"), settings.get("denoise_epochs")]
    fixed = settings.get("epochs", None if None in budget else sum(map(int, filter(None, budget))))
    if phase != "search":
        return _whole(fixed)
    from fastglt.methods import Budget, Targets, make

    names = ("oneshot_epochs", "denoise_epochs", "interval", "lr", "weight_decay")
    try:
        method = make(
            settings["method"],
            targets=Targets(**{key: settings[key] for key in ("graph_sparsity", "weight_sparsity")}),
            budget=Budget(**{key: settings[key] for key in names}),
            **settings["options"],
        )
    except (FastGLTError, KeyError, TypeError, ValueError):  # a method that this process does not know
        return None
    return method.epochs


class Agenda:
    """The runs that a series has still to make, for others to see; it goes when all of them are made."""

    def __init__(self, logs: Path, folders: Sequence[Path]) -> None:
        self._path = logs / f"series-{os.getpid()}.json"
        self._left, self._failed = [str(folder.absolute()) for folder in folders], dict[str, str]()
        for old in logs.glob("series-*.json"):
            number = old.stem.rpartition("-")[2]
            if number.isdecimal() and not is_alive(int(number)):
                old.unlink(missing_ok=True)
        if self._left:
            self._write()

    def __enter__(self) -> "Agenda":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ended(self, folder: Path, reason: str) -> None:
        """A run has ended, well or with a reason."""
        place = str(folder.absolute())
        self._left = [one for one in self._left if one != place]
        if reason:
            self._failed[place] = reason
        self._write()

    def close(self) -> None:
        """Nobody waits any more; what failed stays to be seen, until the series is tried again."""
        if not self._failed:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
                self._path.parent.rmdir()
            return
        self._left = []
        self._write()

    def _write(self) -> None:
        note(self._path, {"left": self._left, "failed": self._failed})


def _waiting(agenda: Path) -> Iterator[UnderWay]:
    told, number = _read(agenda), agenda.stem.rpartition("-")[2]
    alive = number.isdecimal() and is_alive(int(number))
    left, failed = told.get("left"), told.get("failed")
    for place in left if isinstance(left, list) else []:
        yield UnderWay(name=Path(str(place)).name, folder=str(place), state=QUEUED if alive else STOPPED)
    for place, reason in (failed if isinstance(failed, dict) else {}).items():
        yield UnderWay(name=Path(place).name, folder=place, state=FAILED, reason=str(reason))


def _read(path: Path) -> dict[str, Any]:
    """A note, as far as it can be read."""
    try:
        with path.open("rb") as file:
            found = plain_json.loads(file.read(_MOST))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _locked_files() -> set[tuple[int, int]]:
    """Device and number of every file that somebody has locked, as Linux tells."""
    found = set()
    with contextlib.suppress(OSError):
        for line in _LOCKS.read_text().splitlines():
            place = next((word for word in line.split() if word.count(":") == 2), None)
            if place is not None and "->" not in line:
                major, minor, inode = place.split(":")
                found.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return found


def _is_locked(path: Path, locks: set[tuple[int, int]]) -> bool:
    try:
        known = path.stat()
    except OSError:
        return False
    return (known.st_dev, known.st_ino) in locks


def _is_fresh(at: Any) -> bool:
    """Whether a note was written just now; some file systems do not tell who has locked what."""
    when = real(at)
    return when is not None and 0 <= time.time() - when < _FRESH


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
