"""Files that survive a kill, whole or not there at all; and where we may keep our own."""

import contextlib
import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fastglt.errors import FastGLTError, InputError, MachineError
from fastglt.system.process import is_out_of_memory

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EACCES: "permission is denied; choose another place or change its permissions",
    errno.EPERM: "permission is denied; choose another place or change its permissions",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EISDIR: "it is a folder; name a file",
    errno.EEXIST: "something of that name stands in the way",
    errno.ELOOP: "it is a symbolic link, which is not followed here; remove it",
}
_NO_MEMORY = "there is not enough memory; close other programs, or use a machine with more"


def cache_folder() -> Path:
    """Where downloads and measurements are kept: `FASTGLT_CACHE`, or the platform's own place for caches."""
    from platformdirs import user_cache_dir

    return Path(os.environ.get("FASTGLT_CACHE") or user_cache_dir("fastglt")).expanduser()


def as_file_name(dataset: str) -> str:
    """A dataset's name as a part of a folder's.

    >>> as_file_name("my/graph.npz"), as_file_name("synthetic:nodes=60")
    ('my_graph.npz', 'synthetic')
    """
    return re.sub(r"[^\w.-]", "_", dataset.partition(":")[0])


@contextlib.contextmanager
def disk_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what the disk refuses, or memory does not hold, into one clear line."""
    try:
        yield
    except FastGLTError:
        raise
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise MachineError(f"cannot {what} '{path}': {reason}") from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise MachineError(f"cannot {what} '{path}': {_NO_MEMORY}") from error


def read_bytes(path: Path, *, most: int) -> bytes:
    """A file's content, of which no more is read than it may have; a pipe will do."""
    with disk_errors(path, "read"), path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"'{path}' must have at most {most:,} bytes (got more)")
    return content


def open_lock(path: Path) -> int:
    """A handle to lock a folder by: made if need be, never emptied; a link is refused, for it may lead anywhere."""
    with disk_errors(path, "open"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise FileExistsError(errno.EEXIST, "")
        return handle


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a restart after a kill, sees the old content or the new one."""
    with disk_errors(path, "write"):
        target = Path(os.path.realpath(path))  # a link stays, and what it points to is replaced
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "")
        if target.exists() and not target.is_file():
            raise FileExistsError(errno.EEXIST, "")  # a device or a pipe, which must not be replaced
        _replace(target, content)


def _replace(target: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:80]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot, and the file itself is whole
            os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
