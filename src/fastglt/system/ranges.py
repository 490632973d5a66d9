"""A vector of which every process owns consecutive elements, and what travels between their owners.

Alone, a process owns everything and nothing travels. Broadcasts, messages from one process to another and exchanges
of lists are used, because gloo has them for uneven sizes: its gathers want equal ones, and its `reduce_scatter` is
a sum for all of them, of which most is thrown away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from fastglt.system.ranks import World, told


@dataclass(frozen=True, eq=False)
class Ranges:
    """Which process owns which elements of vectors of this size.

    >>> Ranges(5, World(rank=1, size=2)).bounds, Ranges(5).alone
    ([(0, 3), (3, 5)], True)
    """

    size: int
    world: World = field(default_factory=World)

    @property
    def alone(self) -> bool:
        """Whether this process owns everything."""
        return self.world.size == 1

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """Where each process's elements start and stop."""
        return self.world.bounds(self.size)

    @property
    def mine(self) -> slice:
        """This process's elements."""
        return slice(*self.bounds[self.world.rank])

    def own(self, vector: Tensor) -> Tensor:
        """This process's elements of a vector; a vector of just these stays as it is."""
        mine = self.mine
        return vector if vector.numel() == mine.stop - mine.start else vector[mine]

    def fill(self, vector: Tensor, what: str) -> Tensor:
        """Hand this process's elements of a vector to all others and take theirs, in place."""
        if not self.alone:
            self.world.count(what, vector[self.mine])
            with told():
                for rank, (start, stop) in enumerate(self.bounds):
                    if start < stop:
                        torch.distributed.broadcast(vector[start:stop], rank)
        return vector

    def whole(self, own: Tensor, what: str) -> Tensor:
        """The vector of which every process has its own elements."""
        if self.alone:
            return own
        found = own.new_empty(self.size)
        found[self.mine] = own
        return self.fill(found, what)

    def whole_mask(self, own: Tensor, what: str) -> Tensor:
        """The boolean vector, on the CPU, of which every process has its own elements; eight travel as a byte."""
        if self.alone:
            return own
        found = torch.empty(self.size, dtype=torch.bool)
        for rank, (start, stop) in enumerate(self.bounds):
            bits = torch.empty((stop - start + 7) // 8, dtype=torch.uint8)
            if rank == self.world.rank:
                bits = torch.from_numpy(np.packbits(own.numpy()))
                self.world.count(what, bits)
            if len(bits):
                with told():
                    torch.distributed.broadcast(bits, rank)
                found[start:stop] = torch.from_numpy(np.unpackbits(bits.numpy(), count=stop - start)).bool()
        return found

    def to_owners(self, lists: Sequence[tuple[Tensor, Tensor]], like: Tensor, what: str) -> tuple[Tensor, Tensor]:
        """Numbers for some elements go to those who own them.

        Each list has places, ascending, and numbers like `like`. Returns the places, counted from this process's
        first one, and the numbers that have come from all processes.
        """
        starts, longest = [start for start, _ in self.bounds], max(stop - start for start, stop in self.bounds)
        kind = torch.int32 if longest < 2**31 else torch.int64
        pieces: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in starts]
        for places, numbers in lists:
            cuts = torch.searchsorted(places, places.new_tensor(starts[1:])).tolist()
            split = zip(places.tensor_split(cuts), numbers.tensor_split(cuts), strict=True)
            for piece, start, (here, there) in zip(pieces, starts, split, strict=True):
                piece[0].append((here - start).to(kind))
                piece[1].append(there)
        places = torch.cat([like.new_empty(0, dtype=kind), *(part for piece in pieces for part in piece[0])])
        numbers = torch.cat([like.new_empty(0), *(part for piece in pieces for part in piece[1])])
        going = torch.tensor([sum(map(len, piece[0])) for piece in pieces])
        coming = self._exchanged(going, [1] * len(starts), [1] * len(starts), "start").tolist()
        found = [self._exchanged(part, going.tolist(), coming, what) for part in (places, numbers)]
        return found[0].long(), found[1]

    def _exchanged(self, sent: Tensor, going: list[int], coming: list[int], what: str) -> Tensor:
        """What the processes have for this one: so many elements go to each, so many come from each."""
        self.world.count(what, sent)
        found = sent.new_empty(sum(coming))
        with told():
            torch.distributed.all_to_all_single(found, sent, coming, going)
        return found

    def to_first(self, own: Tensor) -> Tensor:
        """In the first process the vector of which each has its own elements, on the CPU; in others their own."""
        if self.alone:
            return own
        own = own.detach().cpu().contiguous()
        if not self.world.writes:
            self.world.count("checkpoints", own)
            with told():
                torch.distributed.send(own, 0)
            return own
        found = own.new_empty(self.size)
        found[self.mine] = own
        with told():
            for rank, (start, stop) in enumerate(self.bounds[1:], 1):
                torch.distributed.recv(found[start:stop], rank)
        return found

    def from_first(self, vector: Tensor | None, kind: torch.dtype) -> Tensor:
        """This process's elements of a vector that the first process has, on the CPU."""
        if self.world.writes:
            assert vector is not None
            with told():
                for rank, (start, stop) in enumerate(self.bounds[1:], 1):
                    torch.distributed.send(vector[start:stop].contiguous(), rank)
            return vector[self.mine].clone()
        own = torch.empty(self.mine.stop - self.mine.start, dtype=kind)
        with told():
            torch.distributed.recv(own, 0)
        return own
