"""What the pages are made of, as it is now: a page is drawn anew when there is something new to draw."""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fastglt.pages import gather
from fastglt.pages.page import as_html, report_of
from fastglt.runs.progress import under_way

_MOST = 500  # runs under way that are told at a time
_BESIDE = ("", "-wal")  # SQLite's files


class Live:
    """Runs from stores and folders. Pages are drawn by one thread at a time, and kept until something changes."""

    def __init__(
        self, places: Sequence[Path], *, data_root: Path | None = None, dataset: str | None = None
    ) -> None:
        self.places, self._data_root, self._dataset = list(places), data_root, dataset
        self._lock, self._drawn = threading.Lock(), ("", "")  # version and page

    @property
    def version(self) -> str:
        """A digest of what was last changed, and when; equal as long as nothing is."""
        facts = [(str(path), *_changed(path)) for place in self.places for path in _files(place)]
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    def page(self) -> str:
        """The page of all finished runs."""
        with self._lock:
            version = self.version
            if self._drawn[0] != version:
                report = report_of(gather(self.places), data_root=self._data_root, dataset=self._dataset)
                self._drawn = version, as_html(report, live=version)
            return self._drawn[1]

    def progress(self) -> dict[str, Any]:
        """Runs that are not finished, and which version of the page there would be now."""
        roots = dict.fromkeys(root.resolve() for place in self.places for root in _roots(place))
        runs = {one.folder: one for root in roots if root.is_dir() for one in under_way(root)}
        shown = [asdict(one) for one in sorted(runs.values(), key=lambda one: one.order)]
        return {"version": self.version, "runs": shown[:_MOST], "left_out": max(0, len(shown) - _MOST)}


def _roots(place: Path) -> list[Path]:
    """The folders below which a place's runs go on: a store lies beside them, or above."""
    return [place, place.parent] if place.is_dir() else [place.parent, place.parent / "runs", Path("runs")]


def _files(place: Path) -> list[Path]:
    """The files that change when a run of a place ends."""
    if place.is_dir():
        return sorted([*place.glob("metrics.json"), *place.glob("*/metrics.json")])
    return [place.with_name(place.name + ending) for ending in _BESIDE]


def _changed(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
