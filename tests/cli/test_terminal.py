"""What commands print of files that come from anybody, and in any locale."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastglt import Ticket
from fastglt.runs.store import Entry, Store, key_of
from fastglt.tickets.ticket_file import encode
from tests.cli.conftest import Cli
from tests.tickets.test_ticket_file import rewritten

EVIL = "\x1b]0;owned\x07\x1b[2J[red]x[/red][/] :smile:\r\n\x9b31m"
SHOWN = r"\x1b]0;owned\x07\x1b[2J[red]x[/red][/] :smile:\r\n\x9b31m"


@pytest.fixture
def evil(ticket: Ticket, tmp_path: Path) -> Path:
    """A ticket whose every text is meant for a terminal."""
    config = {**ticket.config, "method": EVIL, "options": {EVIL: EVIL}}
    changes: dict[str, Any] = {
        "config": config,
        "scores": {EVIL: 0.5},
        "versions": {EVIL: EVIL},
        "graph_fingerprint": EVIL,
    }
    (tmp_path / "evil.safetensors").write_bytes(rewritten(encode(ticket), **changes))
    return tmp_path / "evil.safetensors"


def no_control(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


def test_show_and_diff_show_what_is_there(cli: Cli, evil: Path) -> None:
    shown = cli("show", evil)
    assert (shown.code, shown.err) == (0, "")
    assert no_control(shown.out)
    assert SHOWN in shown.out
    compared = cli("diff", evil, evil)
    assert compared.code == 0, compared.err
    assert no_control(compared.out)
    assert SHOWN in compared.out
    assert cli("show", evil, "--json").document["method"] == EVIL, "machines get it as it is"


def test_errors_show_what_is_there(cli: Cli, evil: Path, ticket: Ticket) -> None:
    evil.write_bytes(rewritten(encode(ticket), format=EVIL))
    result = cli("show", evil)
    assert result.code == 2
    assert no_control(result.err)
    assert result.err.count("\n") == 1
    assert r"\x1b]0;owned\x07\x1b[2J[red]x[/red][/] :smile:" in result.err
    evil.write_bytes(rewritten(encode(ticket), format="x" * 10**6))
    assert len(cli("show", evil).err) < 6000


def test_runs_show_what_is_there(cli: Cli, store: Path) -> None:
    settings = {"dataset": EVIL, "model": EVIL, "method": EVIL, "seed": 0, EVIL: EVIL}
    metrics = {"search_test": 0.5, EVIL: EVIL}
    Store(store).record(Entry(key=key_of(settings), kind=EVIL, command=EVIL, settings=settings, metrics=metrics))
    for arguments in ((), ("1",), ("--kind", "none")):
        result = cli("runs", *arguments)
        assert result.code == 0, result.err
        assert no_control(result.out + result.err)
        assert SHOWN in result.out + result.err


def test_a_recorded_result_shows_what_is_there(find: Cli, tmp_path: Path) -> None:
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    (tmp_path / "run" / ".digests.json").unlink()  # as in a folder of before
    (tmp_path / "run" / "metrics.json").write_text(json.dumps({**metrics, "method": EVIL}))
    result = find("--out", tmp_path / "run")
    assert result.code == 0, result.err
    assert no_control(result.out)
    assert r"\x1b]0;owned\x07\x1b[2J[red]x[" in result.out


@pytest.mark.parametrize("missing", ["dataset", "macs_dense", "winning_search", "edges_total"])
def test_a_result_of_before_that_lacks_something_is_refused(find: Cli, tmp_path: Path, missing: str) -> None:
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    (tmp_path / "run" / ".digests.json").unlink()
    for change in ({missing: [1]}, {}):
        other = {name: value for name, value in metrics.items() if name != missing} | change
        (tmp_path / "run" / "metrics.json").write_text(json.dumps(other))
        result = find("--out", tmp_path / "run")
        assert (result.code, "metrics.json must be as `fastglt find` wrote it" in result.err) == (2, True)


def test_predictions_show_what_is_there(cli: Cli, tmp_path: Path) -> None:
    nodes = [f"{number}{EVIL[:12]},[red]{number % 2},{number % 3},{number % 5}" for number in range(30)]
    ids = [row.partition(",")[0] for row in nodes]
    edges = [f"{ids[i]},{ids[(i + 1) % 30]}" for i in range(30)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,a,b", *nodes]), newline="")
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]), newline="")
    short = ("--hidden", "4", "--oneshot-epochs", "2", "--denoise-epochs", "2", "--interval", "1", "--threads", "1")
    found = cli("find", "--dataset", tmp_path, *short, "--quiet", "--out", tmp_path / "run")
    assert found.code == 0, found.err
    result = cli("predict", tmp_path / "run", "--dataset", tmp_path)
    assert result.code == 0, result.err
    assert no_control(result.out)
    assert r"0\x1b]0;owned\x07" in result.out
    assert "[red]" in result.out


# Commands one after the other in one process, each with an end that any locale can show.
COMMANDS = """
import sys
from fastglt.cli import (main)
for words in (["show", "t.safetensors"], ["diff", *["t.safetensors"] * 2], ["runs"], ["runs", "1"]):
    sys.argv = ["fastglt", *words]
    try:
        main()
    except SystemExit as stopped:
        print("ended with", stopped.code or 0, flush=True)
"""
LOCALES: dict[str, dict[str, str]] = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
}


@pytest.mark.parametrize("environment", LOCALES.values(), ids=LOCALES)
def test_every_locale_can_show_a_ticket(
    environment: dict[str, str], ticket: Ticket, tmp_path: Path, store: Path
) -> None:
    ticket.save(tmp_path / "t.safetensors")
    settings = {"dataset": "图–α", "seed": 0}
    Store(store).record(Entry(key="k", kind="ticket", command="find", settings=settings, metrics={}))
    encoding = "latin-1" if "latin-1" in environment.values() else "ascii"
    result = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    *outputs, rest = result.stdout.decode(encoding).split("ended with 0\n")
    assert (len(outputs), rest) == (4, ""), result.stderr
    for output in outputs:
        assert output
        assert encoding != "ascii" or "?" in output or "-" in output
