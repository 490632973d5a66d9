"""Which code, on which machine."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from fastglt.system import provenance


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The code's file, committed in a checkout of its own."""
    file = tmp_path / "provenance.py"
    file.write_text("first\n")
    monkeypatch.setattr(provenance, "_HERE", file)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", file.name)
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "--quiet", "--message", "first")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def revision() -> str | None:
    """As a new process would find it."""
    return provenance.revision.__wrapped__()


def test_the_revision_is_the_commit_with_a_mark_for_changes(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "HEAD")
    git(checkout, "tag", "v1")  # names play no part
    assert revision() == commit
    (checkout / "notes").touch()
    assert revision() == commit
    (checkout / "provenance.py").write_text("second\n")
    changed = revision()
    assert changed is not None
    assert re.fullmatch(rf"{commit}-dirty-[0-9a-f]{{12}}", changed)
    assert revision() == changed
    (checkout / "provenance.py").write_bytes(b"third, \xff\n")
    assert revision() not in (commit, changed)


def test_a_copy_in_somebody_elses_checkout_has_no_revision(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "installed.py").touch()
    monkeypatch.setattr(provenance, "_HERE", checkout / "installed.py")
    assert revision() is None


def test_without_git_or_a_checkout_there_is_no_revision(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(checkout))
        assert revision() is None
    monkeypatch.setattr(provenance, "_HERE", Path("/dev/null"))
    assert revision() is None


def test_git_hooks_do_not_mislead_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a hook, variables point git to another repository."""
    commit = git(checkout, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/dev/null")
    assert revision() == commit


def test_the_machine_is_plain_values() -> None:
    machine = provenance.machine()
    assert json.loads(json.dumps(machine)) == machine
    assert set(machine) == {"processor", "cores", "memory", "system"}
    assert machine["memory"] > 2**20
    assert machine["cores"] >= 1


def test_versions_name_the_software() -> None:
    assert set(provenance.versions()) == {"python", "fastglt", "torch", "torch_geometric", "numba", "numpy"}
