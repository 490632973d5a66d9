"""The pages of the documentation, built as `make docs` builds them."""

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent.parent / "docs"


def build_site(out: Path) -> None:
    """Warnings are errors."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "--quiet", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
