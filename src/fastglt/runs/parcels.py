"""A run's folder as plain bytes, to be worked on where the driver's disk cannot be seen, and to be sent back."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fastglt.errors import InputError
from fastglt.runs.folder_files import METRICS, RUN
from fastglt.system import digests
from fastglt.system.storage import disk_errors, write_atomically

Files = Mapping[str, bytes]  # names as seen from the folder, with slashes
_LAST = (digests.FILE, METRICS)  # a folder with metrics is a finished one


def pack(folder: Path) -> dict[str, bytes]:
    """All files of a folder but its lock and what a kill has left half-written."""
    with disk_errors(folder, "read"):
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return {name: (folder / name).read_bytes() for name in names if _is_sent(PurePosixPath(name))}


def unpack(files: Files, folder: Path) -> None:
    """Write files into a folder, the metrics last: killed on the way, the run is one that is not finished.

    >>> unpack({"../elsewhere": b""}, Path("run"))
    Traceback (most recent call last):
        ...
    fastglt.errors.InputError: a run's file must lie in its folder (got '../elsewhere')
    """
    for name in sorted(files, key=lambda name: (_LAST.index(name) if name in _LAST else -1, name)):
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            raise InputError(f"a run's file must lie in its folder (got '{name}')")
        path = folder / inside
        if name != RUN or not path.exists():  # who sent it out has it
            write_atomically(path, files[name])


def _is_sent(name: PurePosixPath) -> bool:
    return name.name == digests.FILE or not name.name.startswith(".")
