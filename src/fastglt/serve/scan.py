"""What a JSON body contains, counted while it arrives and before anything is made of it.

A parser makes objects of many times a body's length, and a validator an error of each key it does not know. So the
raw bytes are counted first: a request has few keys, little nesting, and as many lists and strings as the limits
allow. A parser stops at the first mistake of grammar, and up to there the counts are those of the grammar; so no
parser builds more of a body that passes. This holds for UTF-8, where no other character has the byte of a quote.
"""

from dataclasses import dataclass

import numpy as np

from fastglt.serve.limits import Limits

_QUOTE, _COLON = ord('"'), ord(":")
_KEYS, _DEPTH, _MORE = 64, 16, 1000  # a request has at most 8 keys and is nested 5 deep

_PLAIN = bytes(set(range(256)) - set(b'":[]{}'))  # what is not counted


class ScanError(Exception):
    """A body has more of something than a request can have."""


@dataclass(frozen=True, kw_only=True)
class Most:
    """What one body may have."""

    keys: int
    depth: int
    strings: int
    containers: int  # lists and objects

    @staticmethod
    def of(limits: Limits, *, pairs: bool = False) -> "Most":
        """Twice what fits and some more: what is slightly too much is explained better by who reads it.

        A pair of nodes is a list, and may have two strings.
        """
        asked = limits.max_nodes if pairs else 0
        containers = 2 * (2 * limits.max_new_nodes + limits.max_new_edges + asked) + _MORE
        strings = 2 * (limits.max_nodes + asked) + _MORE
        return Most(keys=_KEYS, depth=_DEPTH, strings=strings, containers=containers)


class Scan:
    """Counts one body, piece by piece; ScanError as soon as there is too much of something.

    >>> scan = Scan(Most(keys=1, depth=2, strings=9, containers=9))
    >>> scan.feed(b'{"a:b": [0, "')
    >>> scan.feed(b'x\\\\"[[["], "c": 1}')
    Traceback (most recent call last):
    ...
    fastglt.serve.scan.ScanError: the body may have at most 1 keys (got more)
    """

    def __init__(self, most: Most) -> None:
        self._most = most
        self._held = b""  # a backslash whose next character has not come
        self._quotes = self._keys = self._depth = self._containers = 0

    def feed(self, piece: bytes) -> None:
        """Count the next bytes of the body."""
        piece = self._held + piece
        self._held = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""
        if self._held:
            piece = piece[:-1]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        piece = piece.translate(None, _PLAIN)
        if piece:
            self._count(np.frombuffer(piece, np.uint8))

    def _count(self, codes: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> None:
        quotes = codes == _QUOTE
        in_string = (np.cumsum(quotes, dtype=np.uint8) + self._quotes % 2) % 2
        structure = codes[in_string == 0]
        opened = (structure == ord("[")) | (structure == ord("{"))
        closed = (structure == ord("]")) | (structure == ord("}"))
        depths = self._depth + np.cumsum(opened.astype(np.int32) - closed)
        self._quotes += int(np.count_nonzero(quotes))
        self._keys += int(np.count_nonzero(structure == _COLON))
        self._containers += int(np.count_nonzero(opened))
        if depths.size:
            self._depth = int(depths[-1])
            self._check("may be nested at most {} deep", int(depths.max()), self._most.depth)
        self._check("may have at most {} keys", self._keys, self._most.keys)
        self._check("may have at most {} strings", self._quotes // 2, self._most.strings)
        self._check("may have at most {} lists and objects", self._containers, self._most.containers)

    @staticmethod
    def _check(rule: str, found: int, most: int) -> None:
        if found > most:
            raise ScanError(f"the body {rule.format(most)} (got more)")
