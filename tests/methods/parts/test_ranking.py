import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fastglt.errors import InputError
from fastglt.graphs.graph import Graph
from fastglt.methods.parts.ranking import (
    EDGE_POTENTIALS,
    edge_degree,
    edge_peripherality,
    edge_similarity,
    highest,
    keep_largest,
    keep_random,
    lowest,
    swapped,
)
from fastglt.methods.parts.schedules import Swap
from tests.helpers import both_ways, drop

# Few different values, so that most scores are tied; the zeros have both signs.
score_lists = st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0]), min_size=1, max_size=30)
quick = settings(deadline=None, max_examples=60)


def chosen_by(scores: Tensor, count: int, seed: int) -> list[int]:
    """The indices that `lowest` marks."""
    return lowest(scores, count, seed).nonzero().flatten().tolist()


@quick
@given(scores=score_lists, seed=st.integers(0, 5), data=st.data())
def test_lowest_gives_exactly_so_many_and_none_larger_than_the_rest(
    scores: list[float], seed: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, len(scores)))
    chosen = chosen_by(torch.tensor(scores), count, seed)
    assert len(set(chosen)) == count
    assert chosen == sorted(chosen)
    rest = [score for index, score in enumerate(scores) if index not in chosen]
    if chosen and rest:
        assert max(scores[index] for index in chosen) <= min(rest)


@quick
@given(scores=score_lists, data=st.data())
def test_keep_largest_keeps_exactly_so_many(scores: list[float], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(scores)))
    kept = keep_largest(torch.tensor(scores), count, seed=0)
    assert int(kept.sum()) == count
    assert sorted(torch.tensor(scores)[kept].tolist()) == sorted(scores)[len(scores) - count :]


def test_a_million_ties_are_cut_by_count() -> None:
    assert int(keep_largest(torch.ones(1_000_000), 123_456, seed=0).sum()) == 123_456


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5, 0.97])
def test_many_scores_are_cut_as_sorting_would(share: float) -> None:
    scores = torch.randn(50_000, generator=torch.Generator().manual_seed(0))
    count = int(share * scores.numel())
    chosen = lowest(scores, count, seed=0)
    assert torch.equal(highest(-scores, count, seed=0), chosen)
    assert sorted(scores[chosen].tolist()) == sorted(scores.tolist())[:count]


def test_a_sample_that_misleads_costs_time_only() -> None:
    scores = torch.ones(100_000)
    scores[::61] = -1  # nearly all that a sample sees is small, nearly everything is not
    chosen = lowest(scores, 50_000, seed=0)
    assert int(chosen.sum()) == 50_000
    assert bool(chosen[::61].all())


