"""Sorting more numbers than memory holds: sorted runs on disk, then merged a range at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fastglt.data.base import Ints, sorted_distinct
from fastglt.data.disk.layout import Array, release
from fastglt.system.storage import disk_errors

_SAMPLES = 256  # of each run, by which ranges are chosen


class Runs:
    """Sorted runs of distinct numbers in a folder; each is there whole or not at all, so that a kill loses one.

    >>> import tempfile
    >>> runs = Runs(Path(tempfile.mkdtemp()))
    >>> runs.add(0, np.array([5, 3, 5])), runs.add(1, np.array([4, 3]))
    (None, None)
    >>> [part.tolist() for part in runs.merged(3)]
    [[3], [4], [5]]
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with disk_errors(folder, "create"):
            folder.mkdir(parents=True, exist_ok=True)

    def has(self, number: int) -> bool:
        """Whether a run is there."""
        return self._file(number).exists()

    def add(self, number: int, keys: Ints) -> None:
        """Sort numbers, which are changed by that, and keep the distinct ones as a run."""
        path, torn = self._file(number), self._folder / "torn.npy"
        with disk_errors(path, "write"):
            np.save(torn, sorted_distinct(keys))
            os.replace(torn, path)

    def merged(self, most: int) -> Iterator[Ints]:
        """All numbers, sorted and each once, in pieces that hold about so many at most."""
        runs = [self._opened(path) for path in sorted(self._folder.glob("run-*.npy"))]
        runs = [run for run in runs if len(run)]
        places = [0] * len(runs)
        for bound in _bounds(runs, max(1, most - len(runs))):
            ends = [len(run) if bound is None else int(np.searchsorted(run, bound)) for run in runs]
            pieces = [run[place:end] for run, place, end in zip(runs, places, ends, strict=True)]
            places = ends
            found = sorted_distinct(np.concatenate(pieces)) if pieces else np.empty(0, dtype=np.int64)
            for run in runs:
                release(run)
            if len(found):
                yield found

    def remove(self) -> None:
        """Remove the runs."""
        for path in self._folder.glob("*.npy"):
            path.unlink()
        self._folder.rmdir()

    @property
    def total(self) -> int:
        """Numbers in all runs together, repeats counted."""
        return sum(len(self._opened(path)) for path in self._folder.glob("run-*.npy"))

    def _file(self, number: int) -> Path:
        return self._folder / f"run-{number:06}.npy"

    @staticmethod
    def _opened(path: Path) -> Array:
        found: Array = np.load(path, mmap_mode="r" if path.stat().st_size > 1 << 20 else None)
        return found


def _bounds(runs: list[Array], most: int) -> list[int | None]:
    """Where pieces end, each with about so many numbers; None: at the end of all."""
    total = sum(map(len, runs))
    if total <= most:
        return [None]
    step = [max(1, min(len(run) // _SAMPLES, most // (2 * len(runs)))) for run in runs]
    samples = np.concatenate([run[::each] for run, each in zip(runs, step, strict=True)])
    weights = np.concatenate([np.full(len(run[::each]), each) for run, each in zip(runs, step, strict=True)])
    order = np.argsort(samples, kind="stable")
    piece = np.cumsum(weights[order]) // max(1, most // 2)
    firsts = np.flatnonzero(np.diff(piece)) + 1
    return [*(int(bound) for bound in np.unique(samples[order][firsts])), None]
