import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from fastglt import InputError, Verdict


def verdict(dense: list[float], ticket: list[float], margin: float = 0.01, level: float = 0.05) -> Verdict:
    scores: dict[str, Any] = {"dense_scores": tuple(dense), "ticket_scores": tuple(ticket)}
    return Verdict(seeds=tuple(range(len(dense))), margin=margin, level=level, **scores)


def test_non_inferiority_by_hand() -> None:
    # differences 0, 1 and 2 points, helped by 1: mean 2, standard error 1/sqrt(3), t = 3.464 with 2 degrees
    found = verdict([0.80, 0.80, 0.80], [0.80, 0.81, 0.82])
    assert found.p_value == pytest.approx(0.0371, abs=1e-4)
    # t at 95 % with 2 degrees is 2.920: 1 point more or less 2.920/sqrt(3) = 1.686
    assert found.interval == pytest.approx((-0.00686, 0.02686), abs=1e-5)


def test_a_verdict_is_scipys_test() -> None:
    dense, ticket = np.random.default_rng(1).normal(0.8, 0.01, (2, 7)).tolist()
    found = verdict(dense, ticket, margin=0.005, level=0.1)
    expected = ttest_rel(np.add(ticket, 0.005), dense, alternative="greater")
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-8)
    assert found.non_inferior == (expected.pvalue < 0.1)
    assert found.interval == pytest.approx(tuple(ttest_rel(ticket, dense).confidence_interval(0.8)), rel=1e-8)


def test_a_clear_winner_and_a_clear_loser() -> None:
    won = verdict([0.80, 0.82, 0.81, 0.80], [0.81, 0.83, 0.81, 0.82])
    assert won.non_inferior
    assert won.plain_winning
    assert won.difference == pytest.approx(0.01)
    assert won.differences == pytest.approx((0.01, 0.01, 0.0, 0.02))
    lost = verdict([0.80, 0.82, 0.81, 0.80], [0.70, 0.71, 0.69, 0.70])
    assert not lost.non_inferior
    assert not lost.plain_winning


def test_the_two_rules_can_disagree() -> None:
    slightly_worse = verdict([0.800, 0.810, 0.820, 0.830], [0.799, 0.809, 0.819, 0.828])
    assert slightly_worse.non_inferior
    assert not slightly_worse.plain_winning
    noisy = verdict([0.80, 0.90, 0.70], [0.95, 0.70, 0.80])
    assert noisy.plain_winning
    assert not noisy.non_inferior


def test_the_level_decides_the_test_and_the_interval() -> None:
    scores = [0.80, 0.80, 0.80], [0.80, 0.81, 0.82]  # p = 0.0371
    assert verdict(*scores, level=0.05).non_inferior
    strict = verdict(*scores, level=0.03)
    assert not strict.non_inferior
    assert strict.interval[0] < -0.01 < verdict(*scores, level=0.05).interval[0]
    assert "94 % interval" in strict.sentence


def test_equal_differences_need_no_division() -> None:
    assert verdict([0.5, 0.75], [0.5, 0.75]).p_value == 0.0
    assert verdict([0.5, 0.75], [0.25, 0.5]).p_value == 1.0
    assert verdict([0.5, 0.75], [0.5, 0.75], margin=0.0).p_value == 1.0
    assert math.isnan(verdict([0.5, 0.75], [0.5, 0.75]).power)


def test_the_last_bits_decide_nothing() -> None:
    """0.79 − 0.80 and 0.80 − 0.81 differ in the last bits, and both from −0.01."""
    edge = verdict([0.80, 0.81, 0.82], [0.79, 0.80, 0.81])
    assert (edge.p_value, edge.non_inferior, edge.outcome) == (1.0, False, "undecided")
    assert edge.interval == (-0.01, -0.01)
    assert math.fsum([0.1, 0.2]) != math.fsum([0.15, 0.15])
    assert verdict([0.1, 0.2], [0.15, 0.15]).plain_winning
    assert verdict([0.15, 0.15], [0.1, 0.2]).plain_winning


def test_few_equal_differences_are_told() -> None:
    """What a test without a spread says is not hidden behind its level."""
    for ticket, shown in (
        (0.5, "is shown, by equal differences"),
        (0.8, "is ruled out (equal differences for all"),
    ):
        few = verdict([0.8, 0.8], [ticket, ticket])
        assert shown in few.sentence
        assert few.power_note.startswith("Power: unknown, for want of spread; equal differences for all seeds may")
    assert verdict([0.8] * 5, [0.8] * 5).power_note == ""


def test_one_seed_proves_nothing() -> None:
    single = verdict([0.8], [0.9])
    assert math.isnan(single.p_value)
    assert not single.non_inferior
    assert single.plain_winning
    assert str(single) == (
        "dense 80.00 %, ticket 90.00 % (test, n = 1)\n"
        "Undecided: the ticket's mean is at least the dense one (+10.00 points), and one seed proves nothing."
    )
    found = single.as_dict()
    unknown = ("dense_std", "ticket_std", "ci_low", "ci_high", "p_value", "power", "seeds_for_80_percent_power")
    assert {name for name, value in found.items() if value is None} == set(unknown)


