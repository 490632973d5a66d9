"""A finished run as entries of the store."""

from pathlib import Path

from fastglt.runs.entries import entries_of_find, entry_of, stored_settings
from fastglt.runs.store import key_of

TICKET = {"dataset": "cora", "seed": 1, "method": "ugs"}
DENSE = {"dataset": "cora", "seed": 1, "dense": True}
ABOUT = {"dataset": "cora", "model": "gcn", "metric": "accuracy", "seed": 1, "split_seed": 0, "epochs": 9}
WHERE = {"threads": 1, "device": "cpu"}


def test_where_the_twin_is_does_not_tell_tickets_apart() -> None:
    assert stored_settings({**TICKET, "dense": False}) == TICKET
    assert stored_settings(DENSE) == DENSE


def test_a_ticket_has_a_file_and_a_twin_has_none() -> None:
    ticket = entry_of({**TICKET, "dense": False}, {}, command="compare", folder=Path("runs/a"))
    assert (ticket.key, ticket.kind, ticket.command) == (key_of(TICKET), "ticket", "compare")
    assert ticket.folder == str(Path.cwd() / "runs/a")
    assert ticket.ticket == str(Path.cwd() / "runs/a/ticket.safetensors")
    dense = entry_of(DENSE, {}, command="compare", folder=Path("/runs/a"))
    assert (dense.key, dense.kind, dense.folder, dense.ticket) == (key_of(DENSE), "dense", "/runs/a", None)


def test_a_ticket_and_its_twin_are_taken_apart() -> None:
    own = {"method": "ugs", "search_test": 0.5, "winning_search": True, "winning_isolated": None, "macs_dense": 7}
    twin = {"dense_val": 0.25, "dense_test": 0.5, "dense_seconds": 3.0}
    metrics = {**ABOUT, **own, **twin, **WHERE}
    ticket, dense = entries_of_find(TICKET, {"dense": DENSE}, metrics, command="find", folder=Path("/runs/a"))
    assert ticket.metrics == {**ABOUT, "method": "ugs", "search_test": 0.5, "macs_dense": 7, **WHERE}
    assert dense.metrics == {**ABOUT, **twin, **WHERE}
    assert (ticket.key, dense.key) == (key_of(TICKET), key_of(DENSE))


def test_so_are_a_distilled_ticket_and_its_two_twins() -> None:
    own = {"method": "ugs", "search_test": 0.5, "winning_search": True, "winning_search_distilled": False}
    teacher = {"distill": 2.0, "teacher_val": 0.25, "teacher_test": 0.5, "teacher_seconds": 3.0}
    plain = {"dense_val": 0.25, "dense_test": 0.5, "dense_seconds": 3.0}
    taught = {"dense_distilled_val": 0.75, "dense_distilled_test": 0.875, "dense_distilled_seconds": 4.0}
    metrics = {**ABOUT, **own, **teacher, **plain, **taught, **WHERE}
    settings = {"dense": DENSE, "dense_distilled": {**DENSE, "distill": 2.0}}
    entries = entries_of_find({**TICKET, "distill": 2.0}, settings, metrics, command="find", folder=Path("/a"))
    assert [entry.kind for entry in entries] == ["ticket", "dense", "dense"]
    assert len({entry.key for entry in entries}) == 3
    ticket, dense, distilled = (entry.metrics for entry in entries)
    assert ticket == {**ABOUT, "method": "ugs", "search_test": 0.5, **teacher, **WHERE}
    assert dense == {**ABOUT, **plain, **WHERE}
    assert distilled == {**ABOUT, **teacher, **taught, **WHERE}
