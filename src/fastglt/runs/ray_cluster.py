"""The connection of this process to a Ray cluster: one of its own on this machine, or one that is there."""

import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from fastglt.errors import InputError, MachineError
from fastglt.runs.experiment import thread_count
from fastglt.system.terminal import safe

_REACH = 5.0  # seconds, for the head of a cluster
_MISSING = "--engine ray needs Ray, which is not there; pip install 'fastglt[ray]'"
_LOCAL = ("", "local")


def cluster_jobs(address: str | None, *, threads: int, device: str) -> int:
    """How many runs a cluster has room for at a time; connects to it."""
    import_ray()
    connect(address)
    import ray

    needs, has = thread_count(threads), ray.cluster_resources()
    room = int(has.get("CPU", 0)) // needs
    return max(1, min(room, int(has.get("GPU", 0))) if device.startswith("cuda") else room)


def require_ray() -> None:
    """Refuse to go on where Ray is not installed, without the time that its import takes."""
    if find_spec("ray") is None:
        raise MachineError(_MISSING)


def import_ray() -> None:
    """Refuse to go on without Ray."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray  # noqa: F401
    except ImportError:
        raise MachineError(_MISSING) from None


def connect(address: str | None, *, cpus: int | None = None) -> None:
    """Connect this process to a cluster, or start one on this machine; it lasts as long as the process."""
    import_ray()
    import ray

    if ray.is_initialized():
        return
    address = (os.environ.get("RAY_ADDRESS") if address is None else address) or ""
    asked: dict[str, Any] = {"address": address}
    if address in _LOCAL:
        asked = {"address": "local", "num_cpus": cpus, "include_dashboard": False}
    elif address != "auto":
        _require_reachable(address)
    with _own_signals():
        try:
            ray.init(**asked, log_to_driver=False, logging_level=logging.ERROR)
        except (Exception, SystemExit) as error:  # Ray ends the process if it may not join a cluster
            where = "on this machine" if address in _LOCAL else f"at '{address}'"
            raise MachineError(f"no Ray could be had {where} ({in_short(error)})") from None
    _keep_silent()


def _keep_silent() -> None:
    """Ray prints what it has to say of lost workers among our results, where JSON may stand; we tell of them."""
    import ray._private.worker

    ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _require_reachable(address: str) -> None:
    """Ray itself waits for two minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        remedy = "`ray start --head` prints it"
        raise InputError(f"the address of a Ray cluster must be HOST:PORT (got '{address}'); {remedy}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH).close()
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = f"start it (ray start --head --port {port}), or leave --ray-address out"
        raise MachineError(f"no Ray cluster answers at '{address}' ({reason}); {remedy}") from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def in_short(error: BaseException) -> str:
    """The one line of an error that says what it is."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1 if "Traceback" in str(error) else 0] if lines else type(error).__name__
    return safe(text if len(text) <= 200 else f"{text[:197]}...")
