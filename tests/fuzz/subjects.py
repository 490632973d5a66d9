"""The kinds of files that fastglt reads, each with a small one of its own."""

import functools
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import typer
from rich.console import Console

from fastglt import GCN, Mask, Masks, Ticket
from fastglt.cli.commands import show
from fastglt.data.npz_file import read_npz
from fastglt.errors import InputError
from fastglt.runs.checkpoints import Checkpoints, DamagedError
from fastglt.runs.run_folder import RunFolder
from fastglt.runs.store import Entry, Store, key_of
from fastglt.system.container import read_meta, read_tensors, to_bytes
from fastglt.tickets.phases import run_phase
from fastglt.tickets.ticket import state_hash
from fastglt.tickets.ticket_file import decode, encode
from tests.fuzz.campaign import Subject
from tests.fuzz.mutation import as_json, changed, damaged
from tests.helpers import method_of, training_of

_NOWHERE = Path("nowhere")
_ZEROS = b"0" * 64


class TicketFile:
    """A ticket with a damage: its checksum tells."""

    name, is_checked = "tickets", True

    def __init__(self, folder: Path) -> None:
        self.content = encode(small_ticket())

    def mutate(self, rng: Random) -> bytes:
        return damaged(self.content, rng)

    def look(self, content: bytes) -> bool:
        return encode(decode(content, "t", initial_file=_NOWHERE)) == self.content


class ForgedTicket:
    """A ticket that somebody wrote, with a checksum that fits; what can be read must be shown."""

    name, is_checked = "tickets, forged", False

    def __init__(self, folder: Path) -> None:
        self.content = encode(small_ticket())
        self._path = folder / "t.safetensors"
        length = int.from_bytes(self.content[:8], "little")
        self._outer = json.loads(self.content[8 : 8 + length])
        self._header = json.loads(self._outer.pop("__metadata__")["fastglt"])
        self._data = self.content[8 + length :]

    def mutate(self, rng: Random) -> bytes:
        header, outer, data = {**self._header, "checksum": "0" * 64}, self._outer, self._data
        if rng.random() < 0.8:
            header = changed(header, rng)
        if rng.random() < 0.3:
            outer = changed(outer, rng)
        if rng.random() < 0.1:
            data = damaged(data, rng)
        meta = {"__metadata__": {"fastglt": as_json(header).decode()}}
        text = as_json({**meta, **outer} if isinstance(outer, dict) else outer)
        blank = len(text).to_bytes(8, "little") + text + data
        return blank.replace(_ZEROS, hashlib.sha256(blank).hexdigest().encode(), 1)

    def look(self, content: bytes) -> bool:
        found = decode(content, "t", initial_file=_NOWHERE)
        dict(found.weights)
        self._path.write_bytes(content)
        facts = show._facts(found, self._path)
        with _quiet():
            show._print(facts)
        json.dumps(facts)
        return True


class CheckpointFile:
    """A checkpoint with a damage: its seal tells."""

    name, is_checked = "checkpoints", True

    def __init__(self, folder: Path) -> None:
        part, done = checkpoints(folder / "made")
        self._files, self._folder = (part, done), Checkpoints(folder)
        self._path = folder / "search.part"
        self._whole = {self._read(content) for content in self._files}

    def _read(self, content: bytes) -> bytes:
        self._path.write_bytes(content)
        try:
            found = self._folder.read(self._path.name)
        except DamagedError as error:
            raise InputError(str(error)) from None
        assert found is not None
        return to_bytes(*found)

    def mutate(self, rng: Random) -> bytes:
        return damaged(rng.choice(self._files), rng)

    def look(self, content: bytes) -> bool:
        return self._read(content) in self._whole


class CheckpointOfBefore:
    """A checkpoint without a seal, or one that somebody wrote: the phase goes on or begins again, or it is told."""

    name, is_checked = "checkpoints, forged", False

    def __init__(self, folder: Path) -> None:
        _, done = checkpoints(folder / "made")
        content = done[40:]
        self._tensors, self._meta, self._content = read_tensors(content), read_meta(content), content
        self._folder = RunFolder(folder / "run", {})
        self._path = folder / "run" / "checkpoint" / "search.done"
        self._path.parent.mkdir(parents=True)

    def mutate(self, rng: Random) -> bytes:
        if rng.random() < 0.5:
            return damaged(self._content, rng)
        try:
            return to_bytes(self._tensors, changed(self._meta, rng))
        except UnicodeEncodeError:  # half of a pair
            return self._content

    def look(self, content: bytes) -> bool:
        self._path.write_bytes(content)
        if self._folder.finished("search") is None:
            raise InputError("told")
        return True


