"""The folder of one run: its settings, checkpoints while it runs, its results when it is done."""

import contextlib
import csv
import fcntl
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from fastglt import kernels
from fastglt.errors import InputError, MachineError
from fastglt.system.container import read_meta, read_tensors, to_bytes
from fastglt.system.storage import disk_errors, write_atomically
from fastglt.tickets.phases import Journal, PhaseResult
from fastglt.training.checkpoint import pack, pack_snapshot, unpack, unpack_snapshot
from fastglt.training.loop import Training
from fastglt.training.records import EpochRecord, Snapshot

_LOOK_EVERY = 0.1  # seconds, whether a folder is free


class RunFolder(Journal):
    """A journal on disk. Killed at any moment, a run goes on from its last checkpoint, bit for bit."""

    def __init__(self, path: Path, settings: Mapping[str, Any], *, checkpoint_every: float = 10.0) -> None:
        self.path, self.settings = path, json.loads(json.dumps(settings))
        self.stop = False  # set it to stop after the epoch that is running
        self._every, self._next = checkpoint_every, time.monotonic() + checkpoint_every
        self._checkpoints = path / "checkpoint"
        self._rounds_written = 0

    @contextlib.contextmanager
    def open(self, *, wait: bool = False) -> Iterator[dict[str, Any] | None]:
        """Claim the folder for this run; gives the metrics if the run is finished already.

        Where another process works in it, it is refused or, to `wait`, had as soon as that one is through with it.
        Meanwhile the kernels are served as they were when the run began, whatever this machine prefers by now.
        """
        self._refuse_foreign()
        with disk_errors(self.path, "create"):
            self.path.mkdir(parents=True, exist_ok=True)
            lock = (self.path / ".lock").open("w")
        with lock:
            while not _lock(lock, self.path):
                if self.stop:
                    raise KeyboardInterrupt(f"before '{self.path}' was free")
                if not wait:
                    message = f"another process is working in '{self.path}'; wait for it or choose another --out"
                    raise MachineError(message)
                time.sleep(_LOOK_EVERY)
            begun = _read_json(self.path / "run.json", "kernels")
            if begun is None:
                begun = {"settings": self.settings, "kernels": kernels.table().to_dict()}
                write_atomically(self.path / "run.json", _json(begun))
            finished = self._metrics()
            self._sweep(finished is not None)
            with kernels.use_table(kernels.Table.from_dict(begun["kernels"])):
                yield finished

    def result(self) -> dict[str, Any] | None:
        """The metrics of a run that is finished; else None. Looks, and touches nothing."""
        self._refuse_foreign()
        return self._metrics()

    def _metrics(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = _read_json(self.path / "metrics.json", "seed")
        return found

    def complete(self, metrics: Mapping[str, Any], histories: Mapping[str, Sequence[EpochRecord]]) -> None:
        """Write history and metrics, the metrics last; then the checkpoints can go."""
        write_atomically(self.path / "history.csv", _history(histories))
        write_atomically(self.path / "metrics.json", _json(metrics))
        self._sweep(True)

    def _sweep(self, finished: bool) -> None:
        """Remove what a kill may have left half-written and, once the run is finished, its checkpoints."""
        for folder in (self.path, self.path / "rounds", self._checkpoints):
            for torn in folder.glob(".*.????????"):  # as `write_atomically` names what it has begun
                if torn.is_file():
                    torn.unlink(missing_ok=True)
        if finished:
            shutil.rmtree(self._checkpoints, ignore_errors=True)

    def finished(self, phase: str) -> PhaseResult | None:
        """A phase that is done is not run again."""
        found = self._read(f"{phase}.done")
        if found is None:
            return None
        tensors, meta = found
        return PhaseResult(
            best=unpack_snapshot(tensors, meta["best"]),
            history=tuple(EpochRecord(**record) for record in meta["history"]),
            seconds=meta["seconds"],
            rounds=tuple(self._read_rounds(phase, meta["rounds"])),
        )

    def resume(self, phase: str, training: Training) -> float:
        """Go on from the last checkpoint of a phase."""
        found = self._read(f"{phase}.part")
        if found is None:
            return 0.0
        tensors, meta = found
        unpack(training, tensors, meta["training"])
        training.rounds = self._read_rounds(phase, meta["rounds"])
        self._rounds_written = len(training.rounds)
        return float(meta["seconds"])

    def after_epoch(self, phase: str, training: Training, seconds: float) -> None:
        """Write a checkpoint when it is time to; they may take a twentieth of the run, unless asked for always."""
        for number in range(self._rounds_written, len(training.rounds)):
            tensors, meta = pack_snapshot(training.rounds[number])
            self._write(f"{phase}.round-{number}", tensors, meta)
        self._rounds_written = len(training.rounds)
        began = time.monotonic()
        if not self.stop and began < self._next:
            return
        tensors, meta = pack(training)
        self._write(
            f"{phase}.part", tensors, {"training": meta, "seconds": seconds, "rounds": len(training.rounds)}
        )
        ended = time.monotonic()
        self._next = ended + max(self._every, 20 * (ended - began)) if self._every > 0 else ended
        if self.stop:
            raise KeyboardInterrupt(f"{phase}, epoch {training.epoch}")

    def finish(self, phase: str, result: PhaseResult) -> None:
        """Keep a phase's result; its checkpoint can go."""
        tensors, best = pack_snapshot(result.best)
        history = [asdict(record) for record in result.history]
        meta = {"best": best, "history": history, "seconds": result.seconds, "rounds": len(result.rounds)}
        self._write(f"{phase}.done", tensors, meta)
        with contextlib.suppress(FileNotFoundError):
            (self._checkpoints / f"{phase}.part").unlink()

    def _read_rounds(self, phase: str, count: int) -> list[Snapshot]:
        found = []
        for number in range(count):
            content = self._read(f"{phase}.round-{number}")
            if content is None:
                remedy = "remove that folder, or choose another --out"
                raise InputError(f"'{self.path}' lacks round {number + 1} of its {phase}; {remedy}")
            found.append(unpack_snapshot(*content))
        return found

    def _write(self, name: str, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        write_atomically(self._checkpoints / name, to_bytes(tensors, meta))

    def _read(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        path = self._checkpoints / name
        if not path.exists():
            return None
        try:
            with disk_errors(path, "read"):
                content = path.read_bytes()
            return read_tensors(content), read_meta(content)
        except ValueError as error:
            raise InputError(f"'{path}' is damaged ({error}); remove it to start that phase again") from None

    def _refuse_foreign(self) -> None:
        """Nothing of another run is ever overwritten."""
        with disk_errors(self.path, "read"):
            is_folder = self.path.is_dir()
            names, in_the_way = os.listdir(self.path) if is_folder else [], not is_folder and self.path.exists()
        if in_the_way:
            raise InputError(
                f"the run's folder must be a folder (got the file '{self.path}'); choose another --out"
            )
        before = _read_json(self.path / "run.json", "settings")
        if before is None:
            others = [name for name in names if name != ".lock" and not name.startswith(".run.json.")]
            if others:
                raise InputError(
                    f"the run's folder must be new or of the same run (got '{self.path}' with "
                    f"'{others[0]}' in it); choose another --out"
                )
            return
        before = before["settings"]
        changed = sorted(name for name in before | self.settings if before.get(name) != self.settings.get(name))
        if changed:
            name = changed[0]
            raise InputError(
                f"'{self.path}' holds another run: {', '.join(changed)} differ ({name} was "
                f"{before.get(name)!r}, got {self.settings.get(name)!r}); choose another --out"
            )


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Eight letters that tell a run's settings from all others, for the name of its folder."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]


def _lock(file: IO[str], path: Path) -> bool:
    """Whether the folder's lock could be had at once."""
    with disk_errors(path, "lock"), contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _read_json(path: Path, key: str) -> Any:
    """A JSON object that has a key; None where there is no file."""
    with disk_errors(path, "read"):
        if not path.exists():
            return None
        text = path.read_text(errors="replace")
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict) or key not in content:
        raise InputError(f"'{path}' is damaged; remove that folder, or choose another --out")
    return content


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _history(histories: Mapping[str, Sequence[EpochRecord]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["phase", *EpochRecord.__dataclass_fields__], lineterminator="\n")
    writer.writeheader()
    for phase, records in histories.items():
        writer.writerows({"phase": phase, **asdict(record)} for record in records)
    return text.getvalue().encode()
