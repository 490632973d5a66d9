"""OGB's sets by name: where the data root or OGB's downloader has one, and whether it is what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fastglt.data.ogb_files import FRESH, OGBFiles
from fastglt.errors import InputError


@dataclass(frozen=True, kw_only=True)
class OGBSet:
    """One of OGB's sets, found in the user's folder or where OGB's downloader puts it."""

    module: ClassVar[str]  # of the ogb package, and its class that downloads such sets
    loader: ClassVar[str]

    name: str  # as OGB calls it: ogbn-arxiv, ogbl-collab
    zipped: str  # what its zip and the folder inside are called
    nodes: int
    listed: int  # edges in its file

    def where(self, root: Path | None) -> str:
        """Whether it is at hand, in a few words."""
        found = self._found(root)
        return "not at hand" if found is None else f"in {found.parent}"

    def files(self, root: Path | None) -> OGBFiles:
        """Its files; refused where they are not there, or those of another set."""
        found = self._found(root)
        if found is None:
            looked = "no data root was given" if root is None else f"looked in data root {root}"
            raise InputError(
                f"{self.name} is not at hand (got no {self._folder}/ and no {self.zipped}.zip; {looked}); "
                f"get it with OGB's own downloader, `pip install ogb` and `python -c \"from ogb.{self.module} "
                f"import {self.loader}; {self.loader}('{self.name}', root='data')\"`, and say --data-root data"
            )
        files = OGBFiles.at(found)
        if files is None:
            raise InputError(f"{found}: {self.name} must have the folders raw/ and split/ (got neither); {FRESH}")
        if files.counts != (self.nodes, self.listed):
            got = "{:,} and {:,}".format(*files.counts)
            rule = f"{found}: {self.name} must have {self.nodes:,} nodes and {self.listed:,} listed edges"
            raise InputError(f"{rule} (got {got}); {FRESH}, or pass the folder's path as the dataset")
        return files

    @property
    def _folder(self) -> str:
        return self.name.replace("-", "_")

    def _found(self, root: Path | None) -> Path | None:
        names = (self._folder, f"{self._folder}_pyg", self.name, self.zipped)
        folder = Path("dataset") if root is None else root  # OGB's own default
        folders = [folder / name for name in names if _looks_like_one(folder / name)]
        zips = [place for name in (self.zipped, self._folder) if (place := folder / f"{name}.zip").is_file()]
        return next(iter([*folders, *zips]), None)


def _looks_like_one(folder: Path) -> bool:
    """Whether a folder has at least one of the two that a set consists of."""
    return any((folder / part).is_dir() for part in ("raw", "split"))