class StoreFile:
    """A results store with a damage: digests tell of changed rows and of lost ones."""

    name, is_checked = "stores", True

    def __init__(self, folder: Path) -> None:
        self._path = folder / "results.sqlite"
        store = Store(self._path)
        several = [
            {"dataset": "cora", "model": {"name": "gcn"}, "method": "ugs", "seed": seed} for seed in range(3)
        ]
        for settings in several:
            metrics = {"search_test": 0.75, "search_seconds": 1.5}
            store.record(
                Entry(key=key_of(settings), kind="ticket", command="find", settings=settings, metrics=metrics)
            )
        self._rows, self._key = store.rows(), key_of(several[-1])
        self._entry, self.content = store.find(self._key), self._path.read_bytes()
        self._used = [at for at, byte in enumerate(self.content) if byte]

    def mutate(self, rng: Random) -> bytes:
        """Most of a small store is empty: half of the damages are where something is.

        A file without a byte is a new store, and none that was damaged.
        """
        if rng.random() < 0.5:
            return damaged(self.content, rng) or self.content[:1]
        data = bytearray(self.content)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data[rng.choice(self._used)] ^= 1 << rng.randrange(8)
        return bytes(data)

    def look(self, content: bytes) -> bool:
        for end in ("-wal", "-shm", "-journal"):
            Path(f"{self._path}{end}").unlink(missing_ok=True)
        self._path.write_bytes(content)
        store = Store(self._path)
        return store.rows() == self._rows and store.find(self._key) in (self._entry, None)


class Archive:
    """A user's graph in a numpy archive with a damage: zip's own checksums tell."""

    name, is_checked = "npz", True

    def __init__(self, folder: Path) -> None:
        self._path, self._files = folder / "mine.npz", []
        nodes = np.arange(9)
        parts = {f"{part}_mask": nodes % 3 == at for at, part in enumerate(("train", "val", "test"))}
        edges = np.stack([nodes, (nodes + 1) % 9])
        self.arrays = {"edge_index": edges, "x": np.eye(9, 4, dtype=np.float32), "y": nodes % 2, **parts}
        for save in (np.savez, np.savez_compressed):
            save(self._path, allow_pickle=False, **self.arrays)
            self._files.append(self._path.read_bytes())
        self._whole = self._read(self._files[0])

    def _read(self, content: bytes) -> bytes:
        self._path.write_bytes(content)
        found = read_npz(self._path)
        masks = b"" if found.masks is None else b"".join(mask.tobytes() for mask in found.masks)
        parts = (found.features, found.labels, found.source, found.target)
        return b"".join(part.tobytes() for part in parts) + masks

    def mutate(self, rng: Random) -> bytes:
        return damaged(rng.choice(self._files), rng)

    def look(self, content: bytes) -> bool:
        return self._read(content) == self._whole


class ForgedArchive(Archive):
    """An archive whose checksums fit, with arrays that are any bytes."""

    name, is_checked = "npz, forged", False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with zipfile.ZipFile(io.BytesIO(self._files[0])) as archive:
            self._members = {name: archive.read(name) for name in archive.namelist()}

    def mutate(self, rng: Random) -> bytes:
        members, file = dict(self._members), io.BytesIO()
        name = rng.choice(list(members))
        members[name] = damaged(members[name], rng)
        with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return file.getvalue()

    def look(self, content: bytes) -> bool:
        self._read(content)
        return True


class Record:
    """run.json or metrics.json with a damage: digests tell."""

    name, is_checked = "run.json and metrics.json", True

    def __init__(self, folder: Path) -> None:
        self._folder, self._metrics = RunFolder(folder, {"dataset": "cora", "seed": 0}), {"seed": 0, "val": 0.5}
        with self._folder.open():
            self._folder.complete(self._metrics, {})
        self._files = {name: (folder / name).read_bytes() for name in ("run.json", "metrics.json", ".digests.json")}

    def mutate(self, rng: Random) -> bytes:
        name = rng.choice(list(self._files))
        return name.encode() + b"\n" + damaged(self._files[name], rng)

    def look(self, content: bytes) -> bool:
        name, _, text = content.partition(b"\n")
        for other, whole in self._files.items():
            (self._folder.path / other).write_bytes(text if other == name.decode() else whole)
        with self._folder.open() as finished:
            return finished == self._metrics


