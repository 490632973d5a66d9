"""From a source to a prepared graph, in bounded memory: killed at any moment, the same command goes on.

All is made in a folder of another name, step by step; a step that is done is not done again, and the folder gets
its own name when it is whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fastglt import __version__
from fastglt.data.disk.external_sort import Runs
from fastglt.data.disk.fingerprints import features_fingerprint, graph_fingerprint
from fastglt.data.disk.layout import FORMAT, PARTIAL, SUFFIX, VERSION, Manifest, create, entry_of, file_of, release
from fastglt.data.disk.rows import FEWEST, write_rows
from fastglt.data.disk.streams import Stream
from fastglt.errors import InputError, MachineError
from fastglt.system import plain_json
from fastglt.system.storage import disk_errors, open_lock, read_bytes, write_atomically

Tell = Callable[[str], None]
_PROGRESS, _NAMES = "progress.json", "names.json"
_LEAST = 64 << 20  # bytes
_TELL_EVERY = 5.0  # seconds
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def read_memory(text: str) -> int:
    """Bytes, from a number with a unit.

    >>> read_memory("2GB"), read_memory("500 MB")
    (2147483648, 524288000)
    """
    plain = text.strip().upper().removesuffix("B").removesuffix("I").strip()
    number, unit = (plain[:-1], plain[-1:]) if plain[-1:] in "KMGT" and plain else (plain, "")
    try:
        found = int(float(number) * _UNITS[unit])
    except ValueError:
        raise InputError(f"memory must be a size such as 2GB (got '{text}')") from None
    if found < _LEAST:
        raise InputError(f"memory must be 64MB or more (got '{text}')")
    return found


def prepare(
    open_source: Callable[[], Stream], out: Path, *, memory: int, directed: bool, asked: str, tell: Tell
) -> Manifest:
    """Make the folder `out`; `asked` is what the user called the source.

    Sorting takes about as much memory as it may; what a source itself must hold in memory is not counted.
    """
    if out.suffix.lower() != SUFFIX:
        raise InputError(f"a prepared graph's folder must end in {SUFFIX} (got '{out}')")
    if out.exists():
        raise InputError(f"'{out}' is there already; remove it, or choose another --out")
    source, work = open_source(), out.with_name(out.name + PARTIAL)
    with disk_errors(work, "create"):
        work.mkdir(parents=True, exist_ok=True)
    with _alone(work):
        manifest = _Preparation(source, work, memory, directed, asked, tell).run()
        with disk_errors(out, "write"):
            (work / _PROGRESS).unlink(missing_ok=True)
            os.replace(work, out)
    with contextlib.suppress(OSError):
        (out / ".lock").unlink()
    return manifest


@contextlib.contextmanager
def _alone(work: Path) -> Iterator[None]:
    with os.fdopen(open_lock(work / ".lock"), "r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MachineError(f"another process is preparing '{work}'; wait for it") from None
        yield


class _Preparation:
    """The steps, and which of them are done."""

    def __init__(self, source: Stream, work: Path, memory: int, directed: bool, asked: str, tell: Tell) -> None:
        self.source, self.work, self.memory, self.directed, self._asked = source, work, memory, directed, asked
        self._tell, self._told = tell, time.monotonic()
        self.nodes = len(source.labels)
        if 2 * self.nodes**2 >= 2**63:
            raise InputError(f"a graph to prepare must have fewer than 2^31 nodes (got {self.nodes:,})")
        files = [[str(path.absolute()), path.stat().st_size, path.stat().st_mtime_ns] for path in source.files]
        self._piece = max(FEWEST, memory // 64)  # edges in a sorted run: it decides where each of them begins
        said = {"asked": asked, "directed": directed, "files": files, "piece": self._piece}
        self._identity = {"format": [FORMAT, VERSION], **said}
        self._done = self._resume()

    def _resume(self) -> dict[str, Any]:
        """What an earlier process has done of the very same; all else is removed."""
        path = self.work / _PROGRESS
        try:
            found = plain_json.loads(read_bytes(path, most=1 << 24)) if path.is_file() else None
        except ValueError:
            found = None
        if isinstance(found, dict) and found.get("identity") == self._identity:
            if found["done"]:
                self._tell(f"goes on after: {', '.join(found['done'])}")
            return dict(found["done"])
        for old in self.work.iterdir():
            if old.name != ".lock":
                shutil.rmtree(old) if old.is_dir() else old.unlink()
        self._write_progress({})
        return {}

    def _write_progress(self, done: dict[str, Any]) -> None:
        write_atomically(self.work / _PROGRESS, json.dumps({"identity": self._identity, "done": done}).encode())

    def run(self) -> Manifest:
        """All steps, and the manifest."""
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "nodes": self._write_nodes,
            "sorted runs": self._write_runs,
            "edges": self._write_edges,
            "rows": self._write_rows,
            "fingerprints": self._find_fingerprints,
        }
        for name, step in steps.items():
            if name not in self._done:
                self._say(f"{name} …", now=True)
                with disk_errors(self.work, "write"):
                    self._done[name] = step()
                self._write_progress(self._done)
        shutil.rmtree(self.work / "runs", ignore_errors=True)
        self._say("checksums …", now=True)
        return self._finish()

    def _say(self, line: str, *, now: bool = False) -> None:
        if now or time.monotonic() - self._told > _TELL_EVERY:
            self._told = time.monotonic()
            self._tell(line)

    def _write_nodes(self) -> dict[str, Any]:
        """Features, labels, the split and the names."""
        source, work = self.source, self.work
        np.save(file_of(work, "y"), source.labels)
        for name, mask in zip(("train_mask", "val_mask", "test_mask"), source.masks or (), strict=False):
            np.save(file_of(work, name), mask)
        if source.names is not None:
            names = {"nodes": source.names.nodes, "classes": source.names.classes}
            write_atomically(work / _NAMES, json.dumps(names).encode())
        if source.sparse is not None:
            for name, part in zip(("x_indptr", "x_indices", "x_values"), source.sparse, strict=True):
                np.save(file_of(work, name), part)
            return {}
        x, at = create(work, "x", np.float32, (self.nodes, source.features)), 0
        for rows in source.rows():
            if at + len(rows) > self.nodes:
                raise InputError(f"{self._asked}: there must be features of {self.nodes:,} nodes (got more)")
            _check_finite(rows, at)
            x[at : at + len(rows)] = rows
            at += len(rows)
            release(x)
            self._say(f"features of {at:,} of {self.nodes:,} nodes")
        if at != self.nodes:
            raise InputError(f"{self._asked}: there must be features of {self.nodes:,} nodes (got {at:,})")
        return {}

    def _write_runs(self) -> dict[str, Any]:
        """Edges as numbers, (low · nodes + high) · 2 + direction, sorted in pieces that memory holds."""
        runs, total = Runs(self.work / "runs"), 0
        for number, (source, target) in enumerate(self.source.edges(self._piece)):
            total += len(source)
            if not runs.has(number):
                backward = np.zeros(len(source), dtype=np.bool_) if self.directed else source > target
                low, high = np.where(backward, target, source), np.where(backward, source, target)
                runs.add(number, (low * self.nodes + high) * 2 + backward)
            self._say(f"{total:,} edges read")
        return {"listed": total}

    def _write_edges(self) -> dict[str, Any]:
        """Merge the runs: distinct edges in order, self-loops apart."""
        runs, loops, last, given, count = Runs(self.work / "runs"), [np.empty(0, np.int64)], -1, 0, 0
        with (self.work / "low.tmp").open("wb") as low, (self.work / "high.tmp").open("wb") as high:
            for keys in runs.merged(max(FEWEST, self.memory // 48)):
                given += len(keys)
                pairs = keys >> 1
                fresh = np.diff(pairs, prepend=last) != 0
                last, pairs = int(pairs[-1]), pairs[fresh]
                first, second = np.divmod(pairs, self.nodes)
                loop = first == second
                loops.append(first[loop])
                (first[~loop]).tofile(low)
                (second[~loop]).tofile(high)
                count += len(first) - int(loop.sum())
                self._say(f"{count:,} distinct edges")
        edges = create(self.work, "edges", np.int64, (2, count))
        for row, name in enumerate(("low.tmp", "high.tmp")):
            step, at = 1 << 22, 0
            with (self.work / name).open("rb") as file:
                while len(part := np.fromfile(file, np.int64, step)):
                    edges[row, at : at + len(part)] = part
                    at += len(part)
                    release(edges)
            (self.work / name).unlink()
        np.save(file_of(self.work, "loops"), np.concatenate(loops))
        found = int(sum(map(len, loops)))
        columns = count * (1 if self.directed else 2) + found
        return {"edges": count, "loops": found, "columns": columns, "reversed": columns - given}

    def _write_rows(self) -> dict[str, Any]:
        write_rows(self.work, self.nodes, directed=self.directed, memory=self.memory, tell=self._say)
        for name, values in self.source.values.items():
            np.save(file_of(self.work, name), values)
        return {}

    def _find_fingerprints(self) -> dict[str, Any]:
        nonzero, features = features_fingerprint(self.work, self.nodes, self.source.features)
        graph = graph_fingerprint(self.work, self.nodes, directed=self.directed)
        return {"graph": graph, "features": features, "nonzero": nonzero}

    def _finish(self) -> Manifest:
        names = sorted(path.stem for path in self.work.glob("*.npy"))
        counts, digests = self._done["edges"], dict(self._done["fingerprints"])
        source = self.source
        manifest = Manifest(
            name=source.name,
            metric=source.metric or ("accuracy" if source.labels.ndim == 1 else "roc_auc"),
            directed=self.directed,
            nodes=self.nodes,
            edges=counts["edges"],
            loops=counts["loops"],
            columns=counts["columns"],
            features=source.features,
            nonzero=digests.pop("nonzero"),
            reversed_edges=counts["reversed"] if source.reversed_edges is None else source.reversed_edges,
            split=source.split,
            fingerprints=digests,
            arrays={name: entry_of(self.work, name) for name in names},
            source={"asked": self._asked, "listed": self._done["sorted runs"]["listed"], "fastglt": __version__},
        )
        manifest.write(self.work)
        return manifest


def _check_finite(rows: Any, first: int) -> None:
    if not bool(np.isfinite(rows).all()):
        row, column = np.argwhere(~np.isfinite(rows))[0]
        where = f"node {first + row}, feature {column}"
        raise InputError(f"features must be finite in float32 (got {rows[row, column]} at {where}); correct it")
