import pytest

from fastglt.pages.cells import cells_of
from tests.pages.stores import dense, rows, study, ticket


def test_each_ticket_stands_beside_its_own_twin() -> None:
    (cell,) = cells_of(rows([dense(0, 0.80), dense(1, 0.82), ticket(0, 0.81), ticket(1, 0.81)]))
    assert [(run["seed"], run["dense_test"], run["search_test"]) for run in cell["runs"]] == [
        (0, 0.80, 0.81),
        (1, 0.82, 0.81),
    ]
    assert cell["mean"]["dense_test"] == pytest.approx(0.81)
    assert cell["std"]["dense_test"] == pytest.approx(0.0141421, abs=1e-6)
    assert cell["verdicts"]["search"]["difference"] == pytest.approx(0.0)
    assert cell["verdicts"]["isolated"]["difference"] == pytest.approx(-0.01)


@pytest.mark.parametrize(
    "other",
    [{"epochs": 7}, {"hidden": 9}, {"lr": 0.02}, {"graph": "d" * 64}, {"threads": 2}],
    ids=["epochs", "network", "recipe", "graph", "threads"],
)
def test_a_twin_of_something_else_is_none(other: dict[str, object]) -> None:
    (cell,) = cells_of(rows([dense(0, 0.80, **other), ticket(0, 0.81)]))  # type: ignore[arg-type]
    assert cell["mean"]["dense_test"] is None
    assert cell["verdicts"] == {"search": None, "isolated": None}


def test_a_distilled_ticket_has_two_twins() -> None:
    found = rows([dense(0, 0.80), dense(0, 0.0, distill=1.0), ticket(0, 0.81, distill=1.0)])
    found[1]["metrics"] = {"dense_distilled_test": 0.83, "epochs": 6}
    (cell,) = cells_of(found)
    assert cell["label"] == "fastglt distilled"
    assert cell["verdicts"]["search"]["dense_scores"] == [0.80]
    assert cell["verdicts_distilled"]["search"]["dense_scores"] == [0.83]


def test_settings_make_cells_and_a_seed_counts_once() -> None:
    cells = cells_of(rows([*study(), ticket(0, 0.5, threads=4)]))
    assert [(cell["method"], cell["graph_sparsity"], cell["n"]) for cell in cells] == [
        ("fastglt", 0.2, 3),
        ("fastglt", 0.5, 3),
        ("random", 0.2, 3),
        ("random", 0.5, 3),
    ]
    assert cells[0]["runs"][0]["search_test"] == 0.5  # the latest of its seed


def test_cells_that_would_look_alike_say_what_differs() -> None:
    cells = cells_of(
        rows([ticket(0, 0.8, options={"ramp": 0.8}), ticket(0, 0.8, options={"ramp": 1.0}, hidden=16)])
    )
    assert [cell["label"] for cell in cells] == ["fastglt (hidden 8, ramp 0.8)", "fastglt (hidden 16, ramp 1.0)"]


def test_scores_that_are_no_numbers_are_none() -> None:
    (cell,) = cells_of(rows([ticket(0, float("nan")), dense(0, 0.8)]))
    assert cell["mean"]["search_test"] is None
    assert cell["verdicts"]["search"] is None
