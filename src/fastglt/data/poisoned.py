"""Graphs that others have attacked, in the layout in which Pro-GNN publishes them, beside the clean ones.

    clean/cora.npz                        the graph before the attack (sparse arrays, as DeepRobust downloads it)
    splits/cora_prognn_splits.json        idx_train, idx_val, idx_test
    meta/cora_meta_adj_0.25.npz           Metattack: the adjacency, a scipy sparse matrix
    nettack/cora_nettack_adj_3.0.npz      Nettack, and nettack/cora_nettacked_nodes.json: whom it aimed at

Attacked matrices speak of the largest connected component, its nodes in ascending order. Features are left as they
are: the field trains on 0 and 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from fastglt.data.base import Bools, Ints, Parts, SplitMasks, tidy_edges
from fastglt.data.sparse_files import SparseNetwork, read_adjacency, read_network
from fastglt.errors import InputError
from fastglt.system import plain_json
from fastglt.system.storage import read_bytes

FOLDER = "poisoned"  # under the data root
ATTACKS = ("meta", "nettack")
_RECIPE = re.compile(r"(?P<graph>[\w-]+)(?:,(?P<attack>\w+)=(?P<rate>[\d.]+))?")
_FILE = re.compile(r"(?P<graph>.+)_(?P<attack>meta|nettack)_adj_(?P<rate>[\d.]+)\.npz")
_FORM = "poisoned:GRAPH, or poisoned:GRAPH,meta=RATE or ,nettack=CHANGES"
_MOST = 1 << 26  # bytes of a split


@dataclass(frozen=True, kw_only=True)
class PoisonedGraph:
    """Which graph, by whom it was attacked and how much; without an attack the clean graph on the same nodes.

    >>> print(PoisonedGraph.parse("cora,meta=0.25"))
    poisoned:cora,meta=0.25
    """

    graph: str = ""
    attack: str | None = None
    rate: str = ""  # as it stands in the file's name, or a number that equals it
    folder: Path | None = None  # None: below the data root

    @classmethod
    def parse(cls, text: str) -> PoisonedGraph:
        """The recipe behind the colon."""
        match = _RECIPE.fullmatch(text.replace(" ", "").lower())
        if match is None or match["attack"] not in (None, *ATTACKS):
            raise InputError(f"a poisoned graph is named {_FORM} (got 'poisoned:{text}')")
        return cls(graph=match["graph"], attack=match["attack"], rate=match["rate"] or "")

    @classmethod
    def at(cls, path: Path) -> PoisonedGraph | None:
        """The one whose attacked adjacency is in a file; None where the file's name tells of none."""
        match = _FILE.fullmatch(path.name)
        if match is None:
            return None
        return cls(graph=match["graph"], attack=match["attack"], rate=match["rate"], folder=path.parent.parent)

    def __str__(self) -> str:
        change = "" if self.attack is None else f",{self.attack}={float(self.rate):g}"
        return f"poisoned:{self.graph}{change}"

    def where(self, root: Path | None) -> str:
        """Whether there are such graphs."""
        return f"in {root}" if root is not None and (root / FOLDER).is_dir() else "not at hand"

    def parts(self, root: Path | None, split_seed: int) -> Parts:
        """The attacked graph with the clean one's features, labels and split, which no seed moves."""
        files = self._files(root)
        clean = files.clean
        edges = clean.edges if self.attack is None else files.attacked(self.attack, self.rate)
        test = files.split["idx_test"]
        if self.attack == "nettack":
            test = files.targets  # the only nodes that this attack is about
        chosen = (files.split["idx_train"], files.split["idx_val"], test)
        masks = SplitMasks(*(files.mask(nodes) for nodes in chosen))
        return Parts(x=clean.features, y=clean.labels, edges=edges, masks=masks)

    def clean_edges(self, root: Path | None) -> Ints:
        """The edges before the attack, each in both directions: what tells which ones were added."""
        return self._files(root).clean.edges

    def _files(self, root: Path | None) -> _Files:
        if not self.graph:
            raise InputError(f"a poisoned graph is named {_FORM} (got 'poisoned' alone)")
        if self.folder is None and root is None:
            raise InputError(
                f"{self} must be below a data root (got none); pass --data-root or set FASTGLT_DATA to the folder "
                f"that has {FOLDER}/clean, {FOLDER}/splits and {FOLDER}/meta"
            )
        return _Files(folder=self.folder or root / FOLDER, graph=self.graph)  # type: ignore[operator]


@dataclass(frozen=True)
class _Files:
    """The files of one graph."""

    folder: Path
    graph: str

    @cached_property
    def clean(self) -> SparseNetwork:
        """The largest component of the graph before the attack."""
        path = self._existing(self.folder / "clean" / f"{self.graph}.npz")
        return read_network(path).largest_component()

    @cached_property
    def split(self) -> dict[str, Ints]:
        """Node numbers by the names in the file."""
        path = self._existing(self.folder / "splits" / f"{self.graph}_prognn_splits.json")
        return self._numbers(path, ("idx_train", "idx_val", "idx_test"))

    @cached_property
    def targets(self) -> Ints:
        """Whom Nettack aimed at."""
        path = self._existing(self.folder / "nettack" / f"{self.graph}_nettacked_nodes.json")
        return self._numbers(path, ("attacked_test_nodes",))["attacked_test_nodes"]

    def attacked(self, attack: str, rate: str) -> Ints:
        """The edges after an attack, in both directions."""
        known = {float(match["rate"]): path for path, match in self._attacks(attack)}
        if float(rate) not in known:
            there = ", ".join(f"{value:g}" for value in sorted(known)) or "none"
            raise InputError(
                f"{self.folder / attack}: there is no {self.graph} with {attack}={rate} (got {there}); "
                f"the file is named {self.graph}_{attack}_adj_RATE.npz"
            )
        path, nodes = known[float(rate)], len(self.clean.labels)
        source, target, size = read_adjacency(path)
        if size != nodes:
            raise InputError(
                f"{path}: the attacked graph must have the {nodes} nodes of the clean one's largest component "
                f"(got {size}); take both from the same source"
            )
        return tidy_edges(source, target, nodes=nodes)

    def _attacks(self, attack: str) -> list[tuple[Path, re.Match[str]]]:
        folder = self.folder / attack
        found = [(path, _FILE.fullmatch(path.name)) for path in sorted(folder.glob(f"{self.graph}_*.npz"))]
        return [(path, match) for path, match in found if match and match["graph"] == self.graph]

    def mask(self, nodes: Ints) -> Bools:
        """Which nodes are among these."""
        mask = np.zeros(len(self.clean.labels), dtype=np.bool_)
        mask[nodes] = True
        return mask

    def _numbers(self, path: Path, names: tuple[str, ...]) -> dict[str, Ints]:
        nodes = len(self.clean.labels)
        try:
            said = plain_json.loads(read_bytes(path, most=_MOST))
            found = {name: np.asarray(said[name]) for name in names}
        except (ValueError, KeyError, TypeError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise InputError(f"{path}: must be JSON with lists {', '.join(names)} (got {reason})") from None
        for name, numbers in found.items():
            whole = numbers.ndim == 1 and numbers.size > 0 and numbers.dtype.kind in "iu"
            if not whole or numbers.min() < 0 or numbers.max() >= nodes:
                raise InputError(f"{path}: {name} must list node numbers from 0 to {nodes - 1}; take a fresh copy")
        return found

    def _existing(self, path: Path) -> Path:
        if not path.is_file():
            raise InputError(
                f"{path}: no such file; poisoned graphs need clean/, splits/ and meta/ or nettack/ side by side"
            )
        return path
