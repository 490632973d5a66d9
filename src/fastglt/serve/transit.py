"""What is on its way, in or out, at the speed of clients: so much of it, and the oldest makes room."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class CrowdedError(TimeoutError):
    """A transfer was given up before its time, because newer ones needed its room."""


class Transit:
    """Transfers with a bound on their number and on their bytes.

    Nobody can tell a slow client from one that means harm, but either has been here for longer than one that is
    about to finish. So the oldest is given up when there is no room, and nobody is kept waiting.
    """

    def __init__(self, *, most: int, room: int) -> None:
        self._most, self._room = most, room
        self._transfers: dict[Transfer, None] = {}  # oldest first
        self._size = 0

    @asynccontextmanager
    async def transfer(self, seconds: float) -> AsyncIterator["Transfer"]:
        """One transfer: TimeoutError after so many seconds, CrowdedError if it has to make room before."""
        given_up = False
        try:
            async with asyncio.timeout(seconds) as deadline:
                transfer = Transfer(self, deadline)
                self._transfers[transfer] = None
                self.make_room()
                try:
                    yield transfer
                finally:
                    given_up = transfer not in self._transfers
                    self._forget(transfer)
        except CrowdedError:
            raise
        except TimeoutError:
            if given_up:
                raise CrowdedError from None
            raise

    def grow(self, size: int) -> None:
        """So many bytes more are here."""
        self._size += size
        self.make_room()

    def make_room(self) -> None:
        """Give up the oldest until the rest fits."""
        while len(self._transfers) > self._most or self._size > self._room:
            oldest = next(iter(self._transfers))
            self._forget(oldest)
            oldest.end()

    def _forget(self, transfer: "Transfer") -> None:
        if transfer in self._transfers:
            del self._transfers[transfer]
            self._size -= transfer.size


class Transfer:
    """One body or answer on its way."""

    def __init__(self, transit: Transit, deadline: asyncio.Timeout) -> None:
        self._transit, self._deadline = transit, deadline
        self._ended = False
        self.size = 0

    def grow(self, size: int) -> None:
        """So many bytes more of it are here; CrowdedError if it has been given up."""
        if not self._ended:
            self.size += size
            self._transit.grow(size)
        if self._ended:
            raise CrowdedError

    def end(self) -> None:
        """Its time is over now."""
        self._ended = True
        if not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time())
