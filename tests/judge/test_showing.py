import pytest

from fastglt import Verdict

WINNING = Verdict(seeds=(0, 1, 2), dense_scores=(0.80, 0.81, 0.82), ticket_scores=(0.81, 0.81, 0.83))


def test_a_verdict_shows_its_sentence_and_seeds() -> None:
    shown = WINNING._repr_html_()
    assert "Winning: the ticket" in shown
    assert shown.count("<tr>") == 4
    assert "+1.00" in shown


def test_a_verdict_is_drawn_seed_by_seed_below_its_mean() -> None:
    picture = WINNING.plot()
    rows = picture.spec["data"]["values"]
    assert [row["label"] for row in rows] == ["mean", "seed 0", "seed 1", "seed 2"]
    assert [row["difference"] for row in rows] == pytest.approx([2 / 3, 1.0, 0.0, 1.0])
    low, high = WINNING.interval
    assert (rows[0]["low"], rows[0]["high"]) == pytest.approx((100 * low, 100 * high))
    assert picture.title == WINNING.sentence
    assert "<svg" in picture.svg()


def test_one_seed_has_no_interval_and_splits_are_named() -> None:
    one = Verdict(seeds=(4,), dense_scores=(0.8,), ticket_scores=(0.7,), split_seeds=(2,))
    rows = one.plot().spec["data"]["values"]
    assert rows[0]["low"] is None
    assert rows[1]["label"] == "seed 4, split 2"


def test_a_distilled_ticket_has_two_opponents() -> None:
    taught = Verdict(seeds=(0, 1), dense_scores=(0.8, 0.9), ticket_scores=(0.8, 0.9), against="dense_distilled")
    both = Verdict(seeds=(0, 1), dense_scores=(0.7, 0.8), ticket_scores=(0.8, 0.9), distilled=taught)
    scores = dict.fromkeys(row["score"] for row in both.plot().spec["data"]["values"])
    assert list(scores) == ["against dense", "against dense distilled"]
