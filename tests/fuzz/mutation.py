"""Ways in which a file gets damaged, and ways in which somebody would write one by hand."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

_NUMBERS = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    2**63 - 1,
    2**64 - 1,
)
_TOKENS = (
    *(
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"NaN",
        b'""',
        b"[]",
        b"{}",
        b"[[[[",
        b'{"a":',
        b"]",
        b"}",
        b",",
        b":",
        b"\\",
    ),
    *(
        b'"\\ud800"',
        b'"\\u001b[2J"',
        b"99999999999999999999",
        b"0.1",
        b"\x1b",
        b"\xff\xfe",
        b"&a ",
        b"*a",
        b"!!x ",
        b"? ",
    ),
)
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 7, 2**31, 2**63, 2**64, 10**40, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "x", "gcn", "pyg", "\x1b[2J[red]", "\ud800", "a" * 5000, "os:system", "../../etc/passwd", "0" * 64),
    *([], {}, [[]], [1], ["x"], [-1], [2**62, 2**62], {"a": 1}, {"name": "gcn"}, {"": {"": {}}}, [None] * 50),
)


def _flip(data: bytearray, rng: Random) -> None:
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng)
    data[at : at + length] = rng.randbytes(length)


def _blank(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng)
    data[at : at + length] = bytes([rng.choice((0, 0, 0xFF, 0x20))]) * length


def _remove(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng)
    del data[at : at + length]


def _insert(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng)
    data[at:at] = rng.randbytes(length) if rng.random() < 0.5 else data[at : at + length]


def _move(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng)
    to = rng.randrange(len(data))
    data[to : to + length] = data[at : at + length]


def _cut(data: bytearray, rng: Random) -> None:
    del data[rng.randrange(len(data)) :]


def _number(data: bytearray, rng: Random) -> None:
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice(_NUMBERS) & (256**width - 1)
    at = rng.randrange(max(1, len(data) - width))
    data[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))


def _token(data: bytearray, rng: Random) -> None:
    at, length = _part(data, rng, most=12)
    data[at : at + length * rng.randrange(2)] = rng.choice(_TOKENS)


_KINDS: tuple[Callable[[bytearray, Random], None], ...] = (
    *(_flip, _flip, _flip, _overwrite, _blank, _remove, _insert, _move, _cut, _number, _number, _token),
)


def _part(data: bytearray, rng: Random, most: int = 64) -> tuple[int, int]:
    return rng.randrange(len(data)), rng.randint(1, most)


def damaged(content: bytes, rng: Random) -> bytes:
    """The content with one to three damages."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if data:
            rng.choice(_KINDS)(data, rng)
    return bytes(data)


def changed(value: Any, rng: Random) -> Any:
    """Plain values with something in them, at any depth, replaced, removed or renamed."""
    if not isinstance(value, list | dict) or not value or rng.random() < 0.1:
        return rng.choice(HOSTILE)
    copy = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    place = rng.choice(list(copy))
    deed = rng.random()
    if deed < 0.1:
        del copy[place]
    elif deed < 0.15:
        copy[rng.choice(("x", "\x1b[2J", place)) if isinstance(place, str) else place] = copy.pop(place)
    else:
        copy[place] = changed(copy[place], rng)
    return copy if isinstance(value, dict) else list(copy.values())


def as_json(value: Any) -> bytes:
    """A JSON text, hostile values and all."""
    return json.dumps(value).encode()
