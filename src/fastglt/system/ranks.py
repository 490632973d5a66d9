"""Processes that work on one run together, started by torchrun; one process alone is a world of its own.

Whatever is added up travels in an order that does not depend on how many processes there are, so that every
process has the same numbers, bit for bit, and so has a run on another number of them.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from fastglt.errors import InputError, MachineError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Item = TypeVar("Item")

TIMEOUT = 600.0  # seconds after which a process that does not answer counts as lost
_TIMEOUT_NAME = "FASTGLT_RANK_TIMEOUT"


class LostRankError(MachineError):
    """A process that works on the same run has ended, or does not answer."""


@dataclass(eq=False)
class World:
    """The processes of a run, of which this is one; alone, everything is at once what it would be."""

    rank: int = 0
    size: int = 1
    traffic: dict[str, int] = field(default_factory=dict)  # bytes of each kind that this process has handed over
    epochs: int = 0  # that it has handed them over in

    @property
    def writes(self) -> bool:
        """Whether this is the process that writes files and talks."""
        return self.rank == 0

    def mine(self, items: Sequence[Item]) -> list[Item]:
        """This process's share of a list: the items are dealt out in consecutive runs, the first ranks first."""
        return self.dealt(items)[self.rank]

    def dealt(self, items: Sequence[Item]) -> list[list[Item]]:
        """Every process's share of a list."""
        return [list(items[first:last]) for first, last in self.bounds(len(items))]

    def bounds(self, count: int) -> list[tuple[int, int]]:
        """Where every process's share of so many items starts and stops."""
        few, more = divmod(count, self.size)
        return list(pairwise(rank * few + min(rank, more) for rank in range(self.size + 1)))

    def add_up(self, numbers: "Tensor", what: str) -> "Tensor":
        """The sum over all processes, in place; exact where all but one of them have zeros."""
        if self.size > 1:
            import torch.distributed

            self.count(what, numbers)
            with told():
                torch.distributed.all_reduce(numbers)
        return numbers

    def all_rows(
        self,
        own: "Tensor | None",
        counts: Sequence[int],
        what: str,
        device: "torch.device",
        room: "Callable[[Tensor, int], Tensor] | None" = None,
    ) -> "Tensor":
        """The rows of all processes one after the other, of each as many as `counts` says; None: it has none.

        `room` may say where so many rows like some are put.
        """
        if self.size == 1:
            assert own is not None
            return own
        import torch.distributed

        width = torch.tensor([0 if own is None else own.shape[1]])
        with told():
            torch.distributed.broadcast(width, 0)
            like = torch.empty((0, int(width)), dtype=torch.float32, device=device)
            rows = like.new_empty((sum(counts), int(width))) if room is None else room(like, sum(counts))
            for rank, part in enumerate(torch.split(rows, list(counts))):
                if rank == self.rank and own is not None:
                    part.copy_(own)
                    self.count(what, part)
                if len(part):
                    torch.distributed.broadcast(part, rank)
        return rows

    def from_first(self, tensors: "Mapping[str, Tensor] | None", meta: Any) -> "tuple[dict[str, Tensor], Any]":
        """Tensors and plain values as the first process has them."""
        if self.size == 1:
            return dict(tensors or {}), meta
        import torch

        from fastglt.system.container import read_meta, to_bytes

        there = {name: value.detach().cpu().contiguous() for name, value in (tensors or {}).items()}
        kinds = {name: (str(value.dtype).partition(".")[2], list(value.shape)) for name, value in there.items()}
        content = to_bytes({}, {"value": meta, "tensors": kinds}) if self.writes else b""
        length = self._handed(torch.tensor([len(content)]))
        blob = torch.zeros(int(length), dtype=torch.uint8)
        if self.writes:
            blob.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        found = read_meta(self._handed(blob).numpy().tobytes())
        for name, (kind, shape) in found["tensors"].items():
            part = there[name] if self.writes else torch.empty(shape, dtype=getattr(torch, kind))
            there[name] = part
            self._handed(part.view(-1).view(torch.uint8))
        return there, found["value"]

    def _handed(self, numbers: "Tensor") -> "Tensor":
        """Numbers of the first process, put in place in the others."""
        import torch.distributed

        if self.writes:
            self.count("start", numbers)
        if numbers.numel():
            with told():
                torch.distributed.broadcast(numbers, 0)
        return numbers

    def of_all(self, number: float) -> list[float]:
        """A number of every process."""
        if self.size == 1:
            return [number]
        import torch.distributed

        found = torch.zeros(self.size, dtype=torch.float64)
        found[self.rank] = number
        with told():
            torch.distributed.all_reduce(found)
        return [float(each) for each in found.tolist()]

    def report(self, peak: int) -> dict[str, Any]:
        """Bytes that each process has handed over in an epoch, by kind, and the most memory that it has had."""
        kinds = ("gradients", "edges", "rows", "masks")
        sent = {kind: self.of_all(self.traffic.get(kind, 0) / max(1, self.epochs)) for kind in kinds}
        return {
            "processes": self.size,
            "bytes_per_epoch": {kind: [round(each) for each in found] for kind, found in sent.items()},
            "peak_bytes": [round(each) for each in self.of_all(peak)],
        }

    def count(self, what: str, numbers: "Tensor") -> None:
        """Note what this process hands over."""
        self.traffic[what] = self.traffic.get(what, 0) + numbers.numel() * numbers.element_size()


_worlds = [World()]
_stores: list[Any] = []  # where processes leave notes for each other, kept by torchrun itself


def world() -> World:
    """The world that this process is in now."""
    return _worlds[-1]


def started() -> tuple[int, int]:
    """This process's rank and how many there are, as torchrun has started them; (0, 1) without it."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


@contextlib.contextmanager
def joined() -> Iterator[World]:
    """Meet the other processes that torchrun has started, and part from them at the end; alone, do nothing."""
    if started()[1] == 1:
        yield world()
        return
    import torch.distributed
    from torch.distributed.rendezvous import rendezvous

    timeout = timedelta(seconds=_timeout())
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with told():
        store, rank, size = next(rendezvous("env://", timeout=timeout))
        _stores.append(store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        torch.distributed.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
    _worlds.append(World(rank=rank, size=size))
    try:
        yield world()
    finally:
        _worlds.pop()
        with contextlib.suppress(RuntimeError):
            torch.distributed.destroy_process_group()


def tells() -> bool:
    """Whether this process is the first to tell what went wrong: of several, one message is enough."""
    if not _stores:
        return started()[0] == 0
    key = f"fastglt-told-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    try:
        return bool(_stores[-1].add(key, 1) == 1)
    except RuntimeError:
        return started()[0] == 0


def _timeout() -> float:
    text = os.environ.get(_TIMEOUT_NAME, "")
    try:
        found = float(text) if text else TIMEOUT
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise InputError(f"{_TIMEOUT_NAME} must be a number of seconds (got '{text}')")
    return found


@contextlib.contextmanager
def told() -> Iterator[None]:
    """A process that is lost ends the others with one message."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, MachineError):
            raise
        reason = " ".join(str(error).partition("] ")[2].split())[:80] or type(error).__name__
        raise LostRankError(
            f"another process of this run has ended or does not answer ({reason}); "
            "the same command goes on from the last checkpoint"
        ) from None
