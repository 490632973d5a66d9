"""The datasets that have a name: one line each, and what `fastglt data list` says of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fastglt.data.archives import gnn_benchmark, tolokers
from fastglt.data.base import Parts
from fastglt.data.digits import Digits
from fastglt.data.ogb import ARXIV, PROTEINS, PROTEINS_AND_SPECIES, SUBSTITUTE
from fastglt.data.ogb_links import COLLAB, METRIC, TASK, LinkParts
from fastglt.data.planetoid import planetoid
from fastglt.data.poisoned import PoisonedGraph
from fastglt.data.synthetic import SyntheticGraph


class Source(Protocol):
    """Where a named set comes from."""

    def where(self, root: Path | None) -> str:
        """Whether it is at hand, in a few words and without loading it."""

    def parts(self, root: Path | None, split_seed: int) -> Parts | LinkParts:
        """Its arrays."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """A source with what is known of it beforehand."""

    source: Source
    about: str
    size: tuple[int, int, int, int | None] | None  # nodes, undirected edges, features, classes if it has some
    metric: str = "accuracy"
    task: str | None = None  # what it is for, if not for node classification


@dataclass(frozen=True, kw_only=True)
class CatalogueRow:
    """One line of the catalogue; sizes are None where the user decides them."""

    name: str
    about: str
    nodes: int | None
    edges: int | None  # undirected
    features: int | None
    classes: int | None
    metric: str
    where: str  # "built in", "in <root>", "in cache", "would be downloaded" or "not at hand"


NAMED: dict[str, Named] = {
    "digits": Named(
        source=Digits(),
        about="handwritten digits, linked to the ten most alike",
        size=(1797, 12339, 64, 10),
    ),
    "cora": Named(
        source=planetoid("Cora"),
        about="machine-learning papers and their citations",
        size=(2708, 5278, 1433, 7),
    ),
    "citeseer": Named(
        source=planetoid("CiteSeer"),
        about="computer-science papers and their citations",
        size=(3327, 4552, 3703, 6),
    ),
    "pubmed": Named(
        source=planetoid("PubMed"),
        about="diabetes papers and their citations",
        size=(19717, 44324, 500, 3),
    ),
    "coauthor-cs": Named(
        source=gnn_benchmark("Coauthor", "CS", "ms_academic_cs.npz"),
        about="computer scientists who wrote together",
        size=(18333, 81894, 6805, 15),
    ),
    "coauthor-physics": Named(
        source=gnn_benchmark("Coauthor", "Physics", "ms_academic_phy.npz"),
        about="physicists who wrote together",
        size=(34493, 247962, 8415, 5),
    ),
    "amazon-computers": Named(
        source=gnn_benchmark("Amazon", "Computers", "amazon_electronics_computers.npz"),
        about="computer goods bought together",
        size=(13752, 245861, 767, 10),
    ),
    "amazon-photo": Named(
        source=gnn_benchmark("Amazon", "Photo", "amazon_electronics_photo.npz"),
        about="photo goods bought together",
        size=(7650, 119081, 745, 8),
    ),
    "tolokers": Named(
        source=tolokers(),
        about="crowd workers who shared a task; who was banned?",
        size=(11758, 519000, 10, 2),
        metric="roc_auc",
    ),
    "ogbn-arxiv": Named(
        source=ARXIV,
        about="OGB: arXiv's computer-science papers and their citations, split by year",
        size=(169343, 1157799, 128, 40),
    ),
    "ogbn-proteins": Named(
        source=PROTEINS,
        about="OGB: proteins that work together; which of 112 functions has each?",
        size=(132534, 39561252, 8, 112),
        metric="roc_auc",
    ),
    "ogbn-proteins:species": Named(
        source=PROTEINS_AND_SPECIES,
        about="the same with each protein's species as features",
        size=(132534, 39561252, 16, 112),
        metric="roc_auc",
    ),
    "ogbl-collab": Named(
        source=COLLAB,
        about="OGB: authors who wrote together; who will next?",
        size=(235868, 967632, 128, None),
        metric=METRIC,
        task=TASK,
    ),
    "poisoned": Named(
        source=PoisonedGraph(),
        about="a graph that others attacked, such as poisoned:cora,meta=0.25",
        size=None,
    ),
    "synthetic": Named(
        source=SyntheticGraph(),
        about="a generated graph, such as synthetic:nodes=500",
        size=None,
    ),
}


def known_name(name: str) -> str | None:
    """The name in `NAMED` that a name stands for, which may tell of substitute features; None if it is none.

    >>> known_name("Cora"), known_name("ogbn-arxiv's graph, substitute features"), known_name("my/graph.npz")
    ('cora', 'ogbn-arxiv', None)
    """
    plain = name.lower().removesuffix(SUBSTITUTE)
    return plain if plain in NAMED else None


def data_root(root: Path | str | None) -> Path | None:
    """The folder of raw files the user named, by argument or by `FASTGLT_DATA`."""
    named = root or os.environ.get("FASTGLT_DATA")
    return Path(named).expanduser() if named else None


def catalogue(root: Path | str | None = None) -> list[CatalogueRow]:
    """Every named dataset, and whether it is at hand; loads nothing."""
    return [_catalogue_row(name, named, data_root(root)) for name, named in NAMED.items()]


def _catalogue_row(name: str, named: Named, root: Path | None) -> CatalogueRow:
    nodes, edges, features, classes = named.size or (None,) * 4
    return CatalogueRow(
        name=name,
        about=named.about,
        nodes=nodes,
        edges=edges,
        features=features,
        classes=classes,
        metric=named.metric,
        where=named.source.where(root),
    )
