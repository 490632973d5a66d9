"""Named sets that live in raw files: found in the user's folder, in our cache, or downloaded.

The layout and the addresses are PyG's, but the raw files are read where they lie and nothing is
ever written beside them: the user's folder may be read-only. Only downloads touch our own cache.
"""

from __future__ import annotations

import importlib
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from fastglt.data.base import Parts
from fastglt.errors import FastGLTError, InputError, MachineError
from fastglt.system.quiet import quiet_import
from fastglt.system.storage import cache_folder

DOWNLOAD_TIMEOUT = 30  # seconds without a byte


@dataclass(frozen=True, kw_only=True)
class RawFiles:
    """Raw files in PyG's layout and the function that reads them."""

    folder: str  # under the data root, such as "planetoid/Cora"; the files are in its raw/
    files: tuple[str, ...]
    pyg: str  # the class of torch_geometric.datasets that knows where to download them
    read: Callable[[Path, int], Parts]  # raw folder, split seed

    def where(self, root: Path | None) -> str:
        """Whether the files are at hand, in a few words."""
        if self._found_in(root):
            return f"in {root}"
        return "in cache" if self._complete(self._cached()) else "would be downloaded"

    def parts(self, root: Path | None, split_seed: int) -> Parts:
        """The set's arrays, from the user's folder, the cache or the network, in that order."""
        folder = self._found_in(root) or self._cached()
        if not self._complete(folder):
            self._download(root)
        try:
            return self.read(folder, split_seed)
        except (FastGLTError, MemoryError):
            raise
        except Exception as error:  # a damaged file can fail in any way
            raise InputError(
                f"{folder}: the raw files must be as their authors published them "
                f"(got {type(error).__name__}: {error}); replace them with fresh copies"
            ) from error

    def _found_in(self, root: Path | None) -> Path | None:
        if root is None:
            return None
        # A PyG user may point at Planetoid's own root, which has no "planetoid" folder above.
        places = (root / self.folder / "raw", root / Path(self.folder).name / "raw")
        return next(filter(self._complete, places), None)

    def _cached(self) -> Path:
        return cache_folder() / "data" / self.folder / "raw"

    def _complete(self, folder: Path) -> bool:
        return all(os.path.isfile(folder / file) for file in self.files)

    def _download(self, root: Path | None) -> None:
        """Fetch what the cache lacks; each file appears whole or not at all."""
        target = self._cached()
        with quiet_import():
            datasets = importlib.import_module("torch_geometric.datasets")
        base = getattr(datasets, self.pyg).url.rstrip("/")
        try:
            target.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".part-") as part:
                for file in self.files:
                    if not (target / file).is_file():
                        _fetch(f"{base}/{file}", Path(part) / file)
                        os.replace(Path(part) / file, target / file)
        except (OSError, HTTPException) as error:
            raise self._not_at_hand(root, error) from error

    def _not_at_hand(self, root: Path | None, error: Exception) -> MachineError:
        looked = "no data root was given" if root is None else f"looked in data root {root}"
        wanted = ", ".join(f"{self.folder}/raw/{file}" for file in self.files)
        return MachineError(
            f"the raw files of {self.folder} are not at hand and could not be downloaded (got {error}; {looked}, "
            f"and in {self._cached()}); put {wanted} under a folder of yours "
            "and name that folder with --data-root or FASTGLT_DATA"
        )


def _fetch(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT) as answer, path.open("wb") as file:
        shutil.copyfileobj(answer, file)
        promised = answer.headers.get("Content-Length")
    if promised is not None and path.stat().st_size != int(promised):
        raise OSError(f"the download of {url} broke off")
