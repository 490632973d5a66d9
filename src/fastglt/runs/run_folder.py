"""The folder of one run: its settings, checkpoints while it runs, its results when it is done."""

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from fastglt import kernels
from fastglt.data.origin import Origin
from fastglt.data.writing import GRAPH
from fastglt.errors import FastGLTError, InputError, MachineError
from fastglt.report.wording import phase_title
from fastglt.runs.checkpoints import Checkpoints, DamagedError, Stored, damage
from fastglt.runs.differences import told
from fastglt.runs.folder_files import (
    CHECKPOINTS,
    METRICS,
    ORIGIN,
    RUN,
    TICKET,
    damaged,
    history_bytes,
    json_bytes,
    read_json,
)
from fastglt.runs.progress import Notes
from fastglt.system import digests
from fastglt.system.storage import disk_errors, open_lock, write_atomically
from fastglt.system.terminal import warn
from fastglt.tickets import ticket_file
from fastglt.tickets.phases import Journal, PhaseResult
from fastglt.training.checkpoint import pack, pack_snapshot, unpack_snapshot
from fastglt.training.loop import Training
from fastglt.training.records import EpochRecord

_VERSION = "fastglt"  # what settings call the version
_LOOK_EVERY = 0.1  # seconds, whether a folder is free
_FIRST = (
    ".lock",
    f".{RUN}.",
    digests.FILE,
    f".{digests.FILE}.",
    GRAPH,
    f".{GRAPH}",
)  # begin names of what may come before run.json


