"""Try mutated files of a kind, and count what becomes of them."""

import base64
import contextlib
import io
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from fastglt.errors import FastGLTError


class Subject(Protocol):
    """A kind of file."""

    name: str
    is_checked: (
        bool  # what is read must be what was written: the file has a digest, and the mutation none that fits
    )

    def mutate(self, rng: Random) -> bytes:
        """The content of a mutated file."""

    def look(self, content: bytes) -> bool:
        """Read it as a command does; whether it is what was written. `FastGLTError` refuses it."""


@dataclass
class Tally:
    """What became of mutated files."""

    tried: int = 0
    refused: int = 0
    unchanged: int = 0  # read, and what was written: the damage was in bytes that mean nothing
    different: int = 0  # read, and something else
    crashed: int = 0
    seconds: float = 0.0
    flaws: list[str] = field(default_factory=list)  # the first few

    def count(self, subject: Subject, content: bytes) -> None:
        """Try one file."""
        self.tried += 1
        try:
            same = subject.look(content)
        except FastGLTError as error:
            self.refused += 1
            if not str(error):
                self.note(content, "refused without a word")
                self.crashed += 1
        except Exception:
            self.note(content, traceback.format_exc())
            self.crashed += 1
        else:
            self.unchanged += same
            self.different += not same
            if not same:
                self.note(content, "it was read, and taken for something else")

    def note(self, content: bytes, what: str) -> None:
        """Keep what went wrong with the file that causes it."""
        if len(self.flaws) < 3:
            packed = base64.b64encode(zlib.compress(content, 9)).decode()
            self.flaws.append(f"{what}\nthe file, for zlib.decompress(base64.b64decode(…)): {packed}")


def try_files(
    subject: Subject, count: int, seed: int, tally: Tally, until: Callable[[], bool] = lambda: False
) -> None:
    """Try so many mutated files, or as many as there is time for."""
    rng, began = Random(seed), time.process_time()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        for number in range(count):
            tally.count(subject, subject.mutate(rng))
            if number % 200 == 0:
                said.seek(0)
                said.truncate()
                if until():
                    break
    tally.seconds += time.process_time() - began


def scratch_folder() -> Path | None:
    """Memory, where there is such a folder: a disk would be what is measured."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() else None
