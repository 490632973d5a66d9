"""Generated graphs: a degree-corrected block model whose size and homophily the user chooses.

Nodes get a power-law propensity to be linked, so there are hubs; exactly `edges` distinct edges
are drawn, of which the share `homophily` stays within a class. Features are a bag of words in
which each class has favourites.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fastglt.data.base import Floats, Ints, Parts, seeded_split, tidy_edges
from fastglt.data.pairs import Blocks, distinct_pairs
from fastglt.errors import InputError, unknown_name

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TAIL = 1.6  # of the propensities: degrees then fall off as a power law of exponent 2.6
FAVOURITES = 0.2  # share of the words that a class favours
COMMON, FAVOURED = 0.05, 0.15  # how often a word occurs, by whether the node's class favours it
_MANY_NUMBERS = 2**24  # of features, from which on zeros are not written out
_AT_A_TIME = 2**22  # of them
EDGES_PER_NODE = 4  # where the user does not say
LIMITS = {
    "nodes": (6, 10**9),
    "edges": (1, 10**9),
    "features": (1, 10**6),
    "classes": (2, 10**6),
    "seed": (0, 2**63),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticGraph:
    """What a synthetic graph should be like; the same recipe gives the same graph.

    >>> print(SyntheticGraph.parse("nodes=60,edges=90"))
    synthetic:nodes=60,edges=90,features=32,classes=4,homophily=0.8,seed=0
    """

    nodes: int = 1000
    edges: int = 4000  # undirected, distinct, no self loops
    features: int = 32
    classes: int = 4
    homophily: float = 0.8  # share of the edges that join nodes of one class
    seed: int = 0  # decides everything but the split

    def __post_init__(self) -> None:
        for key, (least, most) in LIMITS.items():
            if not least <= getattr(self, key) <= most:
                raise _wrong(key, f"from {least} to {most}", getattr(self, key))
        if not 0 <= self.homophily <= 1:
            raise _wrong("homophily", "from 0 to 1", self.homophily)
        if self.classes * 3 > self.nodes:
            rule = f"at most a third of nodes={self.nodes}, so that every class has a node in each split"
            raise _wrong("classes", rule, self.classes)
        for kind, wanted, room in zip(("within", "between"), self._wanted(), self._room(), strict=True):
            if wanted > room:
                raise InputError(
                    f"synthetic: {self.nodes} nodes in {self.classes} classes have room for {room} edges "
                    f"{kind} classes (got edges={self.edges} and homophily={self.homophily}, so {wanted}); "
                    "lower edges, raise nodes or change homophily"
                )

    @classmethod
    def parse(cls, text: str) -> SyntheticGraph:
        """The recipe written as `key=value,...`; keys left out keep their defaults.

        Without `edges` there are four for each node.
        """
        known = {field.name: str(field.type) for field in fields(cls)}
        chosen: dict[str, float] = {}
        for item in filter(None, text.replace(" ", "").split(",")):
            key, _, value = item.partition("=")
            if key not in known:
                raise unknown_name("key of a synthetic graph", key, known)
            if key in chosen:
                raise InputError(f"synthetic: each key must come once (got '{key}' again); remove one")
            try:
                chosen[key] = float(value) if known[key] == "float" else int(value)
            except ValueError as error:
                rule = "a number" if known[key] == "float" else "a whole number"
                raise _wrong(key, f"{rule}, as in {key}={getattr(cls(), key)}", repr(value)) from error
        if "nodes" in chosen:
            chosen.setdefault("edges", EDGES_PER_NODE * chosen["nodes"])
        return cls(**chosen)  # type: ignore[arg-type]  # each value was parsed by its field's type

    def __str__(self) -> str:
        return "synthetic:" + ",".join(f"{key}={value}" for key, value in asdict(self).items())

    def where(self, root: Path | None) -> str:
        """Always at hand."""
        return "built in"

    def parts(self, root: Path | None, split_seed: int) -> Parts:
        """The graph this recipe describes."""
        self._check_memory()
        rng = np.random.default_rng(self.seed)
        propensity = np.minimum(rng.pareto(TAIL, self.nodes) + 1, np.sqrt(self.nodes))
        blocks = Blocks.of(self._sizes(), propensity)
        pairs = [
            distinct_pairs(rng, blocks, wanted, inside=inside, room=room)
            for inside, wanted, room in zip((True, False), self._wanted(), self._room(), strict=True)
        ]
        keys = np.concatenate(pairs)
        del pairs
        place = rng.permutation(self.nodes)  # so that a node's number does not give its class away
        low, high = np.divmod(keys, self.nodes)
        del keys
        edges = tidy_edges(place[low], place[high], nodes=self.nodes)
        labels = np.empty(self.nodes, dtype=np.int64)
        labels[place] = blocks.labels
        masks = seeded_split(labels, split_seed)
        return Parts(x=self._words(rng, labels), y=labels, edges=edges, masks=masks, drawn=True)

    def _check_memory(self) -> None:
        """Say no before the machine does: an overcommitting system kills instead of refusing."""
        needed = 4 * self.nodes * self.features + 100 * self.edges + 100 * self.nodes
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > present:
            raise MemoryError(f"it takes about {needed / 2**30:.0f} GiB, and there are {present / 2**30:.0f}")

    def _sizes(self) -> Ints:
        sizes = np.full(self.classes, self.nodes // self.classes)
        sizes[: self.nodes % self.classes] += 1
        return sizes

    def _wanted(self) -> tuple[int, int]:
        within = round(self.edges * self.homophily)
        return within, self.edges - within

    def _room(self) -> tuple[int, int]:
        """How many distinct pairs there are within and between classes."""
        size, larger = divmod(self.nodes, self.classes)
        within = (self.classes - larger) * (size * (size - 1) // 2) + larger * (size * (size + 1) // 2)
        return within, self.nodes * (self.nodes - 1) // 2 - within

    def _words(self, rng: np.random.Generator, labels: Ints) -> Floats | csr_array:
        """A bag of words for each node, its numbers summing to one; of many nodes without the zeros."""
        favoured = rng.random((self.classes, self.features)).argsort(axis=1) < FAVOURITES * self.features
        chance = np.where(favoured, FAVOURED, COMMON).astype(np.float32)
        if self.nodes * self.features >= _MANY_NUMBERS:
            return self._stored_words(rng, chance, labels)
        drawn = rng.random((self.nodes, self.features), dtype=np.float32) < chance[labels]
        words: Floats = drawn.astype(np.float32)
        words /= np.maximum(words.sum(axis=1, keepdims=True), 1)
        return words

    def _stored_words(self, rng: np.random.Generator, chance: Floats, labels: Ints) -> csr_array:
        """The same words from the same random numbers, some nodes at a time."""
        from scipy.sparse import csr_array

        counts, columns = [np.zeros(1, dtype=np.int64)], []
        for some in np.array_split(labels, -(-self.nodes * self.features // _AT_A_TIME)):
            drawn = rng.random((len(some), self.features), dtype=np.float32) < chance[some]
            counts.append(np.count_nonzero(drawn, axis=1))
            columns.append(np.nonzero(drawn)[1].astype(np.int32))
        each = np.concatenate(counts)
        values = np.repeat(np.float32(1) / np.maximum(each[1:], 1).astype(np.float32), each[1:])
        return csr_array((values, np.concatenate(columns), each.cumsum()), (self.nodes, self.features))


def _wrong(key: str, rule: str, got: object) -> InputError:
    return InputError(f"synthetic: {key} must be {rule} (got {got})")
