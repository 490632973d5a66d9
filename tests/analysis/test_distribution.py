import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fastglt.analysis.distribution import Distribution, degree_bins, magnitude_bins


def test_by_hand() -> None:
    found = Distribution.of(torch.tensor([[1.0, 3.0], [0.0, 4.0]]), (0, 1, 2, 4))
    assert (found.count, found.mean, found.counts) == (4, 2.0, (1, 1, 2))  # the last bin has both its edges
    quantiles = {"min": 0.0, "p10": 0.3, "p25": 0.75, "median": 2.0, "p75": 3.25, "p90": 3.7, "max": 4.0}
    assert found.quantiles == pytest.approx(quantiles)
    assert found.bin_edges == (0, 1, 2, 4)


def test_of_no_numbers() -> None:
    found = Distribution.of(torch.empty(0), (0, 1))
    assert (found.count, found.mean, dict(found.quantiles), found.counts) == (0, None, {}, (0,))


@pytest.mark.parametrize(
    ("largest", "edges"), [(0, (0, 1)), (1, (0, 1, 2)), (3.5, (0, 1, 2, 4)), (8, (0, 1, 2, 4, 8, 16))]
)
def test_degree_bins(largest: float, edges: tuple[float, ...]) -> None:
    assert degree_bins(largest) == edges


def test_magnitude_bins() -> None:
    edges = magnitude_bins(torch.tensor([0.02, 0.0]))  # between 10^-2 and 10^-1.5
    assert edges == pytest.approx((0, *(10 ** (half / 2) for half in range(-12, -2))))
    assert magnitude_bins(torch.zeros(3))[-1] == 1
    assert magnitude_bins(torch.empty(0)) == magnitude_bins(torch.zeros(3))


@given(st.lists(st.floats(0, 1e6, allow_subnormal=False), max_size=30))
def test_every_number_lies_in_a_bin(values: list[float]) -> None:
    numbers = torch.tensor(values, dtype=torch.float64)
    for edges in (degree_bins(max(values, default=0)), magnitude_bins(numbers)):
        assert list(edges) == sorted(set(edges))
        found = Distribution.of(numbers, edges)
        assert sum(found.counts) == found.count == len(values)
        if values:
            assert found.mean is not None
            assert math.isclose(found.mean, math.fsum(values) / len(values), rel_tol=1e-9, abs_tol=1e-12)
