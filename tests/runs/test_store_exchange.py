"""Runs that go from one store to another, by a text file or straight."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastglt import InputError
from fastglt.runs.store import Store
from fastglt.runs.store_exchange import share, take
from tests.runs.test_store import entry


def filled(path: Path, *, folder: str = "/elsewhere/a") -> Store:
    store = Store(path)
    for seed in range(3):
        store.record(entry(settings={"seed": seed}, folder=folder, ticket=f"{folder}/ticket.safetensors"))
    return store


def facts(store: Store) -> list[dict[str, Any]]:
    """Rows without what a store itself gives or leaves out."""
    return [{n: v for n, v in row.items() if n not in ("id", "folder", "ticket")} for row in store.rows()]


def test_a_file_has_all_but_the_places(tmp_path: Path) -> None:
    old, new = filled(tmp_path / "a.sqlite"), Store(tmp_path / "b.sqlite")
    share(old.rows(), tmp_path / "runs.jsonl")
    assert "/elsewhere" not in (tmp_path / "runs.jsonl").read_text()
    assert take(tmp_path / "runs.jsonl", new) == (3, 0)
    assert facts(new) == facts(old)
    assert {(row["folder"], row["ticket"]) for row in new.rows()} == {(None, None)}
    found = new.find(entry(settings={"seed": 1}).key)
    assert found is not None
    assert found.metrics == entry().metrics


def test_what_is_there_is_not_added_again(tmp_path: Path) -> None:
    old = filled(tmp_path / "a.sqlite")
    share(old.rows()[:2], tmp_path / "runs.jsonl")
    new = Store(tmp_path / "b.sqlite")
    assert take(tmp_path / "runs.jsonl", new) == (2, 0)
    assert take(tmp_path / "a.sqlite", new) == (1, 2)
    assert take(tmp_path / "a.sqlite", new) == (0, 3)
    assert facts(new) == facts(old)


def test_places_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    filled(tmp_path / "a.sqlite", folder=str(tmp_path / "run"))
    new = Store(tmp_path / "b.sqlite")
    take(tmp_path / "a.sqlite", new)
    assert {row["folder"] for row in new.rows()} == {str(tmp_path / "run")}
    assert {row["ticket"] for row in new.rows()} == {None}  # its file is gone


def changed(line: str, **values: Any) -> str:
    return json.dumps({**json.loads(line), **values})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda line: line[:-9], "Unterminated"),
        (lambda line: changed(line, seed=7), "its digest does not match"),
        (lambda line: changed(line, more=1), "its fields are not those of a run"),
        (lambda line: "[1]", "no run"),
        (lambda line: "", "Expecting value"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_taken(tmp_path: Path, damage: Any, reason: str) -> None:
    file, new = tmp_path / "runs.jsonl", Store(tmp_path / "b.sqlite")
    share(filled(tmp_path / "a.sqlite").rows(), file)
    first, second, third = file.read_text().splitlines()
    file.write_text("\n".join([first, damage(second), third, ""]))
    with pytest.raises(InputError, match=f"line 2: .*{reason}"):
        take(file, new)
    assert new.rows() == []


def test_a_run_whose_settings_were_changed_with_their_digest_is_refused(tmp_path: Path) -> None:
    row = filled(tmp_path / "a.sqlite").rows()[0]
    share([{**row, "settings": {**row["settings"], "seed": 9}}], tmp_path / "runs.jsonl")
    with pytest.raises(InputError, match="line 1: its key is not that of its settings"):
        take(tmp_path / "runs.jsonl", Store(tmp_path / "b.sqlite"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--take must name another store"):
        take(tmp_path / "no.jsonl", Store(tmp_path / "b.sqlite"))
