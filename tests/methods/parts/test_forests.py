"""Spanning forests against networkx-free references: connectivity, weight, counts, ties."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from fastglt.methods.parts.forests import keep_forests
from tests.helpers import HOUSE, columns


def components(edges: Tensor, nodes: int) -> int:
    matrix = coo_array((np.ones(edges.shape[1]), edges.numpy()), (nodes, nodes))
    return int(connected_components(matrix, directed=False)[0])


def best_forest(edges: Tensor, strength: Tensor, nodes: int) -> float:
    """The greatest total strength of a spanning forest, by trying all sets of edges."""
    size = nodes - components(edges, nodes)
    sets = itertools.combinations(range(edges.shape[1]), size)
    whole = components(edges, nodes)
    return max(
        float(strength[list(chosen)].sum()) for chosen in sets if components(edges[:, list(chosen)], nodes) == whole
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Tensor, int]:
    nodes = draw(st.integers(2, 6))
    pairs = list(itertools.combinations(range(nodes), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=8, unique=True))
    return columns(chosen), nodes


@settings(deadline=None)
@given(graphs(), st.integers(0, 99))
def test_the_forest_is_the_strongest_of_all(graph: tuple[Tensor, int], seed: int) -> None:
    edges, nodes = graph
    strength = torch.rand(edges.shape[1], generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    size = nodes - components(edges, nodes)
    kept = keep_forests(edges, strength, nodes, size)
    assert int(kept.sum()) == size
    assert components(edges[:, kept], nodes) == components(edges, nodes)
    assert float(strength[kept].sum()) == pytest.approx(best_forest(edges, strength, nodes))


@given(graphs(), st.data())
def test_the_count_is_exact_and_nothing_falls_apart_while_a_forest_fits(
    graph: tuple[Tensor, int], data: st.DataObject
) -> None:
    edges, nodes = graph
    count = data.draw(st.integers(0, edges.shape[1]))
    strength = torch.tensor(
        data.draw(st.lists(st.integers(0, 3), min_size=edges.shape[1], max_size=edges.shape[1]))
    )
    kept = keep_forests(edges, strength.double(), nodes, count, forests=data.draw(st.integers(0, 3)), seed=1)
    assert int(kept.sum()) == count
    one = keep_forests(edges, strength.double(), nodes, count, seed=1)
    if count >= nodes - components(edges, nodes):
        assert components(edges[:, one], nodes) == components(edges, nodes)


def test_the_rest_is_kept_by_strength() -> None:
    edges = columns(HOUSE)  # 0–1, 0–2, 0–3, 0–4, 1–2, 3–4, 4–5
    strength = torch.tensor([0.1, 0.9, 0.8, 0.7, 0.6, 0.75, 0.05])
    # the forest: 0–2, 0–3, 3–4, 1–2, 4–5; then 0–4 before 0–1
    assert keep_forests(edges, strength, 7, 5).tolist() == [False, True, True, False, True, True, True]
    assert keep_forests(edges, strength, 7, 6).tolist() == [False, True, True, True, True, True, True]
    # too few for a forest: 3–4 is no node's strongest edge but 4's
    assert keep_forests(edges, strength, 7, 2).tolist() == [False, True, True, False, False, False, False]
    # without forests: by strength alone
    assert keep_forests(edges, strength, 7, 5, forests=0).tolist() == [
        False,
        True,
        True,
        True,
        True,
        True,
        False,
    ]


def test_a_second_forest_comes_before_the_strongest_of_the_rest() -> None:
    # two strong triangles' worth of parallel structure: a square with both diagonals
    edges = columns([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3)])
    strength = torch.tensor([6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    one = keep_forests(edges, strength, 4, 5)
    two = keep_forests(edges, strength, 4, 6, forests=2)
    assert one.tolist() == [True, True, True, True, True, False]
    assert two.all()
    # the first forest has 0–1, 1–2, 2–3; the second 0–3, 0–2, 1–3: with five, its two strongest
    assert keep_forests(edges, strength, 4, 5, forests=2).tolist() == one.tolist()


def test_forests_can_be_of_some_edges_alone() -> None:
    edges = columns(HOUSE)  # 0–1, 0–2, 0–3, 0–4, 1–2, 3–4, 4–5
    strength = torch.tensor([0.1, 0.9, 0.8, 0.7, 0.6, 0.75, 0.05])
    among = torch.tensor([True, True, False, False, True, False, True])
    # their forest: 0–2, 1–2, 4–5; then the strongest of all that is left: 0–3, 3–4
    assert keep_forests(edges, strength, 7, 5, among=among).nonzero().squeeze(1).tolist() == [1, 2, 4, 5, 6]
    assert keep_forests(edges, strength, 7, 2, among=among).nonzero().squeeze(1).tolist() == [1, 4]
    nothing = torch.zeros_like(among)
    assert torch.equal(
        keep_forests(edges, strength, 7, 5, among=nothing), keep_forests(edges, strength, 7, 5, forests=0)
    )


def test_ties_are_seeded_and_repeatable() -> None:
    edges = columns(list(itertools.combinations(range(8), 2)))
    equal = torch.ones(edges.shape[1])
    first, again, other = (keep_forests(edges, equal, 8, 12, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_an_arrow_and_its_reverse_count_as_one_edge_of_the_forest() -> None:
    arrows = columns([(0, 1), (1, 0), (1, 2)])
    strength = torch.tensor([0.9, 0.8, 0.1])
    assert keep_forests(arrows, strength, 3, 2).tolist() == [True, False, True]
    assert keep_forests(arrows, strength, 3, 0).tolist() == [False, False, False]


def test_no_edges_keep_none() -> None:
    assert keep_forests(columns([]), torch.empty(0), 3, 0).tolist() == []


def test_any_number_may_be_a_strength() -> None:
    strength = torch.tensor([-2.0, 3.0, -0.5, 0.0, 1e-40, 3.5, -1e30])
    for count, strongest in enumerate([5, 1, 4, 3, 2, 0, 6], start=1):
        assert bool(keep_forests(columns(HOUSE), strength, 7, count, forests=0)[strongest])
        assert int(keep_forests(columns(HOUSE), strength, 7, count, forests=0).sum()) == count


def test_of_a_forest_that_does_not_fit_each_nodes_strongest_edge_goes_last() -> None:
    # a star around 0 with a tail: 0–1, 0–2, 0–3, 3–4, 4–5; 0–3 is the strongest of neither 0 nor 3
    edges = columns([(0, 1), (0, 2), (0, 3), (3, 4), (4, 5)])
    strength = torch.tensor([0.9, 0.1, 0.5, 0.8, 0.2])
    assert keep_forests(edges, strength, 6, 4).tolist() == [True, True, False, True, True]
    assert keep_forests(edges, strength, 6, 3).tolist() == [True, False, False, True, True]
    assert keep_forests(edges, strength, 6, 1).tolist() == [True, False, False, False, False]
