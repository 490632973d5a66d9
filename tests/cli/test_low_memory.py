"""Too little memory: one line that says so, nothing half-written, and a run that goes on once there is more.

`FASTGLT_LIMITS=12` tries twelve limits instead of two.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RUN = ("find", "--quiet", "--hidden", "6000", "--oneshot-epochs", "1", "--denoise-epochs", "1", "--interval", "1")
MB = 2**20
COUNT = int(os.environ.get("FASTGLT_LIMITS", "2"))
# PyTorch does not fit; PyTorch fits, and the network does not
LIMITS = (700, 1300) if COUNT == 2 else tuple(600 + 900 * number // COUNT for number in range(COUNT))


def limited(megabytes: int, *command: object) -> "subprocess.CompletedProcess[str]":
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MB, megabytes * MB))

    words = [sys.executable, "-m", "fastglt", *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, preexec_fn=limit)


@pytest.mark.parametrize("megabytes", LIMITS)
def test_too_little_memory_is_one_line(cli: Cli, tmp_path: Path, megabytes: int) -> None:
    command = (*RUN, "--threads", "1", "--out", tmp_path / "run")
    done = limited(megabytes, *command)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    rule = "error: fastglt needs 1,024 MB of addresses" if megabytes < 1024 else "error: not enough memory; try "
    assert line.startswith(rule)
    assert not (tmp_path / "run" / "metrics.json").exists()
    if megabytes > 1024:
        assert not list((tmp_path / "run").rglob(".*.????????")), "a torn file was left behind"
    if COUNT > 2:
        again = cli(*command)
        assert (again.code, again.err) == (0, "")


def test_what_needs_no_pytorch_does_with_less() -> None:
    done = limited(300, "find", "--help")
    assert (done.returncode, done.stderr) == (0, "")
