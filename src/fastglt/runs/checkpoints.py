"""The checkpoints of a run: sealed files in a folder of its own, of which a damaged one is never used."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from fastglt.errors import InputError, MachineError
from fastglt.system.container import read_meta, read_tensors, seal, to_bytes, unseal
from fastglt.system.process import is_out_of_memory
from fastglt.system.storage import disk_errors, write_atomically
from fastglt.training.checkpoint import MALFORMED, unpack, unpack_snapshot
from fastglt.training.loop import Training
from fastglt.training.records import Snapshot


class DamagedError(Exception):
    """A checkpoint is not what was written; the message says why."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A checkpoint of a phase that is under way."""

    place: str
    tensors: dict[str, Tensor]
    state: dict[str, Any]
    rounds: list[Snapshot]
    seconds: float  # that the phase had taken

    def bring(self, training: Training) -> None:
        """Bring a fresh training to where it was."""
        try:
            with damage():
                unpack(training, self.tensors, self.state)
        except DamagedError as error:
            remedy = "remove it to start that phase again"
            raise InputError(f"'{self.place}' is damaged ({error}); {remedy}") from None
        training.rounds = self.rounds


class Checkpoints:
    """Named checkpoints in a folder that is there while a run is under way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def has_finished_phases(self) -> bool:
        """Whether the result of a phase is among them."""
        return any(self.folder.glob("*.done"))

    def write(self, name: str, tensors: dict[str, Tensor], meta: dict[str, Any]) -> None:
        """Keep tensors and plain values, with a digest of all of it."""
        write_atomically(self.folder / name, seal(to_bytes(tensors, meta)))

    def read(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What was kept under a name; None if nothing was. Those of before, without a digest, are read as well."""
        path = self.folder / name
        if not path.exists():
            return None
        with damage(), disk_errors(path, "read"):
            content = unseal(path.read_bytes())
            return read_tensors(content), read_meta(content)

    def read_rounds(self, phase: str, count: Any) -> list[Snapshot]:
        """The rounds of a phase, the first so many."""
        found = []
        with damage():
            for number in range(count):
                content = self.read(f"{phase}.round-{number}")
                if content is None:
                    raise DamagedError(f"its round {number + 1} is gone")
                found.append(unpack_snapshot(*content))
        return found

    def forget(self, name: str) -> None:
        """Remove one, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def forget_all(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def damage() -> Iterator[None]:
    """Whatever content can do wrong is that it is damaged; what the machine does wrong stays what it is."""
    try:
        yield
    except MachineError:
        raise
    except MALFORMED as error:
        if is_out_of_memory(error):
            raise
        raise DamagedError(str(error) if isinstance(error, ValueError) else repr(error)) from None
