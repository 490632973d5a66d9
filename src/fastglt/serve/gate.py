"""Who may come in: so many requests at a time, each with a JSON body that is not too long and comes soon enough."""

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fastglt.serve.limits import Limits
from fastglt.serve.metrics import Metrics

RETRY_AFTER = {"Retry-After": "1"}  # seconds; goes with every 503
_LINGER = 1.0  # seconds in which a client that is still sending can read why it is refused
_CLOSE = {"Connection": "close"}


@dataclass
class GateError(Exception):
    """A request that is not passed on."""

    status: int
    detail: str


class Gate:
    """Reads a request's body whole before it passes it on; refuses while it reads, not after."""

    def __init__(self, app: ASGIApp, path: str, limits: Limits, metrics: Metrics) -> None:
        self._app, self._path, self._limits, self._metrics = app, path, limits, metrics
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self._app(scope, receive, send)
        elif self._under_way >= self._limits.queue:
            detail = f"at most {self._limits.queue} requests may be under way at a time; try again"
            await JSONResponse({"detail": detail}, 503, RETRY_AFTER)(scope, receive, send)
        else:
            try:
                await self._let_in(scope, receive, send)
            except GateError as refused:
                await _refuse(refused, scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._under_way += 1
        self._metrics.under_way.inc()
        try:
            body = await self._read(Headers(scope=scope), receive)
            if body is None:
                return

            async def replay() -> Message:
                nonlocal body
                if body is None:
                    return await receive()
                message = {"type": "http.request", "body": body, "more_body": False}
                body = None
                return message

            await self._app(scope, replay, send)
        finally:
            self._under_way -= 1
            self._metrics.under_way.dec()

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The body; None if the client has gone before it was whole."""
        kind = headers.get("content-type", "")
        if kind.partition(";")[0].strip().lower() != "application/json":
            raise GateError(415, f"the content type must be application/json (got {kind[:80]!a})")
        too_long = GateError(413, f"a body may have at most {self._limits.max_body} bytes")
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limits.max_body:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.timeout):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    body += message.get("body", b"")
                    if len(body) > self._limits.max_body:
                        raise too_long
                    more = message.get("more_body", False)
        except TimeoutError:
            raise GateError(408, f"a request must arrive within {self._limits.timeout:g} s") from None
        return bytes(body)


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

    await JSONResponse({"detail": refused.detail}, refused.status, _CLOSE)(scope, receive, linger)


async def _drain(receive: Receive) -> None:
    try:
        async with asyncio.timeout(_LINGER):
            more = True
            while more:
                more = (await receive()).get("more_body", False)  # a client that has left sends no more
    except TimeoutError:
        pass
