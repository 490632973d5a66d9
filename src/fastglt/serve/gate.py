"""Who may come in: so many requests at a time, each with a JSON body that is not too long and comes soon enough."""

import asyncio
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastglt.serve.limits import FULL_BODIES, Limits
from fastglt.serve.metrics import Metrics
from fastglt.serve.scan import Most, Scan, ScanError
from fastglt.serve.transit import CrowdedError, Transit

RETRY_AFTER = {"Retry-After": "1"}  # seconds; goes with every 503
ABORT = "fastglt.abort"  # the server's extension that ends a connection without waiting for its client
_LINGER = 1.0  # seconds in which a client that is still sending can read why it is refused
_CLOSE = {"Connection": "close"}
_SHORT = 2**13  # bytes
_PATIENCE = 30  # times the time in which a body must come; who reads nothing at all is left sooner
_PIECE = 2**16  # bytes of an answer that are handed to the server at a time


@dataclass
class GateError(Exception):
    """A request that is not passed on."""

    status: int
    detail: str
    headers: dict[str, str] = field(default_factory=dict)


class Gate:
    """Reads a request's body whole before it passes it on; refuses while it reads, not after.

    A request has a place among those that are computed from its last byte to its answer. Before that and after
    that it waits for its client, and takes no such place.
    """

    def __init__(self, app: ASGIApp, path: str, limits: Limits, metrics: Metrics, *, pairs: bool = False) -> None:
        self._app, self._path, self._limits, self._metrics = app, path, limits, metrics
        self._most = Most.of(limits, pairs=pairs)
        self._coming = Transit(most=limits.max_unfinished, room=limits.in_flight)
        self._leaving = Transit(most=limits.max_connections, room=limits.in_flight)
        self._turn = asyncio.Lock()
        self._inside = self._held = 0  # requests, and bytes of their bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or not self._asks(scope):
            await self._app(scope, receive, send)
        elif self._inside >= self._limits.queue:
            detail = f"at most {self._limits.queue} requests may be under way at a time; try again"
            await JSONResponse({"detail": detail}, 503, RETRY_AFTER)(scope, receive, send)
        else:
            try:
                await self._let_in(scope, receive, send)
            except GateError as refused:
                await _refuse(refused, scope, receive, send)

    def _asks(self, scope: Scope) -> bool:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        return bool(path == self._path and scope["method"] == "POST")

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._metrics.under_way.track_inprogress():
            with self._metrics.unfinished.track_inprogress():
                body = await self._read(Headers(scope=scope), receive)
            if body is not None:
                await self._deliver(await self._answer(body, scope, receive), scope, send)

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The body; None if the client has gone before it was whole."""
        kind = headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise GateError(415, f"the content type must be application/json (got {kind[:80]!a})")
        too_long = GateError(413, f"a body may have at most {self._limits.max_body} bytes")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.max_body:
            raise too_long
        body, scan = bytearray(), Scan(self._most)
        try:
            async with self._coming.transfer(self._limits.timeout) as transfer:
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    piece = message.get("body", b"")
                    if len(body) + len(piece) > self._limits.max_body:
                        raise too_long
                    transfer.grow(len(piece))
                    await self._scan(scan, piece)
                    body += piece
                    more = message.get("more_body", False)
        except CrowdedError:
            detail = "too many requests are on their way, and this one has been for the longest; try again"
            raise GateError(503, detail, RETRY_AFTER) from None
        except TimeoutError:
            raise GateError(408, f"a request must arrive within {self._limits.timeout:g} s") from None
        except ScanError as error:
            raise GateError(422, str(error)) from None
        return bytes(body)

    async def _scan(self, scan: Scan, piece: bytes) -> None:
        """Count at once what is short; of long pieces, which hundreds of clients may send, one in each turn."""
        if len(piece) <= _SHORT:
            scan.feed(piece)
            return
        async with self._turn:
            scan.feed(piece)
            await asyncio.sleep(0)

    async def _answer(self, body: bytes, scope: Scope, receive: Receive) -> list[Message]:
        """What the app has to say to a whole body."""
        size = len(body)
        if self._inside >= self._limits.queue or self._held + size > self._limits.in_flight:
            raise GateError(503, "too many requests are under way; try again", RETRY_AFTER)
        rest: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        del body  # who reads it has it alone
        answer: list[Message] = []

        async def replay() -> Message:
            return rest.pop() if rest else await receive()

        async def keep(message: Message) -> None:
            answer.append(message)

        self._inside, self._held = self._inside + 1, self._held + size
        try:
            await self._app(scope, replay, keep)
        finally:
            self._inside, self._held = self._inside - 1, self._held - size
        return answer

    async def _deliver(self, answer: list[Message], scope: Scope, send: Send) -> None:
        """Send in pieces, so that the server waits for a client that does not read, and not for ever."""
        try:
            async with self._leaving.transfer(_PATIENCE * self._limits.timeout) as transfer:
                size = sum(len(message.get("body", b"")) for message in answer)
                transfer.grow(min(size, self._limits.in_flight // FULL_BODIES))
                for message in answer:
                    body = message.get("body", b"")
                    for start in range(_PIECE, len(body), _PIECE):
                        await send({**message, "body": body[start - _PIECE : start], "more_body": True})
                        await asyncio.sleep(0)  # others have their turn, and the server notices who has left
                    if body:
                        message = {**message, "body": body[(len(body) - 1) // _PIECE * _PIECE :]}  # noqa: PLW2901
                    await send(message)
        except TimeoutError:
            abort = scope.get("extensions", {}).get(ABORT)
            if abort:
                abort["call"]()
                await asyncio.sleep(0)  # the server notices that its client has gone


async def _refuse(refused: GateError, scope: Scope, receive: Receive, send: Send) -> None:
    """The answer at once, the end of the connection when the client has stopped sending, or soon.

    A connection that is closed on a client that still sends is reset, and the answer may be lost with it.
    """

    async def linger(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": True})
            await _drain(receive)
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    headers = {**refused.headers, **_CLOSE}
    await JSONResponse({"detail": refused.detail}, refused.status, headers)(scope, receive, linger)


async def _drain(receive: Receive) -> None:
    try:
        async with asyncio.timeout(_LINGER):
            more = True
            while more:
                more = (await receive()).get("more_body", False)  # a client that has left sends no more
    except TimeoutError:
        pass
