"""From a body to a request, or to what is wrong with it; long ones not on the event loop."""

import asyncio
import json
import reprlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

G = TypeVar("G")
T = TypeVar("T")

_SHORT = 4096  # bytes or numbers; handing them to a thread takes longer than reading or writing them
_SHOWN = 5  # mistakes of one request that are told
_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxlist, _REPR.maxdict, _REPR.maxstring, _REPR.maxlong = 2, 3, 3, 40, 40


def _int(text: str) -> int:
    return int(text)


def _float(text: str) -> float:
    return float(text)


# Functions in Python, and not int and float themselves: between two of them the parser lets other threads run.
_YIELDING: dict[str, Any] = {"parse_int": _int, "parse_float": _float}


class Aside:
    """What would keep the event loop from others: in a thread, one at a time, so that memory holds one."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(1)

    async def run(self, function: Callable[[G], T], given: G, *, size: int) -> T:
        """What the function returns; at once if the size is small."""
        if size <= _SHORT:
            return function(given)
        async with self._turn:
            return await asyncio.to_thread(function, given)


@dataclass(frozen=True)
class Wrong:
    """Why a body is no request. A value and no exception: those keep what they were raised in, the body too."""

    status: int
    detail: str


class Reader(Generic[T]):
    """Reads bodies as requests of a kind."""

    def __init__(self, kind: type[T]) -> None:
        self._kind: TypeAdapter[T] = TypeAdapter(kind)

    def read(self, body: bytes) -> T | Wrong:
        """The request that a body is, in UTF-8."""
        if not body:
            return Wrong(400, "the body must be JSON (got nothing)")
        try:
            given = json.loads(body.decode("utf-8-sig"), **(_YIELDING if len(body) > _SHORT else {}))
        except json.JSONDecodeError as error:
            return Wrong(400, _ascii(f"the body must be JSON (got {error.msg}, at character {error.pos})"))
        except (ValueError, RecursionError):  # the parser has given up for another reason than the grammar
            return Wrong(400, "the body must be JSON in UTF-8, not nested deeply, without endless numbers")
        try:
            return self._kind.validate_python(given, from_attributes=True)
        except ValidationError as error:
            return Wrong(422, _explain(error.errors(include_url=False)))


class BodyRoute(APIRoute):
    """A route whose one argument is the body. FastAPI describes it; reading and checking it is done aside.

    FastAPI by itself does both on the event loop, where nobody else is answered meanwhile.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        (kind,) = (kind for name, kind in self.endpoint.__annotations__.items() if name != "return")
        reader: Reader[Any] = Reader(kind)
        aside = Aside()

        async def handle(request: Request) -> Response:
            body = await request.body()
            found = await aside.run(reader.read, body, size=len(body))
            if isinstance(found, Wrong):
                raise HTTPException(found.status, found.detail)
            answer: Response = await self.endpoint(found)
            return answer

        return handle


def shortened(given: object) -> str:
    """The beginning of something a client sent, in ASCII: it may be NaN, a megabyte long, or no Unicode."""
    return _ascii(_REPR.repr(given))


def _explain(mistakes: Sequence[ErrorDetails]) -> str:
    """What was wrong and where. Nothing of the input is repeated but its beginning."""
    return _ascii("; ".join(map(_mistake, mistakes[:_SHOWN])))


def _mistake(mistake: ErrorDetails) -> str:
    where = ".".join(str(part)[:40] for part in ("body", *mistake["loc"]))
    message = str(mistake["msg"]).removeprefix("Value error, ")
    return f"{where}: {message} (got {_REPR.repr(mistake['input'])})"


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
