"""`fastglt serve`, as a process of its own."""

import hashlib
import json
import signal
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.processes import Process


def ask(address: str, question: Any) -> Any:
    body, kind = json.dumps(question).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{address}/predict", body, kind), timeout=20) as answer:
        return json.load(answer)


def test_serves_a_run_until_it_is_interrupted(find: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    with Process("-m", "fastglt", "serve", tmp_path / "run", "--port", "0", "--threads", "1") as process:
        try:
            line = process.stdout.readline()
            address = line.split(" at ")[1].split()[0]
            file = tmp_path / "run" / "ticket.safetensors"
            assert line.startswith(f"serving {file} at http://127.0.0.1:")
            assert f"(API page: {address}/docs)" in line
            answer = ask(address, {"nodes": [0, 79]})
            assert answer["nodes"] == [0, 79]
            assert answer["ticket"] == hashlib.sha256(file.read_bytes()).hexdigest()
            new = {"features": {"indices": [[3]], "values": [[1.0]]}, "edges": [[80, 4]]}
            assert ask(address, {"new_nodes": new})["nodes"] == [80]
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_a_token_and_other_names(find: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    (tmp_path / "token").write_text("s3cret\n")
    told = ("--port", "0", "--threads", "1", "--token-file", str(tmp_path / "token"))
    names = ("--allowed-host", "one.example", "--allowed-host", "two.example")
    with Process("-m", "fastglt", "serve", tmp_path / "run", *told, *names) as process:
        try:
            address = process.stdout.readline().split(" at ")[1].split()[0]
            token = {"Authorization": "Bearer s3cret"}
            assert status(f"{address}/") == 401
            assert status(f"{address}/", **token) == 200
            assert status(f"{address}/", Host="two.example", **token) == 200
            assert status(f"{address}/", Host="evil.example", **token) == 400
            assert status(f"{address}/healthz", Host="one.example") == 200
        finally:
            process.kill()


def status(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


class TestToken:
    @pytest.fixture
    def served(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What would be served."""
        found: list[Any] = []
        monkeypatch.setattr("fastglt.serve.server.run_on", lambda _, app, *__, **___: found.append(app))
        return found

    @pytest.mark.parametrize(
        ("host", "token", "warns"),
        [
            ("127.0.0.1", None, False),
            ("0.0.0.0", None, True),
            ("0.0.0.0", "s3cret", False),
        ],
    )
    def test_without_one_beyond_loopback_is_warned_of(
        self,
        find: Cli,
        cli: Cli,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        served: list[Any],
        host: str,
        token: str | None,
        warns: bool,
    ) -> None:
        find("--quiet", "--out", tmp_path / "run")
        if token:
            monkeypatch.setenv("FASTGLT_SERVE_TOKEN", token)
        result = cli("serve", tmp_path / "run", "--host", host, "--port", 0, "--threads", 1)
        assert (result.code, len(served)) == (0, 1)
        assert ("warning: whoever reaches this address may ask" in result.err) == warns

    def test_one_that_is_none_is_refused(self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "empty").write_text("\n")
        for file, reason in (("empty", "printable ASCII"), ("none", "must be a readable text file")):
            result = cli("serve", tmp_path, "--token-file", tmp_path / file)
            assert (result.code, reason in result.err) == (2, True)
        monkeypatch.setenv("FASTGLT_SERVE_TOKEN", "s3cret token")
        result = cli("serve", tmp_path)
        assert (result.code, "(got something else in FASTGLT_SERVE_TOKEN)" in result.err) == (2, True)
        assert "s3cret" not in result.err


def test_a_csv_files_own_ids_and_labels(cli: Cli, tmp_path: Path) -> None:
    nodes = [f"n{row},{('ant', 'bee')[row % 2]},{row % 2}" for row in range(40)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,label,f", *nodes]))
    (tmp_path / "edges.csv").write_text("source,target\n" + "\n".join(f"n{i},n{(i + 2) % 40}" for i in range(40)))
    short = ("--hidden", "4", "--oneshot-epochs", "1", "--denoise-epochs", "2", "--interval", "1", "--threads", "1")
    assert cli("find", "--dataset", tmp_path, *short, "--quiet", "--out", tmp_path / "run").code == 0
    told = ("--dataset", str(tmp_path), "--port", "0", "--threads", "1")
    with Process("-m", "fastglt", "serve", tmp_path / "run", *told) as process:
        try:
            address = process.stdout.readline().split(" at ")[1].split()[0]
            answer = ask(address, {"ids": ["n31", "n2"]})
        finally:
            process.kill()
    assert (answer["nodes"], answer["ids"]) == ([31, 2], ["n31", "n2"])
    assert answer["labels"] == [("ant", "bee")[kind] for kind in answer["classes"]]


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--queue", 0, "queue must be at least 1 (got 0)"),
        ("--max-unfinished", 0, "max_unfinished must be at least 1 (got 0)"),
        ("--max-connections", 0, "max_connections must be at least 1 (got 0)"),
        ("--allowed-host", "http://a", "--allowed-host must be a host's name or address"),
        ("--timeout", 0, "timeout must lie in (0, 3600] seconds (got 0.0)"),
        ("--threads", -1, "threads must not be negative (got -1)"),
        ("--port", 70000, "port must lie in 0 … 65535 (got 70000)"),
        ("--log-level", "loud", "(got 'loud')"),
        ("--host", "256.0.0.1", "host must be an address of this machine"),
    ],
)
def test_wrong_options_are_explained(cli: Cli, tmp_path: Path, option: str, value: Any, reason: str) -> None:
    result = cli("serve", tmp_path / "none.safetensors", option, value)
    assert result.code == 2
    assert reason in result.err


def test_a_missing_extra_is_named(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.cli.commands.serve._NEEDED", ("fastapi", "no_such_module"))
    result = cli("serve", tmp_path)
    assert result.code == 1
    assert "fastglt serve needs no_such_module; run pip install 'fastglt[serve]'" in result.err
