"""What a run survives: kill -9 at any moment, Ctrl-C, a termination request, a disk that takes no more.

`FASTGLT_KILLS=20` tries twenty random moments instead of two.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.processes import Process, run

KILLS = int(os.environ.get("FASTGLT_KILLS", "2"))
RUN = ("find", "--quiet", "--hidden", "64", "--oneshot-epochs", "10", "--denoise-epochs", "60", "--threads", "1")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, float]:
    """The ticket of a run nobody disturbs, and the seconds from its first file to its last."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    process = start(folder, "--checkpoint-every", "0")
    wait_for(folder / "run.json")
    began = time.monotonic()
    _, err = process.communicate()
    assert process.returncode == 0, err
    return (folder / "ticket.safetensors").read_bytes(), time.monotonic() - began


def start(folder: Path, *arguments: str) -> Process:
    return Process("-m", "fastglt", *RUN, "--out", folder, *arguments)


def wait_for(path: Path, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.01)


@pytest.mark.parametrize("moment", range(KILLS))
def test_killed_at_a_random_moment_it_ends_with_the_same_ticket(
    cli: Cli, tmp_path: Path, undisturbed: tuple[bytes, float], moment: int
) -> None:
    ticket, seconds = undisturbed
    process = start(tmp_path / "run", "--checkpoint-every", "0")
    wait_for(tmp_path / "run" / "run.json")
    time.sleep(random.Random(moment).uniform(0, seconds))
    process.kill()
    process.communicate()
    result = cli(*RUN, "--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert (tmp_path / "run" / "ticket.safetensors").read_bytes() == ticket


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_says_how_to_go_on(
    cli: Cli, tmp_path: Path, undisturbed: tuple[bytes, float], number: signal.Signals
) -> None:
    process = start(tmp_path / "run", "--checkpoint-every", "0")
    wait_for(tmp_path / "run" / "checkpoint" / "search.part")
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert not (tmp_path / "run" / "metrics.json").exists()
    assert cli(*RUN, "--out", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "ticket.safetensors").read_bytes() == undisturbed[0]


# What comes before a command: a limit of 40 KB for a file, enough for the store and not for a run; a full output.
FULL_DISK = """
import resource, sys
from fastglt.__main__ import (main)
resource.setrlimit(resource.RLIMIT_FSIZE, (40960, 40960))
main()
"""
FULL_OUTPUT = """
import os, sys
from fastglt.__main__ import (main)
os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
main()
"""


def test_a_disk_that_takes_no_more_is_one_clear_line(tmp_path: Path) -> None:
    done = run("-c", FULL_DISK, *RUN, "--out", tmp_path / "run", "--checkpoint-every", "0")
    assert done.returncode == 1
    assert f"cannot write '{tmp_path}/run/" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "metrics.json").exists()
    assert not list((tmp_path / "run").rglob(".*.part*")), "a torn file was left behind"


def test_output_that_takes_no_more_is_told() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    result = run("-c", FULL_OUTPUT, "methods", "--json")
    assert result.returncode == 1
    assert result.stderr == "error: cannot write the result (No space left on device)\n"


def test_what_the_machine_refuses_is_not_taken_for_the_output(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastglt.kernels.table import Table

    Table.of_machine.cache_clear()  # another test may have read it
    folder = "a" * 300
    monkeypatch.setenv("FASTGLT_CACHE", f"/tmp/{folder}")
    result = cli("tune", "--show")
    assert result.code == 1
    assert f"cannot read '/tmp/{folder}/kernels.json': " in result.err.replace("\n", "")
