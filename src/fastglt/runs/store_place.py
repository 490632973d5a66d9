"""Where the results store is; help texts say so, and need nothing else of it."""

import os
from pathlib import Path

DEFAULT = Path("runs/results.sqlite")


def default_path() -> Path:
    """Where finished runs are recorded unless a caller says otherwise: `FASTGLT_STORE`, or a file below runs/."""
    return Path(os.environ.get("FASTGLT_STORE") or DEFAULT).expanduser()
