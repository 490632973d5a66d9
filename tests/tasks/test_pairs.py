"""Pairs as numbers, pairs that are no edges, and random splits of edges."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fastglt import InputError
from fastglt.tasks.pairs import NonEdges, numbered_pairs, pair_numbers, random_link_split


def as_set(pairs: Tensor) -> set[tuple[int, ...]]:
    return {tuple(sorted(pair)) for pair in pairs.tolist()}


@given(st.integers(2, 40))
def test_every_pair_has_a_number_of_its_own(nodes: int) -> None:
    pairs = torch.tensor(list(itertools.combinations(range(nodes), 2)))
    assert pair_numbers(pairs, nodes).tolist() == list(range(len(pairs)))
    assert pair_numbers(pairs.flip(1), nodes).tolist() == list(range(len(pairs)))
    assert torch.equal(numbered_pairs(np.arange(len(pairs)), nodes), pairs)


def test_numbers_are_exact_for_a_hundred_million_nodes() -> None:
    nodes = 10**8
    pairs = torch.tensor([[0, 1], [0, nodes - 1], [1, 2], [12345678, 87654321], [nodes - 2, nodes - 1]])
    assert int(pair_numbers(pairs[-1:], nodes)[0]) == nodes * (nodes - 1) // 2 - 1
    small = torch.tensor([[3, 5], [998, 999]])
    assert torch.equal(numbered_pairs(pair_numbers(small, 1000), 1000), small)


@given(st.integers(2, 12), st.integers(0, 2**31))
def test_what_is_drawn_is_exactly_what_is_no_edge(nodes: int, seed: int) -> None:
    every = torch.tensor(list(itertools.combinations(range(nodes), 2)))
    edge = torch.rand(len(every), generator=torch.Generator().manual_seed(seed)) < 0.5
    others = NonEdges(every[edge].flip(1), nodes)
    assert others.count == int((~edge).sum())
    drawn = others.draw(others.count, seed=seed, distinct=True)
    assert as_set(drawn) == as_set(every[~edge])
    assert len(drawn) == others.count


def test_draws_are_uniform_and_belong_to_their_seed() -> None:
    others = NonEdges(torch.tensor([[0, 1], [2, 3]]), 5)  # 8 of 10 pairs are none
    drawn = others.draw(8000, seed=3)
    counts = np.bincount(pair_numbers(drawn, 5), minlength=10)
    assert counts[pair_numbers(torch.tensor([[0, 1], [2, 3]]), 5)].tolist() == [0, 0]
    assert counts.max() < 1150  # 1000 expected, a standard deviation of 30
    assert counts[counts > 0].min() > 850
    assert torch.equal(drawn, others.draw(8000, seed=3))
    assert not torch.equal(drawn, others.draw(8000, seed=4))


def test_a_complete_graph_has_no_negatives() -> None:
    every = torch.tensor(list(itertools.combinations(range(4), 2)))
    with pytest.raises(InputError, match="must have 3 pairs of nodes that are no edge"):
        NonEdges(every, 4).draw(3, seed=0)


class TestRandomSplit:
    RING = torch.stack([torch.arange(200), (torch.arange(200) + 1) % 200], 1)
    BOTH = torch.cat([RING, RING.flip(1)])  # every edge both ways

    def test_a_pair_goes_as_a_whole_and_nothing_is_in_two_parts(self) -> None:
        kept, pairs = random_link_split(self.BOTH, 200, seed=0)
        assert torch.equal(kept[:200], kept[200:])
        parts = [as_set(self.BOTH[kept]), *(as_set(found.T) for found in pairs.values())]
        assert [len(part) for part in parts] == [170, 10, 200, 20, 200]
        assert len(set.union(*parts)) == sum(map(len, parts))
        assert set.union(parts[0], parts[1], parts[3]) == as_set(self.RING)

    def test_the_seed_decides(self) -> None:
        one, again, other = (random_link_split(self.BOTH, 200, seed)[0] for seed in (0, 0, 1))
        assert torch.equal(one, again)
        assert not torch.equal(one, other)

    def test_a_dense_graph_has_as_many_negatives_as_there_are(self) -> None:
        every = torch.tensor(list(itertools.combinations(range(20), 2)))[:-7]
        _, pairs = random_link_split(every, 20, seed=0)
        assert [pairs[f"{part}_neg_edge_index"].shape[1] for part in ("val", "test")] == [3, 3]

    def test_too_few_edges_are_refused(self) -> None:
        with pytest.raises(InputError, match=r"at least one each \(got 3 edges\)"):
            random_link_split(self.RING[:3], 200, seed=0)
