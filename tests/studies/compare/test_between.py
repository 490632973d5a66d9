"""Methods against the first one named: scipy's paired t-test, and Holm's correction by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fastglt.studies.compare.between import between_methods

Scores = Sequence[float | None]
FIRST = [0.80, 0.82, 0.79, 0.81]
BETTER = [0.85, 0.86, 0.85, 0.86]
NEAR = [0.81, 0.80, 0.80, 0.81]
WORSE = [0.70, 0.74, 0.71, 0.70]


def cell(method: str, search: Scores, isolated: Scores, **changes: Any) -> dict[str, Any]:
    pairs = zip(range(len(search)), search, isolated, strict=True)
    runs = [{"seed": seed, "search_test": one, "isolated_test": other} for seed, one, other in pairs]
    return {"method": method, "graph_sparsity": 0.2, "weight_sparsity": 0.9, "runs": runs, **changes}


def test_each_method_against_the_first() -> None:
    tests = between_methods([cell("a", FIRST, FIRST), cell("b", BETTER, NEAR), cell("c", NEAR, WORSE)])
    assert [(test["method"], test["against"], test["score"]) for test in tests] == [
        ("b", "a", "search"),
        ("b", "a", "isolated"),
        ("c", "a", "search"),
        ("c", "a", "isolated"),
    ]
    assert [test["outcome"] for test in tests] == ["better", "undecided", "undecided", "worse"]
    for test, scores in zip(tests, (BETTER, NEAR, NEAR, WORSE), strict=True):
        expected = ttest_rel(scores, FIRST)
        interval = expected.confidence_interval(0.95)
        assert test["n"] == 4
        assert test["p_value"] == pytest.approx(expected.pvalue)
        assert test["difference"] == pytest.approx(np.mean(scores) - np.mean(FIRST))
        assert (test["ci_low"], test["ci_high"]) == pytest.approx((interval.low, interval.high))
    least = min(test["p_value"] for test in tests)  # of "worse"; three times that of "better" would be less
    assert [test["p_holm"] for test in tests] == pytest.approx([4 * least, 1, 1, 4 * least])


def test_what_a_single_test_shows_may_not_stand_among_several() -> None:
    barely = [0.82, 0.85, 0.80, 0.83]
    p = ttest_rel(barely, FIRST).pvalue
    assert 0.05 / 4 < p < 0.05 / 3
    alone, *_ = between_methods([cell("a", FIRST, FIRST), cell("b", barely, NEAR)])
    assert (alone["p_holm"], alone["outcome"]) == (pytest.approx(2 * p), "better")
    among, *_ = between_methods([cell("a", FIRST, FIRST), cell("b", barely, NEAR), cell("c", NEAR, NEAR)])
    assert (among["p_holm"], among["outcome"]) == (pytest.approx(4 * p), "undecided")


def test_every_pair_of_sparsities_is_a_family_of_its_own() -> None:
    dense = {"weight_sparsity": 0.5}
    cells = [cell(name, scores, scores) for name, scores in (("a", FIRST), ("b", WORSE))]
    more = [cell(name, scores, scores, **dense) for name, scores in (("a", FIRST), ("b", BETTER))]
    tests = between_methods([*cells, *more])
    assert [(test["weight_sparsity"], test["outcome"]) for test in tests] == [
        (0.9, "worse"),
        (0.9, "worse"),
        (0.5, "better"),
        (0.5, "better"),
    ]
    assert tests[:2] == between_methods(cells)


def test_only_seeds_that_both_have_are_paired() -> None:
    """And a seed on two splits is two pairs."""
    lacking = cell("b", [None, *BETTER[1:]], BETTER)
    lacking["runs"] = lacking["runs"][::-1]
    search, isolated = between_methods([cell("a", FIRST, FIRST), lacking])
    assert (search["n"], isolated["n"]) == (3, 4)
    assert search["p_value"] == pytest.approx(ttest_rel(BETTER[1:], FIRST[1:]).pvalue)
    both = [cell("a", FIRST, FIRST), cell("b", BETTER, NEAR)]
    for one in both:
        for place, row in enumerate(one["runs"]):
            row.update(split_seed=place // 2, seed=place % 2)
    assert between_methods(both)[0]["n"] == 4


def test_one_seed_shows_nothing_and_one_method_has_no_opponent() -> None:
    for test in between_methods([cell("a", FIRST[:1], FIRST[:1]), cell("b", BETTER[:1], [None])]):
        assert (test["p_value"], test["p_holm"], test["ci_low"], test["outcome"]) == (None, None, None, "undecided")
    assert between_methods([cell("a", FIRST, FIRST)]) == []


def test_equal_differences_are_taken_at_face_value() -> None:
    """As in a verdict: there is no spread to test by."""
    tests = between_methods([cell("a", [0.5, 0.6], [0.5, 0.6]), cell("b", [0.5, 0.6], [0.75, 0.85])])
    assert [(test["p_holm"], test["outcome"]) for test in tests] == [(1.0, "undecided"), (0.0, "better")]