class RunFolder(Journal):
    """A journal on disk. Killed at any moment, a run goes on from its last checkpoint, bit for bit."""

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        *,
        checkpoint_every: float = 10.0,
        origin: Origin | None = None,  # of a graph from files
    ) -> None:
        self.path, self.settings = path, json.loads(json.dumps(settings))
        self._origin = origin
        self.stop = False  # set it to stop after the epoch that is running
        self._every, self._next = checkpoint_every, time.monotonic() + checkpoint_every
        self._checkpoints, self._notes = Checkpoints(path / CHECKPOINTS), Notes(path / CHECKPOINTS)
        self._rounds_written = 0
        self._begun_by: str | None = None  # the version that began the run, if it is another one

    @contextlib.contextmanager
    def open(self, *, wait: bool = False) -> Iterator[dict[str, Any] | None]:
        """Claim the folder for this run; gives the metrics if the run is finished already.

        Where another process works in it, it is refused or, to `wait`, had as soon as that one is through with it.
        Meanwhile the kernels are served as they were when the run began, whatever this machine prefers by now.
        """
        self._refuse_foreign()
        with disk_errors(self.path, "create"):
            self.path.mkdir(parents=True, exist_ok=True)
        with os.fdopen(open_lock(self.path / ".lock"), "r+") as lock:
            while not _lock(lock, self.path):
                if self.stop:
                    raise KeyboardInterrupt(f"before '{self.path}' was free")
                if not wait:
                    message = f"another process is working in '{self.path}'; wait for it or choose another --out"
                    raise MachineError(message)
                time.sleep(_LOOK_EVERY)
            begun = read_json(self.path / RUN, "kernels")
            if begun is None:
                begun = self._begin()
            finished = self._metrics(told=True)
            if finished is None and self._begun_by is not None:
                now = self.settings[_VERSION]
                warn(f"'{self.path}' was begun by fastglt {self._begun_by}, and goes on with {now}")
            self._sweep(finished is not None)
            with kernels.use_table(self._table(begun["kernels"])):
                yield finished

    def _begin(self) -> dict[str, Any]:
        """Write what the run is begun with; where its graph came from has no say in what it computes."""
        begun: dict[str, Any] = {"settings": self.settings, "kernels": kernels.table().to_dict()}
        if self._origin is not None:
            with disk_errors(self._origin.files[0], "read"):
                begun[ORIGIN] = self._origin.record(self.path)
        content = json_bytes(begun)
        digests.record(self.path, {RUN: content})
        write_atomically(self.path / RUN, content)
        return begun

    def result(self) -> dict[str, Any] | None:
        """The metrics of a run that is finished; else None. Looks, and touches nothing."""
        self._refuse_foreign()
        return self._metrics()

    @property
    def is_begun(self) -> bool:
        """Whether the run has left anything to go on from."""
        return self._checkpoints.folder.exists()

    def tidy(self) -> None:
        """Remove the checkpoints of a finished run that was killed before it could, unless somebody is at it."""
        if self._checkpoints.folder.exists():
            with contextlib.suppress(MachineError), self.open():
                pass

    def _table(self, values: Any) -> kernels.Table:
        try:
            return kernels.Table.from_dict(values)
        except (ValueError, TypeError, OverflowError) as error:  # also InputError
            raise damaged(self.path / RUN, error) from None

    def _metrics(self, *, told: bool = False) -> dict[str, Any] | None:
        """What a finished run has left; None if it is not finished, or can be from its checkpoints."""
        path = self.path / METRICS
        found: dict[str, Any] | None = read_json(path, "seed")
        lost = None if found is None else self._lost_ticket()
        if lost is None:
            return found
        if not self._checkpoints.has_finished_phases:
            remedy = f"put it back, or remove '{path}' to run it again"
            raise InputError(f"'{self.path}' is finished, but its {TICKET} {lost}; {remedy}")
        if told:
            warn(f"'{self.path}' is finished, but its {TICKET} {lost}; it is made again from the checkpoints")
        return None

    def _lost_ticket(self) -> str | None:
        """What is wrong with a finished run's ticket; None if nothing is, or it has none."""
        path = self.path / TICKET
        expected = digests.recorded(self.path).get(TICKET)
        if expected is None and "method" not in self.settings:
            return None
        if not path.exists():
            return "is gone"
        if expected is not None:
            with disk_errors(path, "read"):
                return None if digests.digest(path.read_bytes()) == expected else "was changed"
        try:
            ticket_file.load(path)  # of a run of before, without digests
        except FastGLTError as error:
            return f"cannot be read ({error})"
        return None

    def complete(self, metrics: Mapping[str, Any], histories: Mapping[str, Sequence[EpochRecord]]) -> None:
        """Write history and metrics, the metrics last; then the checkpoints can go."""
        content, ticket = json_bytes(metrics), self.path / TICKET
        write_atomically(self.path / "history.csv", history_bytes(histories))
        with disk_errors(ticket, "read"):
            made = {TICKET: ticket.read_bytes()} if ticket.exists() else {}
        digests.record(self.path, {METRICS: content, **made})
        write_atomically(self.path / METRICS, content)
        self._sweep(True)

    def _sweep(self, finished: bool) -> None:
        """Remove what a kill may have left half-written and, once the run is finished, its checkpoints."""
        for folder in (self.path, self.path / "rounds", self._checkpoints.folder):
            for torn in folder.glob(".*.????????"):  # as `write_atomically` names what it has begun
                if torn.is_file():
                    torn.unlink(missing_ok=True)
        if finished:
            self._checkpoints.forget_all()

    def finished(self, phase: str) -> PhaseResult | None:
        """A phase that is done is not run again, unless what is left of it is damaged."""
        name = f"{phase}.done"
        try:
            found = self._checkpoints.read(name)
            if found is None:
                return None
            tensors, meta = found
            with damage():
                return PhaseResult(
                    best=unpack_snapshot(tensors, meta["best"]),
                    history=tuple(EpochRecord(**record) for record in meta["history"]),
                    seconds=float(meta["seconds"]),
                    rounds=tuple(self._checkpoints.read_rounds(phase, meta["rounds"])),
                )
        except DamagedError as error:
            self._begin_again(phase, name, error)
            return None

    def resume(self, phase: str, training: Training) -> float:
        """Go on from the last checkpoint of a phase; a damaged one is told, and the phase begins again."""
        found = self.stored(phase)
        if found is None:
            return 0.0
        found.bring(training)
        return found.seconds

    def stored(self, phase: str) -> Stored | None:
        """The last checkpoint of a phase, if there is a whole one."""
        name = f"{phase}.part"
        try:
            found = self._checkpoints.read(name)
            if found is None:
                return None
            tensors, meta = found
            with damage():
                rounds = self._checkpoints.read_rounds(phase, meta["rounds"])
                state, seconds = meta["training"], float(meta["seconds"])
        except DamagedError as error:  # no training has been touched
            self._begin_again(phase, name, error)
            return None
        self._rounds_written = len(rounds)
        return Stored(str(self._checkpoints.folder / name), tensors, state, rounds, seconds)

    def _begin_again(self, phase: str, name: str, error: DamagedError) -> None:
        place = self._checkpoints.folder / name
        warn(f"'{place}' is damaged ({error}); the {phase_title(phase)} phase is done again from its beginning")

    def after_epoch(self, phase: str, training: Training, seconds: float) -> None:
        """Write a checkpoint when it is time to; they may take a twentieth of the run, unless asked for always."""
        self.note(phase, training, seconds)
        if self.is_due:
            self.write(phase, training, seconds)

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self.stop or time.monotonic() >= self._next

    def note(self, phase: str, training: Training, seconds: float) -> None:
        """Keep what little there is to keep of every epoch, and rounds that are over."""
        self._notes.after_epoch(phase, training.history[-1], seconds)
        for number in range(self._rounds_written, len(training.rounds)):
            tensors, meta = pack_snapshot(training.rounds[number])
            self._checkpoints.write(f"{phase}.round-{number}", tensors, meta)
        self._rounds_written = len(training.rounds)

    def write(self, phase: str, training: Training, seconds: float) -> None:
        """Write a checkpoint, and stop here if that was asked for."""
        began = time.monotonic()
        tensors, meta = pack(training)
        self._checkpoints.write(
            f"{phase}.part", tensors, {"training": meta, "seconds": seconds, "rounds": len(training.rounds)}
        )
        ended = time.monotonic()
        self._next = ended + max(self._every, 20 * (ended - began)) if self._every > 0 else ended
        if self.stop:
            raise KeyboardInterrupt(f"{phase_title(phase)}, epoch {training.epoch}")

    def finish(self, phase: str, result: PhaseResult) -> None:
        """Keep a phase's result; its checkpoint can go."""
        tensors, best = pack_snapshot(result.best)
        history = [asdict(record) for record in result.history]
        meta = {"best": best, "history": history, "seconds": result.seconds, "rounds": len(result.rounds)}
        self._checkpoints.write(f"{phase}.done", tensors, meta)
        self._checkpoints.forget(f"{phase}.part")

    def _refuse_foreign(self) -> None:
        """Nothing of another run is ever overwritten."""
        with disk_errors(self.path, "read"):
            is_folder = self.path.is_dir()
            names, in_the_way = os.listdir(self.path) if is_folder else [], not is_folder and self.path.exists()
        if in_the_way:
            raise InputError(
                f"the run's folder must be a folder (got the file '{self.path}'); choose another --out"
            )
        before = read_json(self.path / RUN, "settings")
        if before is None:
            others = [name for name in names if not name.startswith(_FIRST)]
            if others:
                raise InputError(
                    f"the run's folder must be new or of the same run (got '{self.path}' with "
                    f"'{others[0]}' in it); choose another --out"
                )
            return
        before = before["settings"]
        if not isinstance(before, dict):
            raise damaged(self.path / RUN)
        changed = sorted(name for name in before | self.settings if before.get(name) != self.settings.get(name))
        if changed == [_VERSION]:  # another version computes the same, but whoever goes on with it is told
            self._begun_by = str(before.get(_VERSION))
            return
        if changed:
            differences = told(before, self.settings)
            raise InputError(f"'{self.path}' holds another run ({differences}); choose another --out")


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Eight letters that tell a run's settings from all others, for the name of its folder."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def _lock(file: IO[str], path: Path) -> bool:
    """Whether the folder's lock could be had at once."""
    with disk_errors(path, "lock"), contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
