import pytest

from fastglt.pages.cells import cells_of
from fastglt.studies.compare import figures
from tests.pages.stores import dense, rows, study, ticket

CELLS = cells_of(rows(study()))
(PANEL,) = figures.panels(CELLS)


def test_panels_are_graphs_and_models_the_largest_first() -> None:
    assert PANEL[0] == "toy · gcn"
    both = figures.panels(cells_of(rows([ticket(0, 0.8, dataset="other"), *study()])))
    assert [name for name, _ in both] == ["toy · gcn", "other · gcn"]


def test_scores_over_sparsity_are_means_with_bands() -> None:
    search, alone = figures.over_sparsity(*PANEL)
    values = search.spec["data"]["values"]
    assert [(row["method"], row["sparsity"]) for row in values] == [
        ("fastglt", 20.0),
        ("random", 20.0),
        ("fastglt", 50.0),
        ("random", 50.0),
    ]
    assert (values[0]["mean"], values[0]["low"], values[0]["high"]) == pytest.approx((82.0, 81.0, 83.0))
    assert values[0]["about"] == "fastglt, e −20 %, w −90 %: 82.00 ± 1.00 % (n = 3)"
    assert alone.spec["data"]["values"][0]["mean"] == pytest.approx(81.0)
    assert "the grey line is dense, 81.00 %" in search.text


def test_no_curve_of_a_single_sparsity() -> None:
    assert list(figures.over_sparsity("toy", CELLS[:1])) == []


def test_verdicts_are_differences_with_intervals() -> None:
    (picture,) = figures.verdicts(*PANEL)
    first = picture.spec["data"]["values"][0]
    assert (first["label"], first["score"]) == ("fastglt, e −20 %, w −90 %", "end of search")
    assert (first["difference"], first["low"], first["high"]) == pytest.approx((1.0, 1.0, 1.0))
    assert first["about"].endswith("winning, n = 3")


def test_one_seed_has_no_interval() -> None:
    (picture,) = figures.verdicts("toy", cells_of(rows([dense(0, 0.8), ticket(0, 0.8)])))
    assert picture.spec["data"]["values"][0]["low"] is None


def test_methods_stand_side_by_side_at_equal_sparsities() -> None:
    first, second = figures.side_by_side(*PANEL)
    assert first.title == "toy · gcn: 20 % of edges and 90 % of weights removed"
    assert [(row["method"], row["score"]) for row in second.spec["data"]["values"]][:3] == [
        ("fastglt", "dense"),
        ("fastglt", "end of search"),
        ("fastglt", "retrained alone"),
    ]


def test_the_front_is_that_of_cost_and_score() -> None:
    cells = cells_of(rows([ticket(0, 0.8, weight=w) for w in (0.5, 0.9)] + [ticket(0, 0.9, weight=0.7)]))
    search, _ = figures.fronts("toy", cells)
    assert {row["cost"]: row["on_front"] for row in search.spec["data"]["values"]} == pytest.approx(
        {50.0: False, 10.0: True, 30.0: True}
    )
