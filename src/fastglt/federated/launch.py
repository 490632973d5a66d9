"""A whole Flower federation on this machine: a SuperLink, a SuperNode for each client, and one run of our app.

They are processes of their own that talk over loopback, as they would over a network; none outlives the run.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastglt.errors import MachineError
from fastglt.federated.job import Job
from fastglt.system.storage import write_atomically

TICKET, ROUNDS, FAILED = "ticket.safetensors", "rounds.json", "failed.txt"
_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "fastglt-federation"
version = "1.0.0"
description = "A federation of fastglt"
license = "MIT"
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "fastglt"

[tool.flwr.app.components]
serverapp = "app.server:app"
clientapp = "app.client:app"

[tool.flwr.app.config]
job = {job}
out = {out}
patience = {patience}
"""


def require_flower() -> None:
    """Refuse to go on without the extra."""
    if find_spec("flwr") is None:
        raise MachineError(
            "federated training over Flower needs flwr; run pip install 'fastglt[federated]', "
            "or take --engine local, which needs nothing"
        )


@dataclass(frozen=True, kw_only=True)
class Loopback:
    """Where and how long a federation runs."""

    job: Job
    out: Path  # gets the ticket and what each round has cost
    patience: float = 120.0  # seconds until a client counts as gone
    most: float = 3600.0  # seconds of everything

    def run(
        self, after_round: Callable[[dict[str, Any]], None], *, killed: Sequence[tuple[int, int]] = ()
    ) -> list[dict[str, Any]]:
        """All rounds; `killed` names clients whose SuperNode is killed once so many rounds are done."""
        require_flower()
        self.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fastglt-flower-") as folder, contextlib.ExitStack() as stack:
            place = Path(folder)
            fleet, control, server, *rest = _free_ports(3 + self.job.plan.clients)
            start = _Starter(place, stack)
            start(
                *("flower-superlink", "--insecure", "--disable-runtime-dependency-installation"),
                *("--fleet-api-address", fleet, "--control-api-address", control),
                *("--serverappio-api-address", server),
            )
            _wait_for(fleet, control)
            nodes = [
                start(
                    *("flower-supernode", "--insecure", "--superlink", fleet, "--max-wait-time", "60"),
                    *("--clientappio-api-address", address, "--node-config", f"partition-id={number}"),
                )
                for number, address in enumerate(rest)
            ]
            self._submit(place, control, start)
            return self._follow(nodes, after_round, {done: client for client, done in killed})

    def _submit(self, place: Path, control: str, start: "_Starter") -> None:
        """Hand our app to the SuperLink."""
        app = place / "federation"
        text = _PROJECT.format(
            job=json.dumps(json.dumps(self.job.settings)),
            out=json.dumps(str(self.out.resolve())),
            patience=float(self.patience),
        )
        files = {"pyproject.toml": text, "README.md": "A federation of fastglt.\n", "app/__init__.py": ""}
        for side in ("server", "client"):
            files[f"app/{side}.py"] = f"from fastglt.federated.flower import {side}_app\n\napp = {side}_app\n"
        for name, content in files.items():
            write_atomically(app / name, content.encode())
        connection = f'[superlink]\ndefault = "here"\n\n[superlink.here]\naddress = "{control}"\ninsecure = true\n'
        write_atomically(place / "home" / "config.toml", connection.encode())
        submitted = start("flwr", "run", str(app), "here")
        if submitted.wait(120) != 0:
            raise MachineError(f"Flower did not take the run ({start.last_words('flwr')})")

    def _follow(
        self, nodes: list["subprocess.Popen[bytes]"], after_round: Callable[[dict[str, Any]], None], kills: Any
    ) -> list[dict[str, Any]]:
        """Tell each round until the ticket is there."""
        told, until = 0, time.monotonic() + self.most
        while True:
            finished = (self.out / TICKET).exists()
            rounds = self._rounds()
            for done in rounds[told:]:
                after_round(done)
                if done["number"] in kills:
                    nodes[kills[done["number"]]].kill()
            told = len(rounds)
            if finished:
                return rounds
            if (self.out / FAILED).exists():
                raise MachineError(f"the federation failed ({(self.out / FAILED).read_text()})")
            if time.monotonic() > until:
                raise MachineError(f"the federation must end within {self.most:g} s (got {told} rounds)")
            time.sleep(0.2)

    def _rounds(self) -> list[dict[str, Any]]:
        path = self.out / ROUNDS
        return list(json.loads(path.read_text())) if path.exists() else []


class _Starter:
    """Starts Flower's programs, with their output in files; they end with the federation."""

    def __init__(self, place: Path, stack: contextlib.ExitStack) -> None:
        self._place, self._stack, self._count = place, stack, 0
        paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        home = str(place / "home")
        self._environment = {**os.environ, "PATH": paths, "FLWR_HOME": home, "FLWR_TELEMETRY_ENABLED": "0"}

    def __call__(self, *command: str) -> "subprocess.Popen[bytes]":
        program = Path(sys.executable).parent / command[0]
        self._count += 1
        log = self._stack.enter_context((self._place / f"{self._count:03}-{command[0]}.log").open("wb"))
        process = subprocess.Popen(
            [str(program), *command[1:]],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=self._place,
            start_new_session=True,
        )
        self._stack.callback(_end, process)
        return process

    def last_words(self, program: str) -> str:
        """The end of what a program has said."""
        texts = [path.read_text(errors="replace") for path in sorted(self._place.glob(f"*-{program}.log"))]
        return " ".join("\n".join(texts).split())[-300:]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it started, which are of its session."""
    import signal

    for sign in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)


def _free_ports(count: int) -> list[str]:
    """Addresses of this machine's loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        return [f"127.0.0.1:{port}" for port in _bound(count, stack)]


def _bound(count: int, stack: contextlib.ExitStack) -> Iterator[int]:
    for _ in range(count):
        taken = stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def _wait_for(*addresses: str, patience: float = 60.0) -> None:
    """Until somebody listens there."""
    until = time.monotonic() + patience
    for address in addresses:
        host, _, port = address.partition(":")
        while True:
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
                break
            if time.monotonic() > until:
                raise MachineError(f"Flower's SuperLink must listen on {address} within {patience:g} s")
            time.sleep(0.2)
