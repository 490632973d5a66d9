"""Where a graph from files came from, so that a run's folder can tell.

The record is in run.json and nowhere else: a ticket that is passed on has no paths in it. A record may come from
anybody; all it can name is files to read a graph from.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastglt.data.disk.layout import MANIFEST, is_prepared
from fastglt.data.loading import is_path
from fastglt.data.ogb import split_recipe
from fastglt.data.ogb_files import OGBFiles
from fastglt.errors import InputError

_MOST = 2  # files of a graph
_REMEDY = "pass the graph as --dataset"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The file or the two files of a graph, or the folder that has them, and how its edges were read."""

    named: tuple[Path, ...]  # as the user did, but absolute
    directed: bool
    recipe: str = ""  # what follows a path's colon
    digests: tuple[str, ...] = ()  # of the files' contents when they were read, where that is known

    @classmethod
    def of(cls, dataset: str, *, directed: bool) -> Origin | None:
        """Of what a user named; None for a graph that has a name or a recipe."""
        if not is_path(dataset.strip()):
            return None
        name, recipe = split_recipe(dataset.strip())
        first, plus, second = name.partition(".csv+")
        parts = (f"{first}.csv", second) if plus and not Path(name).expanduser().exists() else (name,)
        named = tuple(Path(part).expanduser().absolute() for part in parts)
        return cls(named=named, directed=directed, recipe=recipe)

    @property
    def files(self) -> tuple[Path, ...]:
        """All that is read."""
        first, *second = self.named
        if is_prepared(first):
            return (first / MANIFEST,)  # which has the digests of all others
        if first.is_dir() and (files := OGBFiles.at(first)) is not None:
            return tuple(first / name for name in sorted(files.names) if name.startswith(("raw/", "split/")))
        if first.is_dir():
            return first / "edges.csv", first / "nodes.csv"
        if first.suffix.lower() == ".csv":
            return first, (second[0] if second else first.with_name("nodes.csv"))
        return self.named

    def record(self, folder: Path) -> dict[str, Any]:
        """For run.json: each path as seen from the run's folder, which may move along, and from the root."""
        here = folder.absolute()
        paths = [{"from_here": os.path.relpath(path, here), "path": str(path)} for path in self.named]
        digests = [_digest(file) for file in self.files]
        recipe = {"recipe": self.recipe} if self.recipe else {}
        return {"paths": paths, "sha256": digests, "directed": self.directed, **recipe}

    @classmethod
    def read(cls, record: Any, folder: Path) -> Origin:
        """The inverse of `record`, with paths as they are now; ValueError for what no run has written."""
        paths, found, directed = (record[name] for name in ("paths", "sha256", "directed"))
        recipe = record.get("recipe", "")
        fits = isinstance(paths, list) and 1 <= len(paths) <= _MOST and isinstance(directed, bool)
        if not (fits and isinstance(found, list) and all(isinstance(one, str) for one in found)):
            raise ValueError("a graph's files expected")
        named = tuple(_present(path, folder) for path in paths)
        return cls(named=named, directed=directed, recipe=str(recipe), digests=tuple(found))

    @property
    def dataset(self) -> str:
        """What `load` takes, if the files are what they were."""
        gone = [file for file in self.files if not file.is_file()]
        if gone:
            raise InputError(f"the ticket's graph is gone (got no file '{gone[0]}'); {_REMEDY}")
        for file, digest in zip(self.files, self.digests, strict=False):
            if _digest(file) != digest:
                raise InputError(f"'{file}' has changed since the ticket was found; {_REMEDY} to use it as it is")
        return "+".join(map(str, self.named)) + (f":{self.recipe}" if self.recipe else "")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _present(path: Any, folder: Path) -> Path:
    texts = [path[name] for name in ("from_here", "path")]
    if not all(isinstance(text, str) and text and "\0" not in text for text in texts):
        raise ValueError("a path expected")
    places = [Path(os.path.normpath(folder.absolute() / text)) for text in texts]
    return next((place for place in places if place.exists()), places[-1])