SENTENCES = {
    "winning": (
        verdict([0.80, 0.82, 0.81, 0.80], [0.81, 0.83, 0.81, 0.82]),
        "Winning: the ticket's mean is at least the dense one (+1.00, 90 % interval +0.04 to +1.96 points), and a "
        "loss of 1 point or more is ruled out (p = 0.0081, level 5 %).",
    ),
    "non-inferior": (
        verdict([0.800, 0.810, 0.820, 0.830], [0.799, 0.809, 0.819, 0.828]),
        "Non-inferior: the ticket's mean is below the dense one (−0.12, 90 % interval −0.18 to −0.07 points), but "
        "a loss of 1 point or more is ruled out (p < 0.0001, level 5 %).",
    ),
    "inferior": (
        verdict([0.80, 0.82, 0.81, 0.80], [0.70, 0.71, 0.69, 0.70], margin=0.02),
        "Worse: the ticket's mean is below the dense one (−10.75, 90 % interval −11.88 to −9.62 points), and a "
        "loss of more than 2 points is shown, at level 5 %.",
    ),
    "undecided": (
        verdict([0.80, 0.82, 0.81], [0.81, 0.82, 0.80]),
        "Undecided: the ticket's mean is at least the dense one (+0.00, 90 % interval −1.69 to +1.69 points), but "
        "3 seeds neither rule out a loss of 1 point or more nor show it (p = 0.11, level 5 %).",
    ),
}


@pytest.mark.parametrize("outcome", SENTENCES)
def test_one_sentence_for_each_outcome(outcome: str) -> None:
    found, sentence = SENTENCES[outcome]
    assert (found.outcome, found.sentence) == (outcome, sentence)


def test_a_margin_of_nothing_asks_for_better_than_dense() -> None:
    better = verdict([0.80, 0.81, 0.82], [0.83, 0.84, 0.86], margin=0)
    assert (better.outcome, better.seeds_for_power) == ("winning", None)
    assert "being no better than dense is ruled out" in better.sentence
    assert "and a loss is shown" in verdict([0.83, 0.84, 0.86], [0.80, 0.81, 0.82], margin=0).sentence


def test_so_few_seeds_say_what_they_could_have_shown() -> None:
    few = SENTENCES["undecided"][0]  # a spread of 1 point: 8 seeds show a margin of 1 point with 80 %
    assert few.seeds_for_power == 8
    assert few.power == pytest.approx(0.3, abs=0.05)
    assert few.power_note == (
        "Power: a ticket truly as good as dense would pass this test with 3 seeds and this spread in about "
        f"{100 * few.power:.0f} % of cases; 80 % would take about 8 seeds."
    )
    assert str(few).endswith(few.power_note)
    enough = verdict([0.80, 0.81, 0.82, 0.83, 0.84], [0.801, 0.81, 0.821, 0.83, 0.84])
    assert enough.power > 0.99
    assert enough.power_note == ""
    assert "no number of seeds" in verdict([0.8, 0.8], [0.81, 0.8], margin=0).power_note


def test_as_plain_values_it_is_json_of_fractions() -> None:
    found = SENTENCES["undecided"][0].as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    exact = {"n": 3, "seeds": [0, 1, 2], "dense_scores": [0.80, 0.82, 0.81], "margin": 0.01, "level": 0.05}
    exact |= {"non_inferior": False, "plain_winning": True, "outcome": "undecided", "difference": 0.0}
    assert {name: found[name] for name in exact} == exact
    assert found["dense_mean"] == pytest.approx(0.81)
    assert found["ticket_std"] == pytest.approx(0.01)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((-0.016859, 0.016859), abs=1e-6)
    assert found["sentence"].startswith("Undecided")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"seeds": (), "dense_scores": (), "ticket_scores": ()}, "one dense and one ticket score per seed"),
        ({"ticket_scores": (0.5, 0.5)}, r"per seed \(got \(1, 1, 2\)\)"),
        ({"ticket_scores": (math.nan,)}, r"scores must be finite \(got nan\)"),
        ({"margin": -0.1}, r"margin must lie in \[0, 1\) \(got -0.1\)"),
        ({"margin": 1.0}, "margin must lie in"),
        ({"level": 0.0}, r"level must lie in \(0, 0.5\) \(got 0.0\)"),
        ({"level": 0.5}, "level must lie in"),
    ],
)
def test_a_verdict_checks_itself(fields: dict[str, Any], reason: str) -> None:
    given = {"seeds": (0,), "dense_scores": (0.5,), "ticket_scores": (0.5,)}
    with pytest.raises(InputError, match=reason):
        Verdict(**(given | fields))


def test_equal_scores_and_no_margin_are_told_as_what_they_are() -> None:
    verdict = Verdict(seeds=(0, 1), dense_scores=(0.8, 0.7), ticket_scores=(0.8, 0.7), margin=0.0)
    assert verdict.outcome == "undecided"
    assert verdict.sentence.startswith("Undecided: the ticket scores exactly as dense for every seed")


def test_two_opponents_are_told_apart() -> None:
    second = replace(verdict([0.83, 0.84], [0.81, 0.82]), against="dense_distilled")
    both = replace(verdict([0.80, 0.81], [0.81, 0.82]), distilled=second)
    found = both.as_dict()
    assert (found["dense_scores"], found["outcome"]) == ([0.80, 0.81], "winning")
    assert found.pop("distilled") == second.as_dict()
    assert found.keys() == second.as_dict().keys() == replace(both, distilled=None).as_dict().keys()
    assert second.sentence.startswith("Worse: the ticket's mean is below the distilled dense one (−2.00")
    assert str(both).splitlines()[-2:] == str(second).splitlines()[-2:]
    assert "distilled dense 83.50 ± 0.71 %" in str(both)
    with pytest.raises(InputError, match=r"unknown opponent \(got 'sparse'\)"):
        replace(second, against="sparse")
