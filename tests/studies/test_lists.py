import numpy as np
import pytest

from fastglt.errors import InputError
from fastglt.studies.lists import read_names, read_pairs, read_seeds


def test_sequences_and_texts_say_the_same() -> None:
    assert read_seeds(range(3)) == read_seeds("0-2") == read_seeds(np.arange(3)) == [0, 1, 2]
    assert read_seeds([4, 2, 4]) == [4, 2]
    assert read_pairs([0.2, 0.05], 0.9) == read_pairs("0.2,0.05", "0.9") == [(0.2, 0.9), (0.05, 0.9)]
    assert read_pairs(np.array([0.1, 0.2]), (0.5, 0.6)) == [(0.1, 0.5), (0.2, 0.6)]
    assert read_pairs(0, 0.5) == [(0.0, 0.5)]
    assert read_names("rules", ["plain", "non-inferior"]) == read_names("rules", "plain,non-inferior")


def test_numbers_are_plain_ones() -> None:
    """So that keys of runs do not depend on who made them."""
    assert [type(seed) for seed in read_seeds(np.arange(1))] == [int]
    assert [type(share) for share in read_pairs(np.array([0.1]), 0)[0]] == [float, float]


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ([], r"seeds must name at least one \(got \[\]\)"),
        ([1.5], r"seeds must be a whole number \(got 1.5\)"),
        ([-1], r"seeds must not be negative \(got -1\)"),
        (["0"], r"seeds must be a number \(got '0'\)"),
    ],
)
def test_seeds_that_are_none_are_refused(seeds: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_seeds(seeds)


def test_sparsities_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="graph_sparsity must be comma-separated numbers"):
        read_pairs(["much"], 0.5)  # type: ignore[list-item]
    with pytest.raises(InputError, match="graph_sparsity must name at least one"):
        read_pairs([], 0.5)
