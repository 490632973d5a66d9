"""One run as a task of Ray: its folder comes and goes as bytes, so that no file system need be shared.

The worker has the folder in a place of its own meanwhile. A task that is tried again on the same machine goes on
from the checkpoints that it finds there; elsewhere it begins with what was sent.
"""

import contextlib
import hashlib
import io
import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastglt.runs.logs import told_warnings
from fastglt.runs.parcels import Files, pack, unpack
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.worker import Job, known_reason, live_in, performed
from fastglt.system.provenance import machine

FINISHED, STOPPED, FAILED = "finished", "stopped", "failed"


def perform(job: Job, sent: Files, wait_for_stop: Callable[[], object]) -> dict[str, Any]:
    """Do the job in a folder of this machine; gives how it ended, and the folder's files.

    What it warns of comes back with it, and so does the traceback of a failure that nobody foresaw.
    """
    live_in(job["environment"])
    folder, said = _scratch(job), io.StringIO()
    with contextlib.redirect_stderr(said):
        ended = _ended(job, sent, folder, wait_for_stop)
    return {**ended, "warnings": told_warnings(said.getvalue().splitlines())}


def _ended(job: Job, sent: Files, folder: Path, wait_for_stop: Callable[[], object]) -> dict[str, Any]:
    try:
        if not (folder / "run.json").exists():
            unpack(sent, folder)
        with contextlib.suppress(KeyboardInterrupt), performed({**job, "folder": str(folder)}, wait_for_stop):
            return {"ended": FINISHED, "machine": machine(), "files": _taken(folder)}
        return {"ended": STOPPED, "files": _taken(folder)}
    except Exception as error:
        reason = known_reason(error)
        log = "" if reason is not None else traceback.format_exc()
        text = reason or f"{type(error).__name__}: {error}"
        return {"ended": FAILED, "reason": text, "log": log, "files": _taken(folder)}


def _taken(folder: Path) -> dict[str, bytes]:
    files = pack(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return files


def _scratch(job: Job) -> Path:
    """Where this machine keeps the run while it is under way: the same place whenever it is tried."""
    name = hashlib.sha256(f"{job['folder']}\n{job['settings']}".encode()).hexdigest()[:16]
    base = os.environ.get("FASTGLT_SCRATCH") or Path(tempfile.gettempdir()) / f"fastglt-{os.getuid()}"
    return Path(base) / "ray" / name


def receive(files: Files, folder: RunFolder) -> Mapping[str, Any] | None:
    """Put what a task has sent back into the driver's folder; its metrics, if the run is finished."""
    with folder.open(wait=True) as finished:  # another command may have made it meanwhile
        if finished is None:
            unpack(files, folder.path)
    folder.tidy()
    return folder.result()