class RecordOfBefore(Record):
    """The same without digests."""

    name, is_checked = "run.json and metrics.json, forged", False

    def mutate(self, rng: Random) -> bytes:
        self._files.pop(".digests.json", None)
        (self._folder.path / ".digests.json").unlink(missing_ok=True)
        if rng.random() < 0.5:
            return super().mutate(rng)
        name = rng.choice(list(self._files))
        return name.encode() + b"\n" + as_json(changed(json.loads(self._files[name]), rng))

    def look(self, content: bytes) -> bool:
        super().look(content)
        return True


class Config:
    """A YAML file of options."""

    name, is_checked = "YAML configs", False

    def __init__(self, folder: Path) -> None:
        from fastglt.cli import app

        command: Any = typer.main.get_command(app)
        self._command, self._path = command.commands["find"], folder / "run.yaml"
        self.content = (
            b'model: gcn\nseed: 3\n"hidden": 16\noption: {ramp: 1, start: "random"}\nmethod: &a ugs\nlr: 1e-2\n'
        )

    def mutate(self, rng: Random) -> bytes:
        return damaged(self.content, rng)

    def look(self, content: bytes) -> bool:
        from fastglt.cli.shared.options import read_config

        self._path.write_bytes(content)
        read_config(typer.Context(self._command), self._path)
        return True


SUBJECTS: Mapping[str, tuple[Callable[[Path], Subject], float]] = {  # and their share of all files
    "tickets": (TicketFile, 0.25),
    "tickets, forged": (ForgedTicket, 0.03),
    "checkpoints": (CheckpointFile, 0.26),
    "checkpoints, forged": (CheckpointOfBefore, 0.05),
    "stores": (StoreFile, 0.2),
    "npz": (Archive, 0.15),
    "npz, forged": (ForgedArchive, 0.03),
    "run.json and metrics.json": (Record, 0.01),
    "run.json and metrics.json, forged": (RecordOfBefore, 0.01),
    "YAML configs": (Config, 0.01),
}


@functools.cache
def small_ticket() -> Ticket:
    """A ticket of a GCN with eight hidden units, as a search leaves it, without the search."""
    network = GCN(4, 3, 2)
    state = {name: value.clone() for name, value in network.state_dict().items()}
    masks = {name: Mask(value > 0) for name, value in state.items() if name.endswith("weight")}
    weights = {name: value * masks[name].kept if name in masks else value for name, value in state.items()}
    return Ticket(
        masks=Masks(edges=Mask([1, 0, 1, 1, 0]), weights=masks),
        weights=weights,
        soft_edge_mask=torch.tensor([0.5, 1.0, 2.0]),
        model=network.spec,
        config={"method": "fastglt", "options": {"ramp": 1.0}, "budget": {"lr": 0.01}, "metric": "accuracy"},
        seed=0,
        scores={"search_val": 0.5, "search_test": float("nan")},
        graph_fingerprint="g" * 64,
        feature_fingerprint="f" * 64,
        initial_hash=state_hash(state),
        initial_from="recipe",
        versions={"fastglt": "0.1.0"},
        load_initial=lambda: state,
    )


def checkpoints(folder: Path) -> tuple[bytes, bytes]:
    """What a real search leaves in its middle and at its end."""
    journal = RunFolder(folder, {}, checkpoint_every=0)
    part = b""

    def note(*_: object) -> None:
        nonlocal part
        part = (folder / "checkpoint" / "search.part").read_bytes()

    with journal.open():
        run_phase("search", training_of, method_of("fastglt", 0.5, 0.9), journal, note)
        return part, (folder / "checkpoint" / "search.done").read_bytes()


class _quiet:
    """What rich prints goes nowhere, and is made all the same."""

    def __enter__(self) -> None:
        self._before = Console.print
        nowhere = Console(file=io.StringIO(), width=100)
        Console.print = lambda _self, *parts, **options: self._before(nowhere, *parts, **options)  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        Console.print = self._before  # type: ignore[method-assign]
