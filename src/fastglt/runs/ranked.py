"""A run by several processes, which torchrun has started: the first of them has the folder, all have the state.

Every process computes the same run. The first one reads checkpoints and tells the others what is in them, so that
the others need neither its disk nor the number of processes that wrote them; it alone writes, while the others lend
it what they alone have.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from fastglt import kernels
from fastglt.errors import InputError
from fastglt.runs.checkpoints import Stored
from fastglt.runs.run_folder import RunFolder
from fastglt.system import ranks
from fastglt.tickets.phases import Journal, PhaseResult
from fastglt.training.checkpoint import lend, owned, pack_snapshot, unpack_snapshot
from fastglt.training.loop import Training
from fastglt.training.records import EpochRecord, Snapshot


class RankedJournal(Journal):
    """A run's folder as all its processes see it; only the first one has it."""

    def __init__(self, folder: RunFolder | None) -> None:
        self._folder = folder
        self.stop = False  # set it, in any process, to stop all of them after the epoch that is running

    @contextmanager
    def open(self) -> Iterator[dict[str, Any] | None]:
        """Claim the folder; gives the metrics if the run is finished, to helpers none of them."""
        world = ranks.world()
        with nullcontext(None) if self._folder is None else self._folder.open() as finished:
            table = kernels.table().to_dict()
            _, told = world.from_first(None, {"finished": finished is not None, "kernels": table})
            if world.writes:
                yield finished
                return
            with kernels.use_table(kernels.Table.from_dict(told["kernels"])):
                yield {} if told["finished"] else None

    def finished(self, phase: str) -> PhaseResult | None:
        """See `Journal.finished`."""
        found = None if self._folder is None else self._folder.finished(phase)
        tensors, meta = ranks.world().from_first(*_packed(found))
        return found or (None if meta is None else _unpacked(tensors, meta))

    def resume(self, phase: str, training: Training) -> float:
        """See `Journal.resume`; of what is each process's own, it is given no more."""
        found = None if self._folder is None else self._folder.stored(phase)
        own, sent, told = {}, dict[str, Tensor](), None
        if found is not None:
            names = owned(training, found.tensors)
            own = {name: found.tensors.pop(name) for name in names}
            sent, rounds = _snapshots(found.rounds)
            sent |= _below("training", found.tensors)
            told = {"place": found.place, "state": found.state, "seconds": found.seconds}
            told |= {"rounds": rounds, "own": names}
        tensors, told = ranks.world().from_first(sent, told)
        if told is None:
            return 0.0
        state = _within("training", tensors)
        for name in told["own"]:
            state[name] = training.ranges.from_first(own.pop(name, None), torch.float32)
        snapshots = _read_snapshots(tensors, told["rounds"])
        Stored(told["place"], state, told["state"], snapshots, told["seconds"]).bring(training)
        return float(told["seconds"])

    def after_epoch(self, phase: str, training: Training, seconds: float) -> None:
        """See `Journal.after_epoch`; a wish to stop that one process has heard of is all processes'."""
        folder, world = self._folder, ranks.world()
        stop = any(world.of_all(float(self.stop)))
        if folder is not None:
            folder.stop = stop
            folder.note(phase, training, seconds)
        if any(world.of_all(float(folder is not None and folder.is_due))):
            if folder is None:
                lend(training)
            else:
                folder.write(phase, training, seconds)
        if stop:
            raise KeyboardInterrupt(f"{phase}, epoch {training.epoch}")

    def finish(self, phase: str, result: PhaseResult) -> None:
        """See `Journal.finish`."""
        if self._folder is not None:
            self._folder.finish(phase, result)


def check_ranks(size: int, *, parts: int | None, shares: int | None, exact: bool = False) -> None:
    """Refuse more processes than can be given something to do."""
    if exact and size > 1:
        raise InputError(f"exact must be computed by one process (got {size}); leave torchrun or exact out")
    if size > (parts or 1):
        rule = f"parts must be at least the number of processes, {size}"
        raise InputError(f"{rule} (got {parts or 1}); each process computes on parts of the graph")
    if shares is not None and size > shares:
        rule = f"shares must be at least the number of processes, {size}"
        raise InputError(f"{rule} (got {shares}); leave it out, or start fewer processes")


def _packed(result: PhaseResult | None) -> tuple[dict[str, Tensor], Any]:
    if result is None:
        return {}, None
    tensors, snapshots = _snapshots((result.best, *result.rounds))
    history = [asdict(record) for record in result.history]
    return tensors, {"snapshots": snapshots, "history": history, "seconds": result.seconds}


def _unpacked(tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> PhaseResult:
    best, *rounds = _read_snapshots(tensors, meta["snapshots"])
    history = tuple(EpochRecord(**record) for record in meta["history"])
    return PhaseResult(best=best, history=history, seconds=meta["seconds"], rounds=tuple(rounds))


def _snapshots(snapshots: Any) -> tuple[dict[str, Tensor], list[Any]]:
    tensors, metas = dict[str, Tensor](), list[Any]()
    for index, snapshot in enumerate(snapshots):
        found, meta = pack_snapshot(snapshot)
        tensors |= _below(f"snapshot-{index}", found)
        metas.append(meta)
    return tensors, metas


def _read_snapshots(tensors: Mapping[str, Tensor], metas: list[Any]) -> list[Snapshot]:
    return [unpack_snapshot(_within(f"snapshot-{index}", tensors), meta) for index, meta in enumerate(metas)]


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}:{name}": value for name, value in tensors.items()}


def _within(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}:"
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
