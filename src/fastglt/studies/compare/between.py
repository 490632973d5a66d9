"""Methods against each other: the first one named is the reference, and each of the others is tested against it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastglt.judge.paired import PairedTest, holm, two_sided
from fastglt.judge.verdict import Verdict
from fastglt.system.container import nan_as_null

Cell = Mapping[str, Any]
SCORES = ("search", "isolated")


def between_methods(cells: Sequence[Cell], level: float = Verdict.level) -> list[dict[str, Any]]:
    """Each method's test scores against those of the first, at each pair of sparsities; fractions.

    A two-sided t-test on pairs of equal split and seed. The tests at one pair of sparsities, both scores, are
    corrected together by Holm's procedure: the probability that any of them finds a difference where there is
    none is at most the level.
    """
    found = []
    for _, (first, *others) in by_sparsities(cells):
        asked = [(cell, score) for cell in others for score in SCORES]
        tests = [_test(first, cell, score, level) for cell, score in asked]
        p_values = [two_sided(test) for test in tests]
        for (cell, score), test, p, corrected in zip(asked, tests, p_values, holm(p_values), strict=True):
            numbers = {**_numbers(test), "level": level, "p_value": p, "p_holm": corrected}
            outcome = "undecided" if not corrected < level else "better" if numbers["difference"] > 0 else "worse"
            found.append(
                {
                    **{name: cell[name] for name in ("graph_sparsity", "weight_sparsity", "method")},
                    "against": first["method"],
                    "score": score,
                    "n": test.n,
                    **nan_as_null(numbers),
                    "outcome": outcome,
                }
            )
    return found


def by_sparsities(cells: Sequence[Cell]) -> Iterator[tuple[tuple[float, float], list[Cell]]]:
    """The cells of each pair of sparsities, in the order they were asked for."""
    pairs = dict.fromkeys((cell["graph_sparsity"], cell["weight_sparsity"]) for cell in cells)
    for pair in pairs:
        yield pair, [cell for cell in cells if (cell["graph_sparsity"], cell["weight_sparsity"]) == pair]


def _test(first: Cell, second: Cell, score: str, level: float) -> PairedTest:
    """The second's scores minus the first's, over the pairs that both have, with an interval of 1 − level."""
    one, other = (_scores(cell, score) for cell in (first, second))
    differences = np.array([other[pair] - one[pair] for pair in one if pair in other], dtype=np.float64)
    return PairedTest(differences=differences, margin=0.0, level=level / 2)


def _numbers(test: PairedTest) -> dict[str, float]:
    if not test.n:
        return dict.fromkeys(("difference", "ci_low", "ci_high"), float("nan"))
    low, high = test.interval
    return {"difference": float(test.mean), "ci_low": float(low), "ci_high": float(high)}


def _scores(cell: Cell, score: str) -> dict[tuple[Any, int], float]:
    """Test scores by split seed, where there are several, and seed."""
    key = f"{score}_test"
    return {(row.get("split_seed"), row["seed"]): row[key] for row in cell["runs"] if row[key] is not None}
