"""Listening, and stopping in order: nothing new is accepted, what was accepted is answered."""

import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from fastglt.errors import InputError

_WAITING = 2048  # connections that nobody has accepted yet, as uvicorn has it
LEVELS = ("critical", "error", "warning", "info", "debug")


class Server(uvicorn.Server):
    """uvicorn's server, which tells when it listens."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        self._announce()


def run(app: ASGIApp, *, host: str = "127.0.0.1", port: int = 8000, log_level: str = "warning") -> None:
    """Serve until SIGTERM or SIGINT, answer what was accepted, and return. The address is printed.

    Port 0 takes a free one. A second SIGINT does not wait: KeyboardInterrupt.
    """
    require_level(log_level)
    run_on(listen(host, port), app, print, log_level=log_level)


def run_on(
    listening: socket.socket,
    app: ASGIApp,
    announce: Callable[[str], None],
    *,
    log_level: str = "warning",
    patience: float = 60.0,
) -> None:
    """`run` on a socket that is there already; it is closed. `announce` is told the address.

    What was accepted is answered for at most `patience` seconds.
    """
    server = make_server(app, lambda: announce(address(listening)), log_level=log_level, patience=patience)
    with listening, _signals_end_here():
        server.run([listening])
    if server.force_exit:
        raise KeyboardInterrupt


def require_level(name: str) -> None:
    """Refuse what is no log level."""
    if name not in LEVELS:
        raise InputError(f"the log level must be one of {', '.join(LEVELS)} (got '{name}')")


def make_server(
    app: ASGIApp, announce: Callable[[], None], *, log_level: str = "warning", patience: float = 60.0
) -> Server:
    """A server that is not running yet."""
    config = uvicorn.Config(
        app,
        http="h11",
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
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
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
def _signals_end_here() -> Iterator[None]:
    """uvicorn raises the signals that stopped it once more at its end; nobody is to die of them."""
    before = {number: signal.signal(number, _nothing) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nothing(*_: object) -> None:
    pass
