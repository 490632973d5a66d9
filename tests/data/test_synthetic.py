import time

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastglt.data import load
from fastglt.data.base import Floats, Ints
from fastglt.data.synthetic import SyntheticGraph
from fastglt.errors import InputError


def homophily(edges: Ints, labels: Ints | Floats) -> float:
    return float((labels[edges[0]] == labels[edges[1]]).mean())


@settings(deadline=None, max_examples=60)
@given(
    nodes=st.integers(6, 150),
    edges=st.integers(1, 2000),
    classes=st.integers(2, 6),
    share=st.floats(0, 1),
    seed=st.integers(0, 5),
)
def test_the_graph_is_as_ordered(nodes: int, edges: int, classes: int, share: float, seed: int) -> None:
    try:
        recipe = SyntheticGraph(nodes=nodes, edges=edges, features=5, classes=classes, homophily=share, seed=seed)
    except InputError:
        assume(False)
    parts = recipe.parts(None, split_seed=0)
    assert parts.x.shape == (nodes, 5)
    assert parts.edges.shape == (2, 2 * edges)
    assert len(np.unique(parts.edges[0] * nodes + parts.edges[1])) == 2 * edges
    assert (parts.edges[0] != parts.edges[1]).all()
    assert parts.edges.min() >= 0
    assert parts.edges.max() < nodes
    assert np.ptp(np.bincount(parts.y, minlength=classes)) <= 1
    assert homophily(parts.edges, parts.y) == pytest.approx(share, abs=0.5 / edges + 1e-9)
    assert (np.sum(parts.masks, axis=0) == 1).all()
    assert all(mask.any() for mask in parts.masks)


def test_the_seed_decides_the_graph_and_the_split_seed_the_split() -> None:
    name = "synthetic:nodes=300,edges=900,seed=3"
    one, again, moved = load(name).data, load(name).data, load(name, split_seed=1).data
    other = load("synthetic:nodes=300,edges=900,seed=4").data
    assert all(torch.equal(one[key], again[key]) for key in one.keys())  # noqa: SIM118
    assert torch.equal(one.edge_index, moved.edge_index)
    assert torch.equal(one.x, moved.x)
    assert not torch.equal(one.test_mask, moved.test_mask)
    assert not torch.equal(one.edge_index, other.edge_index)


def test_the_name_spells_the_whole_recipe_and_loads_again() -> None:
    dataset = load("Synthetic:nodes=60, classes=3")
    assert dataset.name == "synthetic:nodes=60,edges=240,features=32,classes=3,homophily=0.8,seed=0"
    assert torch.equal(load(dataset.name).data.edge_index, dataset.data.edge_index)
    assert load("synthetic").data.num_nodes == 1000


def test_there_are_hubs_and_the_features_are_sparse_and_tell_the_class() -> None:
    data = load("synthetic:nodes=2000,edges=8000,features=64").data
    degrees = data.edge_index[0].bincount(minlength=2000)
    assert int(degrees.max()) > 10 * float(degrees.float().mean())
    assert 0.02 < float((data.x > 0).float().mean()) < 0.2
    centres = torch.stack([data.x[data.y == label].mean(0) for label in range(4)])
    nearest = torch.cdist(data.x, centres).argmin(1)
    assert float((nearest == data.y).float().mean()) > 0.4


def test_a_million_edges_take_seconds() -> None:
    start = time.perf_counter()
    parts = SyntheticGraph(nodes=100_000, edges=1_000_000, features=8).parts(None, split_seed=0)
    assert parts.edges.shape == (2, 2_000_000)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (
            "nodez=5",
            "unknown key of a synthetic graph (got 'nodez'); did you mean 'nodes'? Known: classes, edges,",
        ),
        ("nodes=many", "synthetic: nodes must be a whole number, as in nodes=1000 (got 'many')"),
        ("nodes", "synthetic: nodes must be a whole number, as in nodes=1000 (got '')"),
        ("homophily=high", "synthetic: homophily must be a number, as in homophily=0.8 (got 'high')"),
        ("nodes=9,nodes=9", "synthetic: each key must come once (got 'nodes' again)"),
        ("nodes=5", "synthetic: nodes must be from 6 to 1000000000 (got 5)"),
        ("edges=0", "synthetic: edges must be from 1 to 1000000000 (got 0)"),
        ("features=0", "synthetic: features must be from 1 to 1000000 (got 0)"),
        ("classes=1", "synthetic: classes must be from 2 to 1000000 (got 1)"),
        ("seed=-1", "synthetic: seed must be from 0 to"),
        ("homophily=1.5", "synthetic: homophily must be from 0 to 1 (got 1.5)"),
        ("homophily=nan", "synthetic: homophily must be from 0 to 1 (got nan)"),
        ("nodes=12,classes=5", "synthetic: classes must be at most a third of nodes=12, "),
        (
            "nodes=12,edges=40,classes=2",
            "synthetic: 12 nodes in 2 classes have room for 30 edges within classes "
            "(got edges=40 and homophily=0.8, so 32); lower edges, raise nodes or change homophily",
        ),
        ("nodes=12,edges=40,classes=2,homophily=0", "have room for 36 edges between classes (got edges=40"),
    ],
)
def test_a_wrong_recipe_is_refused(recipe: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(f"synthetic:{recipe}")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
