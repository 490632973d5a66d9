"""Digests of a folder's files, in one file beside them: what was changed since is noticed."""

from collections.abc import Mapping
from pathlib import Path

from fastglt.errors import InputError
from fastglt.system import plain_json
from fastglt.system.storage import read_bytes, write_atomically

FILE = ".digests.json"
_MOST = 1 << 20  # bytes


def record(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Remember what files of a folder have in them, or are about to have."""
    known = recorded(folder) | {name: digest(content) for name, content in contents.items()}
    lines = ",\n".join(f'  "{name}": "{value}"' for name, value in known.items())
    write_atomically(folder / FILE, f"{{\n{lines}\n}}\n".encode())


def recorded(folder: Path) -> dict[str, str]:
    """Each file's digest; nothing where nobody has recorded any, as in folders of before."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        found = plain_json.loads(read_bytes(path, most=_MOST))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise InputError(f"'{path}' is damaged; remove it to do without its digests")
    return found


def is_as_recorded(path: Path, content: bytes) -> bool | None:
    """Whether a file's content is what was recorded; None if nothing was."""
    expected = recorded(path.parent).get(path.name)
    return None if expected is None else expected == digest(content)


def digest(content: bytes) -> str:
    """What tells a content from all others."""
    import hashlib

    return hashlib.sha256(content).hexdigest()
