"""Logs of runs that other processes made: what they have printed, kept where a run has failed."""

import contextlib
import glob
import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from fastglt.runs.folder_files import METRICS
from fastglt.system.process import is_alive
from fastglt.system.storage import disk_errors
from fastglt.system.terminal import WARNING, safe

_WARNINGS_KEPT = 100  # of one run


def begin_log(logs: Path, name: str) -> Path:
    """An empty log of this command's own: others may have the same run, and remove the folder when they end.

    What commands that are no more have left of this run goes.
    """
    log = logs / f"{name}-{os.getpid()}.txt"
    with disk_errors(log, "write"):
        remove_logs(logs, glob.escape(name), all_of_them=True)
        while True:
            logs.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                log.write_bytes(b"")
                return log


def remove_logs(logs: Path, name: str, *, all_of_them: bool) -> None:
    """Remove logs of commands that are no more: all, or the empty ones and those of runs that are finished."""
    for old in logs.glob(f"{name}-*.txt"):
        run, _, number = old.stem.rpartition("-")
        if not number.isdecimal() or is_alive(int(number)):
            continue
        with contextlib.suppress(FileNotFoundError):
            if all_of_them or not old.stat().st_size or (logs.parent / run / METRICS).exists():
                old.unlink()


def warnings_in(log: Path) -> list[str]:
    """What a process has warned of, a line for each; of very many the first."""
    try:
        with log.open(errors="replace") as lines:
            return told_warnings(lines)
    except OSError:
        return []


def told_warnings(lines: Iterable[str]) -> list[str]:
    """The lines that warn, without the word; of very many the first.

    >>> told_warnings(["epoch 1", "warning: a checkpoint is damaged"])
    ['a checkpoint is damaged']
    """
    told = (safe(line.removeprefix(WARNING).rstrip()) for line in lines if line.startswith(WARNING))
    return list(islice(told, _WARNINGS_KEPT))
