"""How much one service takes on, so that no client can fill its memory or its time."""

from dataclasses import dataclass

from fastglt.errors import InputError, require

_LONGEST = 3600.0  # seconds
_IN_FLIGHT = 24 * 2**20  # bytes
FULL_BODIES = 6


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is refused instead of tried.

    `queue` counts requests to predict from the last byte of their body to their answer: those that wait and those
    that are computed. Requests whose body is still on its way are counted apart, by `max_unfinished`: when there
    are more of them, the oldest is given up, so that clients that never finish take no place from others.
    """

    queue: int = 64  # requests under way at a time; one more gets 503
    max_body: int = 4 * 2**20  # bytes; more gets 413
    max_nodes: int = 10_000  # asked for in one request
    max_new_nodes: int = 100  # of one request
    max_new_edges: int = 10_000  # of one request
    timeout: float = 10.0  # seconds to send a request (then 408), and again to wait for its answer (then 503)
    max_unfinished: int = 64  # requests whose body is on its way; one more, and the oldest of them gets 503
    max_connections: int = 256  # one more gets 503

    def __post_init__(self) -> None:
        require("be at least 1", queue=self.queue, max_body=self.max_body, max_nodes=self.max_nodes)
        require("be at least 1", max_unfinished=self.max_unfinished, max_connections=self.max_connections)
        require("not be negative", max_new_nodes=self.max_new_nodes, max_new_edges=self.max_new_edges)
        if not 0 < self.timeout <= _LONGEST:
            raise InputError(f"timeout must lie in (0, {_LONGEST:g}] seconds (got {self.timeout})")

    @property
    def in_flight(self) -> int:
        """Bytes of all bodies that wait or are computed, and again of all that are on their way."""
        return max(_IN_FLIGHT, FULL_BODIES * self.max_body)
