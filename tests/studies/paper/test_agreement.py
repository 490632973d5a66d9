import pytest

from fastglt.studies.paper.agreement import Agreement


@pytest.mark.parametrize(
    ("ours", "outcome"),
    [
        ((0.801, 0.803, 0.802), "agrees"),
        ((0.830, 0.832, 0.831), "higher"),
        ((0.770, 0.772, 0.771), "lower"),
        ((0.780, 0.803, 0.825), "undecided"),
        ((0.803,), "undecided"),
    ],
)
def test_the_interval_decides(ours: tuple[float, ...], outcome: str) -> None:
    assert Agreement(ours=ours, published=0.803).outcome == outcome


def test_the_sentence_has_both_numbers_and_the_interval() -> None:
    found = Agreement(ours=(0.80, 0.81), published=0.803).sentence
    assert found == (
        "ours 80.50 ± 0.71 (n = 2), the paper's 80.30, difference +0.20 (90 % interval −2.96 to +3.36): undecided."
    )
    assert Agreement(ours=(0.803,), published=0.803).sentence.endswith("undecided, one seed proves nothing.")
