from pathlib import Path

from fastglt.pages.cells import cells_of
from fastglt.pages.headline import featured_run, headline
from tests.pages.stores import dense, rows, study, ticket

CELLS = cells_of(rows(study()))


def test_the_headline_is_the_sparsest_that_passes() -> None:
    found = headline(CELLS)
    assert found.cell is not None
    assert (found.cell["method"], found.cell["graph_sparsity"]) == ("fastglt", 0.2)
    where = "On toy with gcn, 20 % of edges and 90 % of weights removed: "
    assert found.sentence.startswith(f"{where}a ticket of fastglt, retrained alone, is winning")
    assert "Chosen from 4 settings" in found.note


def test_the_headline_without_a_pass_is_the_nearest_to_dense() -> None:
    losing = [dense(0, 0.9), dense(1, 0.8)]
    losing += [ticket(0, 0.7), ticket(1, 0.75), ticket(0, 0.6, graph=0.5), ticket(1, 0.7, graph=0.5)]
    found = headline(cells_of(rows(losing)))
    assert found.cell is not None
    assert found.cell["graph_sparsity"] == 0.2


def test_nothing_found_is_said_and_no_ticket_is_looked_for() -> None:
    assert headline([]).sentence == "No ticket has been found yet."
    assert featured_run([], None) is None
    assert featured_run(CELLS, CELLS[0]) is None  # their tickets have no files


def test_a_ticket_that_is_there_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("a ticket")
    places = [None, tmp_path / "gone", tmp_path / "here"]
    cells = cells_of(rows(ticket(seed, 0.8, path=path) for seed, path in enumerate(places)))
    run = featured_run(cells, None)
    assert run is not None
    assert run["seed"] == 2
