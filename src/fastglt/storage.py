"""Files that survive a kill: whole or not there at all."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fastglt.errors import MachineError


@contextlib.contextmanager
def disk_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what the disk refuses into one clear line."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full; free some space and run the same command again",
            errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
            errno.EACCES: "the folder is not writable; choose another one",
            errno.EPERM: "the folder is not writable; choose another one",
            errno.EROFS: "the file system is read-only; choose another folder",
            errno.ENOTDIR: "a part of the path is a file, not a folder",
            errno.EEXIST: "a file of that name stands in the way",
        }
        reason = reasons.get(error.errno or 0, error.strerror or str(error))
        raise MachineError(f"cannot {what} '{path}': {reason}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a restart after a kill, sees the old content or the new one."""
    with disk_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
