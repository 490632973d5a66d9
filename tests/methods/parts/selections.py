"""Cuts and swaps by all processes of a run beside those by one, on the same examples in each of them."""

from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastglt.masks import Mask
from fastglt.methods.parts.ranking import EDGE_POTENTIALS, keep_largest, swapped
from fastglt.methods.parts.schedules import Swap
from fastglt.methods.parts.selection import degree_potential_of_all, keep_largest_of_all, swapped_of_all
from fastglt.system.ranges import Ranges
from fastglt.system.ranks import joined, world
from tests.helpers import toy_task

SOME = [0.0, -0.0, 1.0, 1.0, -1.0, 2.5, float("inf"), -float("inf"), 1e-45]
numbers = st.floats(width=32, allow_nan=False) | st.sampled_from(SOME)  # many of them tied
kinds = st.sampled_from([torch.float32, torch.float64])
seeds = st.integers(0, 2**62)
# Without a clock or a database every process draws the same.
same = settings(
    derandomize=True, database=None, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck)
)


@same
@given(values=st.lists(numbers, min_size=1, max_size=40), kind=kinds, seed=seeds, data=st.data())
def check_cuts(values: list[float], kind: torch.dtype, seed: int, data: Any) -> None:
    """The largest strengths of all."""
    strengths, count = torch.tensor(values, dtype=kind), data.draw(st.integers(0, len(values)))
    ranges = Ranges(len(values), world())
    found = keep_largest_of_all(ranges, ranges.own(strengths), count, seed)
    assert torch.equal(found, keep_largest(strengths, count, seed))


@same
@given(elements=st.lists(st.tuples(st.booleans(), numbers, numbers), max_size=40), seed=seeds, data=st.data())
def check_swaps(elements: list[tuple[bool, float, float]], seed: int, data: Any) -> None:
    """The smallest strengths of what is kept, the highest potentials of what is not."""
    kept = torch.tensor([each[0] for each in elements], dtype=torch.bool)
    strength, potential = (torch.tensor([each[part] for each in elements]) for part in (1, 2))
    alive = int(kept.sum())
    swap = Swap(drop=data.draw(st.integers(0, alive)), grow=data.draw(st.integers(0, len(elements) - alive)))
    ranges = Ranges(len(elements), world())
    found = swapped_of_all(ranges, kept, swap, strength=ranges.own(strength), potential=potential, seed=seed)
    assert torch.equal(found, swapped(kept, swap, strength=strength, potential=potential, seed=seed))


def check_degrees() -> None:
    """The potentials of pruned edges, counted together."""
    graph, kept = toy_task().graph, torch.arange(toy_task().graph.num_edges) % 3 > 0
    ranges = Ranges(graph.num_edges, world())
    found = degree_potential_of_all(ranges, graph.edges, kept, graph.num_nodes)
    expected = EDGE_POTENTIALS["degree"](graph, graph.prune(Mask(kept)))
    assert torch.equal(found, ranges.own(expected))
    assert found.dtype == expected.dtype


def check_many() -> None:
    """More values than are drawn above, most of them different."""
    values = torch.randn(20_001, generator=torch.Generator().manual_seed(0))
    values[::3] = 0.5
    ranges = Ranges(len(values), world())
    for count in (0, 1, 700, 10_000, 10_001, 14_000, 20_000, 20_001):
        found = keep_largest_of_all(ranges, ranges.own(values), count, seed=3)
        assert torch.equal(found, keep_largest(values, count, seed=3))


if __name__ == "__main__":
    with joined():
        check_cuts()
        check_swaps()
        check_many()
        check_degrees()