def test_the_seed_decides_among_ties_only() -> None:
    tied = torch.tensor([0.0] + [1.0] * 50 + [2.0])
    one, again, other = (chosen_by(tied, 26, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert one[0] == other[0] == 0
    assert 51 not in one + other


def test_ties_fall_anywhere() -> None:
    """With 200 seeds, each of four tied elements is chosen about every second time."""
    chosen = [index for seed in range(200) for index in chosen_by(torch.zeros(4), 2, seed)]
    assert all(70 < chosen.count(index) < 130 for index in range(4))


@quick
@given(size=st.integers(0, 40), seed=st.integers(0, 10), data=st.data())
def test_keep_random_keeps_exactly_so_many(size: int, seed: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, size))
    kept = keep_random(size, count, seed)
    assert kept.shape == (size,)
    assert int(kept.sum()) == count
    assert torch.equal(kept, keep_random(size, count, seed))


def test_keep_random_differs_by_seed() -> None:
    assert not torch.equal(keep_random(40, 20, seed=0), keep_random(40, 20, seed=1))


def test_a_swap_by_hand() -> None:
    kept = torch.tensor([1, 1, 1, 0, 0, 0]).bool()
    strength = torch.tensor([0.3, 0.1, 0.2, 0.0, 0.0, 0.0])  # 1, then 2, is the weakest of the kept
    potential = torch.tensor([9.0, 9.0, 9.0, 0.5, 0.7, 0.6])  # 4 promises most of the pruned
    after = swapped(kept, Swap(drop=2, grow=1), strength=strength, potential=potential, seed=0)
    assert after.tolist() == [True, False, False, False, True, False]
    assert kept.tolist() == [True, True, True, False, False, False]


@quick
@given(kept=st.lists(st.booleans(), min_size=1, max_size=30), seed=st.integers(0, 5), data=st.data())
def test_what_is_dropped_cannot_return_and_counts_are_exact(
    kept: list[bool], seed: int, data: st.DataObject
) -> None:
    before = torch.tensor(kept)
    dropped = data.draw(st.integers(0, sum(kept)))
    grown = data.draw(st.integers(0, len(kept) - sum(kept)))
    same: Tensor = torch.zeros(len(kept))  # all tied, and the dropped ones have the best potential
    after = swapped(before, Swap(dropped, grown), strength=same, potential=same + before, seed=seed)
    assert int((before & ~after).sum()) == dropped
    assert int((~before & after).sum()) == grown


@pytest.fixture
def drawn() -> Graph:
    """Edges, in order: 0–1, 0–2, 0–3, 1–2, 3–4."""
    return Graph.from_edge_index(both_ways([(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)]), num_nodes=5)


def test_edge_degree_by_hand(drawn: Graph) -> None:
    pruned = drawn.prune(drop(5, 2, 3))  # degrees 2 1 1 1 1
    assert edge_degree(drawn, drawn).tolist() == [2.5, 2.5, 2.5, 2, 1.5]  # degrees 3 2 2 2 1
    assert edge_degree(drawn, pruned).tolist() == [1.5, 1.5, 1.5, 1, 1]


def test_edge_similarity_by_hand(drawn: Graph) -> None:
    # Without 0–3 and 1–2 the degrees are 2 1 1 1 1, so d^-1/2 is 1/√2 1 1 1 1. The mean over the
    # neighbours: node 0 (of 1, 2) 1; node 1 (of 0) 1/√2; node 2 (of 0) 1/√2; node 3 (of 4) 1; node 4 1.
    pruned = drawn.prune(drop(5, 2, 3))
    half = 2**-0.5
    assert edge_similarity(drawn, pruned).tolist() == pytest.approx([half, half, 1, half * half, 1])
    # Whole: degrees 3 2 2 2 1, d^-1/2 = t h h h 1. Means: 0: h; 1: (t+h)/2; 2: (t+h)/2; 3: (t+1)/2; 4: h.
    third = 3**-0.5
    mean = [half, (third + half) / 2, (third + half) / 2, (third + 1) / 2, half]
    products = [mean[a] * mean[b] for a, b in drawn.edges.T.tolist()]
    assert edge_similarity(drawn, drawn).tolist() == pytest.approx(products)


def test_a_node_without_neighbours_counts_as_one_in_similarity(drawn: Graph) -> None:
    pruned = drawn.prune(drop(5, 2, 4))  # 3 and 4 stand alone; the triangle 0 1 2 has d^-1/2 = 1/√2 all round
    assert edge_similarity(drawn, pruned).tolist() == pytest.approx([0.5, 0.5, 2**-0.5, 0.5, 1])


def test_edge_peripherality_by_hand(drawn: Graph) -> None:
    # Degrees 3 2 2 2 1, and the neighbours' means of d^-1/2 as above; each divided by the node's own degree.
    half, third = 2**-0.5, 3**-0.5
    shares = [half / 3, (third + half) / 4, (third + half) / 4, (third + 1) / 4, half]
    scores = edge_peripherality(drawn)
    assert scores.tolist() == pytest.approx([shares[a] * shares[b] for a, b in drawn.edges.T.tolist()])
    # 0–1 and 0–2 join the hub to nodes that know it, so they go before 0–3, whose other end leads outwards.
    assert scores.argsort(stable=True).tolist() == [0, 1, 2, 3, 4]


def test_low_degrees_promise_most(drawn: Graph) -> None:
    promise = EDGE_POTENTIALS["degree"](drawn, drawn)
    assert promise.tolist() == [-2.5, -2.5, -2.5, -2, -1.5]


@pytest.mark.parametrize(("drop", "grow"), [(0, 0), (70, 0), (0, 300), (900, 40), (1, 9000), (1000, 1)])
def test_a_swap_takes_what_sorting_everything_takes(drop: int, grow: int) -> None:
    draws = torch.Generator().manual_seed(drop + grow)
    kept = torch.zeros(10_000, dtype=torch.bool)
    kept[torch.randperm(10_000, generator=draws)[:1000]] = True
    strength, potential = torch.randn(10_000, generator=draws), torch.rand(10_000, generator=draws)
    after = swapped(kept, Swap(drop, grow), strength=strength, potential=potential, seed=0)
    weak = strength.abs().masked_fill(~kept, torch.inf).argsort()[:drop]
    promising = potential.masked_fill(kept, -torch.inf).argsort(descending=True)[:grow]
    assert set((kept & ~after).nonzero().flatten().tolist()) == set(weak.tolist())
    assert set((after & ~kept).nonzero().flatten().tolist()) == set(promising.tolist())


def test_a_swap_is_right_where_a_sample_misleads() -> None:
    potential = torch.zeros(1000)
    potential[::61] = 1.0  # all that the sample sees
    potential[7] = 0.5
    kept = torch.zeros(1000, dtype=torch.bool)
    after = swapped(kept, Swap(0, 18), strength=potential, potential=potential, seed=0)
    assert after.nonzero().flatten().tolist() == sorted([7, *range(0, 1000, 61)])


@pytest.mark.parametrize("swap", [Swap(1, 1), Swap(0, 2), Swap(2, 0)])
def test_a_swap_by_what_is_no_number_is_refused(swap: Swap) -> None:
    nothing = torch.tensor([torch.nan, 0.0, torch.nan, 0.0])
    kept = torch.tensor([True, True, False, False])
    with pytest.raises(InputError, match="must be numbers"):
        swapped(kept, swap, strength=nothing * 0 / 0, potential=nothing / 0, seed=0)
