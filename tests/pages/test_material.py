import sqlite3
from pathlib import Path

import pytest

from fastglt.pages.material import gather
from fastglt.tickets.ticket_file import load
from tests.pages.stores import dense, store, study, ticket


def test_a_stores_rows_and_a_folders_run_stand_beside_each_other(tmp_path: Path, finished_run: Path) -> None:
    place = store(tmp_path / "store.sqlite", [dense(0, 0.8), ticket(0, 0.8)])
    found = gather([place, finished_run])
    assert [row["kind"] for row in found.rows] == ["dense", "ticket", "ticket"]
    assert found.rows[-1]["ticket"] == str(finished_run / "ticket.safetensors")
    assert found.rows[-1]["method"] == "fastglt"
    assert found.rows[-1]["metrics"]["dense_test"] is not None
    assert found.sources == [str(place), str(finished_run)]
    assert found.notes == []


def test_a_folder_of_folders_is_read_whole(finished_run: Path) -> None:
    assert len(gather([finished_run.parent]).rows) == 1


def test_a_ticket_without_its_run_tells_what_it_knows(finished_run: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.safetensors"
    alone.write_bytes((finished_run / "ticket.safetensors").read_bytes())
    (row,) = gather([alone]).rows
    found = load(alone)
    assert (row["method"], row["model"], row["seed"]) == ("fastglt", "gcn", 0)
    assert row["metrics"]["edges_kept"] == found.masks.edges.count
    assert row["search_test"] == found.scores["search_test"]
    assert row["dataset"] is None


def test_an_empty_store_is_told(tmp_path: Path) -> None:
    place = store(tmp_path / "store.sqlite", [])
    found = gather([place])
    assert found.rows == []
    assert found.notes == [f"no run is recorded in '{place}' yet; `fastglt find` and others record theirs"]


def test_a_store_of_a_newer_fastglt_is_told(tmp_path: Path) -> None:
    place = store(tmp_path / "store.sqlite", [dense(0, 0.8)])
    with sqlite3.connect(place) as file:
        file.execute("PRAGMA user_version = 9")
    found = gather([place])
    assert any("must be of version 2 or before" in note for note in found.notes)


def test_of_a_damaged_store_what_is_whole_is_shown(tmp_path: Path) -> None:
    place = store(tmp_path / "store.sqlite", [dense(0, 0.8), dense(1, 0.8), dense(2, 0.8)])
    with sqlite3.connect(place) as file:
        file.execute("UPDATE runs SET dense_test = 0.99 WHERE id = 2")
    found = gather([place])
    assert [row["id"] for row in found.rows] == [1, 3]
    assert any("is damaged (row 2: its digest does not match)" in note for note in found.notes)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, "which is not there"),
        (lambda path: path.write_bytes(b"no store" * 50), "which is none of these, or damaged"),
        (lambda path: path.mkdir(), "without run.json"),
    ],
)
def test_what_is_no_place_for_runs_is_told_and_the_rest_is_read(make: object, told: str, tmp_path: Path) -> None:
    assert callable(make)
    make(tmp_path / "other")
    good = store(tmp_path / "store.sqlite", study(1)[:1])
    found = gather([tmp_path / "other", good])
    assert told in found.notes[0]
    assert (len(found.notes), found.unread) == (1, found.notes)
    assert len(found.rows) == 1


def test_a_store_is_told_to_be_empty_whatever_was_told_before(tmp_path: Path) -> None:
    found = gather([tmp_path / "other", store(tmp_path / "store.sqlite", [])])
    assert [note.split(" (")[0].split(" in ")[0] for note in found.notes] == ["runs must be", "no run is recorded"]
    assert len(found.unread) == 1


def test_a_folder_none_of_whose_runs_can_be_shown_is_unread(finished_run: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_bytes((finished_run / "run.json").read_bytes())
    found = gather([tmp_path / "runs"])
    assert len(found.notes) == 3
    assert found.unread == found.notes[-1:]
    assert "with none of 2" in found.unread[0]


def test_a_run_that_is_not_finished_is_told(finished_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "run.json").write_bytes((finished_run / "run.json").read_bytes())
    assert "must be finished" in gather([folder]).notes[0]


def test_a_folder_with_a_ticket_and_no_metrics_is_shown_as_a_ticket_file(
    finished_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json", "ticket.safetensors"):
        (folder / name).write_bytes((finished_run / name).read_bytes())
    found = gather([folder])
    (row,) = found.rows
    assert (found.notes, row["ticket"]) == ([], str(folder / "ticket.safetensors"))
    begun = gather([finished_run]).rows[0]["settings"]
    assert {name: row["settings"][name] for name in ("dataset", "split_seed")} == {
        name: begun[name] for name in ("dataset", "split_seed")
    }
    (folder / "checkpoint").mkdir()
    assert "must be finished" in gather([folder]).notes[0], "it is about to be"
