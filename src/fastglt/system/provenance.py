"""Where a result comes from: the software, the code's revision, the machine."""

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

_CPU_INFO = Path("/proc/cpuinfo")
_HERE = Path(__file__)


def versions() -> dict[str, str]:
    """Python, fastglt and the packages that compute."""
    packages = ("fastglt", "torch", "torch_geometric", "numba", "numpy")
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}


def processor() -> str:
    """The processor's name, as Linux gives it."""
    try:
        lines = _CPU_INFO.read_text().splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


@cache
def machine() -> dict[str, Any]:
    """The machine as it is, whatever part of it a run may use."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
    }


@cache
def revision() -> str | None:
    """The git commit of this code; where it has been changed since, with "-dirty-" and a digest of the changes.

    None if there is no commit. An installed copy may lie in somebody else's checkout: that
    one's commit says nothing about it.
    """
    if _git("ls-files", "--error-unmatch", _HERE.name) is None:
        return None
    commit, changes = _git("rev-parse", "HEAD"), _git("diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD")
    if commit is None or not changes:
        return commit
    digest = hashlib.sha256(changes.encode(errors="surrogateescape")).hexdigest()
    return f"{commit}-dirty-{digest[:12]}"


def _git(*arguments: str) -> str | None:
    """What git says in this folder; None if it fails, or is not there. It takes no locks and no hints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(_HERE.parent), *arguments],
            env={**environment, "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
