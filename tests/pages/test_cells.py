from dataclasses import replace
from typing import Any

import pytest

from fastglt.pages.cells import cells_of
from fastglt.runs.store import Entry
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


def on(entry: Entry, **settings: Any) -> Entry:
    """The same run with other settings."""
    return replace(entry, settings={**entry.settings, **settings})


def link(split: int, seed: int = 0, **settings: Any) -> Entry:
    """A ticket for links: which edges are messages, and so the graph, follows from the split."""
    options = {"task_options": {"split_seed": split}} if split else {}
    about = {"task": "link", "graph": f"{split}" * 64, "labels_and_split": f"{split + 4}" * 64}
    return on(ticket(seed, 0.8, split_seed=split), **{**about, **options, **settings})


def hidden(split: int, share: float = 0.2) -> Entry:
    """A ticket from which nodes were hidden that the split has drawn."""
    told = {"share": share, "split_seed": split, "of": f"{split}" * 64}
    digests = dict.fromkeys(("graph", "features", "labels_and_split", "edge_values"), f"{split + 4}" * 64)
    return on(ticket(0, 0.8, split_seed=split), inductive=told, **digests)


def test_seeds_of_the_split_are_runs_of_one_cell_whatever_follows_from_it() -> None:
    for entries in ([link(0), link(1), link(1, seed=1)], [hidden(0), hidden(1), hidden(3)]):
        (cell,) = cells_of(rows(entries))
        assert (cell["n"], cell["label"]) == (3, "fastglt")
    options: dict[str, Any] = {"task_options": {"split_seed": 1, "decoding": "dot"}}
    assert [cell["n"] for cell in cells_of(rows([link(0), link(1), link(1, **options)]))] == [2, 1]
    cells = cells_of(rows([hidden(0), hidden(1), hidden(0, 0.4), hidden(1, 0.4)]))
    assert [(cell["n"], cell["label"]) for cell in cells] == [
        (2, "fastglt (share 0.2)"),
        (2, "fastglt (share 0.4)"),
    ]


def test_other_data_of_the_same_name_are_other_cells() -> None:
    one, other = (dict[str, Any](labels_and_split=sign * 64) for sign in "de")
    entries = [
        ticket(seed, 0.8, graph=graph, **data) for data in (one, other) for seed in (0, 1) for graph in (0.2, 0.5)
    ]
    cells = cells_of(rows(entries))
    assert [(cell["label"], cell["graph_sparsity"], cell["n"]) for cell in cells] == [
        ("fastglt (data 1)", 0.2, 2),
        ("fastglt (data 2)", 0.2, 2),
        ("fastglt (data 1)", 0.5, 2),
        ("fastglt (data 2)", 0.5, 2),
    ]
    assert [cell["n"] for cell in cells_of(rows([link(0), link(1), link(0, graph="f" * 64)]))] == [1, 1, 1]
