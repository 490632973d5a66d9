"""Listening, and stopping in order: nothing new is accepted, what was accepted is answered."""

import asyncio
import errno
import logging
import math
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from fastglt.errors import InputError
from fastglt.serve.guard import Guard
from fastglt.serve.limits import Limits
from fastglt.serve.protocol import protocol

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_QUIET = 10.0  # seconds between two lines about the same trouble
_WAITING = 2048  # connections that nobody has accepted yet, as uvicorn has it
_LOG = logging.getLogger("uvicorn.error")
LEVELS = ("critical", "error", "warning", "info", "debug")


class Listener(socket.socket):
    """A listening socket that fails once when descriptors have run out.

    asyncio goes on to accept as often as connections may wait, and each failure starts a timer and writes a
    traceback. Here the second attempt finds nobody waiting, and the loop tries again a second later.
    """

    _failed = False

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection."""
        if self._failed:
            self._failed = False
            raise BlockingIOError
        try:
            return super().accept()
        except OSError as error:
            self._failed = error.errno in _EXHAUSTED
            raise


class Sparing(logging.Filter):
    """Passes a line on if it has not been written in the last seconds, so that no client can fill a log."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it; what has a traceback is always written."""
        now = time.monotonic()
        if record.exc_info or now - self._told.get(record.msg, -math.inf) > _QUIET:
            self._told[record.msg] = now
            return True
        return False


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens, and now and then that it cannot accept."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce
        self._sparing = Sparing()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        asyncio.get_running_loop().set_exception_handler(self._tell)
        _LOG.addFilter(self._sparing)
        await super().startup(sockets)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop in order."""
        await super().shutdown(sockets)
        _LOG.removeFilter(self._sparing)

    def _tell(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _EXHAUSTED and "socket" in context):
            loop.default_exception_handler(context)
        else:
            text = "connections wait until others end: %s; allow the process more open files (ulimit -n)"
            _LOG.error(text, error.strerror)


def run(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    log_level: str = "warning",
    allowed_hosts: Collection[str] = (),
    token: str | None = None,
) -> None:
    """Serve until SIGTERM, SIGHUP or SIGINT, answer what was accepted, and return. The address is printed.

    Port 0 takes a free one. A second SIGINT does not wait: KeyboardInterrupt. `allowed_hosts` are names that a
    request's Host header may have besides those of loopback and the address itself; "*" allows all. With a `token`
    everything but /healthz needs `Authorization: Bearer TOKEN`.
    """
    require_level(log_level)
    guarded = Guard(app, hosts=(host, *allowed_hosts), token=token, hint="allowed_hosts adds one")
    tell = partial(print, flush=True)  # whoever reads a pipe waits for it
    run_on(listen(host, port), guarded, tell, log_level=log_level, limits=limits_of(app))


def run_on(
    listening: socket.socket,
    app: ASGIApp,
    announce: Callable[[str], None],
    *,
    log_level: str = "warning",
    patience: float = 60.0,
    limits: Limits | None = None,
) -> None:
    """`run` on a socket that is there already; it is closed. `announce` is told the address.

    What was accepted is answered for at most `patience` seconds. Nothing guards the app here.
    """
    server = make_server(
        app, lambda: announce(address(listening)), log_level=log_level, patience=patience, limits=limits
    )
    with listening, _signals_end_here(server):
        server.run([listening])
    if server.force_exit:
        raise KeyboardInterrupt


def limits_of(app: ASGIApp) -> Limits:
    """Those that `make_app` was given."""
    found = getattr(getattr(app, "state", None), "limits", None)
    return found if isinstance(found, Limits) else Limits()


def require_level(name: str) -> None:
    """Refuse what is no log level."""
    if name not in LEVELS:
        raise InputError(f"the log level must be one of {', '.join(LEVELS)} (got '{name}')")


def make_server(
    app: ASGIApp,
    announce: Callable[[], None],
    *,
    log_level: str = "warning",
    patience: float = 60.0,
    limits: Limits | None = None,
) -> Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        app,
        http=protocol(limits or limits_of(app)),
        loop="asyncio",
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=log_level,
        access_log=log_level in ("info", "debug"),
        server_header=False,
        timeout_graceful_shutdown=math.ceil(patience),
    )
    return Server(config, announce)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at an address, so that nobody else can; 0 takes a free port."""
    if not 0 <= port <= 65535:
        raise InputError(f"port must lie in 0 … 65535 (got {port})")
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = Listener(family, kind, number)
    except (OSError, UnicodeError) as error:
        raise InputError(f"host must be an address of this machine (got '{host}': {error})") from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen(_WAITING)
    except OSError as error:
        bound.close()
        raise InputError(
            f"the address must be free and this machine's own (got {host}:{port}: {error.strerror}); "
            "pass another --port, or 0 for any free one"
        ) from None
    return bound


def address(bound: socket.socket) -> str:
    """The URL of a socket."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@contextmanager
def _signals_end_here(server: Server) -> Iterator[None]:
    """uvicorn raises the signals that stopped it once more at its end; nobody is to die of them.

    SIGHUP, which uvicorn leaves alone, stops it as SIGTERM does, unless it is ignored, as under nohup.
    """
    before = {number: signal.signal(number, _nothing) for number in (signal.SIGTERM, signal.SIGINT)}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, server.handle_exit)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nothing(*_: object) -> None:
    pass
