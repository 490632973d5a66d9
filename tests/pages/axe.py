"""axe-core, which looks for what keeps people from using a page. npm has it, or a file that is named."""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

VERSION = "4.10.3"
VARIABLE = "FASTGLT_AXE"


def script(cache: Path) -> str | None:
    """Its code: from the file that `FASTGLT_AXE` names, from before, or from npm; None where none has it."""
    named, kept = os.environ.get(VARIABLE), cache / f"axe-{VERSION}.js"
    if named:
        return Path(named).read_text()
    if not kept.exists() and not _fetch(kept):
        return None
    return kept.read_text()


def _fetch(kept: Path) -> bool:
    npm = shutil.which("npm")
    if npm is None:
        return False
    folder = kept.parent / f"npm-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        command = [npm, "pack", f"axe-core@{VERSION}", "--silent"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=True)
        with tarfile.open(folder / f"axe-core-{VERSION}.tgz") as packed:
            found = packed.extractfile("package/axe.min.js")
            assert found is not None
            part = folder / "axe.js"
            part.write_bytes(found.read())
            part.replace(kept)
    except (OSError, subprocess.SubprocessError, tarfile.TarError, KeyError):
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return True


CHECK = """
axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations.map(
  one => one.id + ": " + one.nodes.slice(0, 3).map(node => node.target.join(" ")).join("; ")))
"""
