"""Connections with bounds that uvicorn's own do not have: how many, how slow, and in how many chunks."""

import asyncio
import json
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from fastglt.serve.gate import ABORT
from fastglt.serve.limits import Limits

_CHUNKS, _CHUNK = 256, 64  # chunks that may be of any size; bytes that the others must have on average
_DETAIL = json.dumps({"detail": "too many connections; try again"}).encode()
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s" % (len(_DETAIL), _DETAIL)
)


class Connection(h11.Connection):
    """Refuses bodies in many tiny chunks: each takes as long to read as a long one."""

    _chunks = _bytes = 0

    def next_event(self) -> Any:
        """The next part of a request."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._chunks = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._chunks, self._bytes = self._chunks + 1, self._bytes + len(event.data)
            if self._chunks > _CHUNKS + self._bytes // _CHUNK:
                raise h11.RemoteProtocolError("too many chunks")
        return event


class Protocol(H11Protocol):
    """One connection. Its client has `seconds` to send the headers of a request, and again to take an answer."""

    most: ClassVar[int]
    seconds: ClassVar[float]

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = Connection(h11.SERVER, self.config.h11_max_incomplete_event_size or 2**14)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take it, or say that there are too many."""
        super().connection_made(transport)
        self._expect()
        if len(self.connections) > self.most:
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._relax()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read what has come; a request that has begun has the time that the app gives it."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._relax()
            self.scope.setdefault("extensions", {})[ABORT] = {"call": self.transport.abort}

    def on_response_complete(self) -> None:
        """The next request must come soon; or the connection must close, although its client does not read."""
        self._expect()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The client must read soon."""
        self._expect()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It has."""
        if self.cycle and not self.cycle.response_complete:
            self._relax()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Say that a request is none, if that can still be said."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _expect(self) -> None:
        self._relax()
        self._deadline = self.loop.call_later(self.seconds, self.transport.abort)

    def _relax(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol(limits: Limits) -> type[Protocol]:
    """Connections within these limits."""
    return type("LimitedProtocol", (Protocol,), {"most": limits.max_connections, "seconds": limits.timeout})
