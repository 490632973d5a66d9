"""`fastglt runs`, and what the other commands leave for it."""

import contextlib
import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fastglt.runs.store import Entry, Store, key_of
from tests.cli.conftest import TINY, Cli


def fill(path: Path) -> None:
    """Six runs: two datasets, three seeds; the third seed's are dense."""
    for dataset in ("cora", TINY):
        for seed in range(3):
            settings = {"dataset": dataset, "model": {"name": "gcn"}, "seed": seed}
            ticket = {"method": "ugs", "graph_sparsity": 0.25, "weight_sparsity": 0.5}
            metrics = {"search_test": 0.8125, "isolated_test": 0.75, "search_seconds": 12.0}
            if seed == 2:
                metrics = {"dense_test": 0.875, "dense_seconds": 3.0}
            else:
                settings |= ticket
            kind, command = ("dense", "compare") if seed == 2 else ("ticket", "find")
            Store(path).record(
                Entry(key=key_of(settings), kind=kind, command=command, settings=settings, metrics=metrics)
            )


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_lists_the_newest_last_and_cuts_nothing_off(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    monkeypatch.setenv("COLUMNS", "40")
    result = cli("runs")
    assert (result.code, result.err) == (0, "")
    headings, _, *rows = lines(result.out)
    assert headings.split()[:5] == ["id", "finished", "command", "kind", "dataset"]
    assert [row.split()[0] for row in rows] == list("123456")
    finished = Store(store).rows()[0]["finished"][:16].split("T")
    assert rows[0].split() == [
        *("1", *finished, "find", "ticket", "cora", "gcn", "ugs"),
        *("25.0", "50.0", "0", "–", "81.25", "75.00", "12.0"),
    ]
    assert rows[5].split()[3:] == [
        *("compare", "dense", TINY, "gcn", "–", "–", "–", "2", "87.50", "–", "–", "3.0"),
    ]


def test_the_last_so_many(cli: Cli, store: Path) -> None:
    fill(store)
    result = cli("runs", "--limit", "2")
    assert [line.split()[0] for line in lines(result.out)[2:]] == ["5", "6"]
    assert result.err == "the last 2 of 6 runs; --limit 0 lists all\n"
    everything = cli("runs", "--limit", "0")
    assert (len(lines(everything.out)), everything.err) == (8, "")


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("--dataset", "cora"), [1, 2, 3]),
        (("--dataset", TINY), [4, 5, 6]),  # its commas are its own
        (("--dataset", "cora, pubmed", "--seed", "0,2"), [1, 3]),
        (("--kind", "dense"), [3, 6]),
        (("--kind", "dense,ticket", "--command", "find", "--seed", "1-5"), [2, 5]),
        (("--method", "ugs", "--model", "gcn,gin"), [1, 2, 4, 5]),
        (("--since", "2020-01-31"), [1, 2, 3, 4, 5, 6]),
        (("--since", "9999-01-31T18:00+02:00"), []),
        (("--limit", "1"), [1, 2, 3, 4, 5, 6]),  # an export has everything
    ],
)
def test_filters(cli: Cli, store: Path, arguments: tuple[str, ...], ids: list[int]) -> None:
    fill(store)
    result = cli("runs", *arguments, "--json")
    assert result.code == 0
    assert [record["id"] for record in result.document] == ids


def test_json_has_whole_records(cli: Cli, store: Path) -> None:
    fill(store)
    assert cli("runs", "--json").document == Store(store).rows()
    assert cli("runs", "2", "--json").document == Store(store).rows()[1]


def test_csv_has_every_column(cli: Cli, store: Path, tmp_path: Path) -> None:
    fill(store)
    result = cli("runs", "--seed", "1", "--csv", tmp_path / "runs.csv")
    assert (result.code, result.out) == (0, "")
    assert result.err == f"2 runs written to '{tmp_path / 'runs.csv'}'\n"
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert [(row["id"], row["dataset"], row["search_test"]) for row in rows] == [
        ("2", "cora", "0.8125"),
        ("5", TINY, "0.8125"),
    ]
    assert set(rows[0]) == set(Store(store).rows()[0])
    assert json.loads(rows[0]["settings"])["model"] == {"name": "gcn"}
    assert rows[0]["dense_test"] == ""


def test_one_run_whole(cli: Cli, store: Path) -> None:
    fill(store)
    found = lines(cli("runs", "3").out)
    assert {"id: 3", "kind: dense", "settings", "  seed: 2", "  dense_seconds: 3.0", "machine"} <= set(found)
    missing = cli("runs", "17")
    assert missing.code == 2
    assert "the id must be that of a run" in missing.err
    assert "(got 17)" in missing.err
    for arguments in (("--model", "gat"), ("--since", "2099-01-01")):
        other = cli("runs", "3", *arguments)
        assert (other.code, other.out) == (0, "")
        assert "none of 6 runs" in other.err


def test_nothing_recorded_yet_is_no_mistake(cli: Cli, store: Path) -> None:
    for arguments, out in (((), ""), (("--json",), "[]\n")):
        result = cli("runs", *arguments)
        assert (result.code, result.out) == (0, out)
        assert "no run is recorded in" in result.err
    assert not store.exists(), "looking makes no store"


def test_a_filter_that_nothing_fits_says_what_there_is(cli: Cli, store: Path) -> None:
    fill(store)
    result = cli("runs", "--kind", "tickets", "--model", "gcn")
    assert (result.code, result.out) == (0, "")
    assert "none of 6 runs" in result.err
    assert "no kind is tickets (there: dense, ticket)" in result.err
    assert "no model" not in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--since", "yesterday"), "--since must be as in 2026-01-31"),
        (("--limit", "-1"), "limit must not be negative (got -1)"),
        (("--seed", "x"), "seeds must be as in 0-4 or 0,2,5 (got 'x')"),
    ],
)
def test_bad_input_is_one_clear_line(cli: Cli, store: Path, arguments: tuple[str, ...], message: str) -> None:
    fill(store)
    result = cli("runs", *arguments)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--take", "other.sqlite", "--dataset", "cora"), "--dataset must come without --take"),
        (("--take", "other.sqlite", "--csv", "runs.csv"), "--csv must come without --take"),
        (("--take", "other.sqlite", "--json"), "--json must come without --take"),
        (("--take", "other.sqlite", "3"), "ID must come without --take"),
        (("--take", "other.sqlite", "--check"), "--check must come without --take"),
        (("--check", "--kind", "dense"), "--kind must come without --check"),
        (("--check", "--repair", "--limit", "3"), "--limit must come without --check"),
        (("--repair", "--share", "runs.jsonl"), "--share must come without --repair"),
    ],
)
def test_what_is_about_the_whole_store_takes_no_choice_of_runs(
    cli: Cli, store: Path, arguments: tuple[str, ...], message: str
) -> None:
    fill(store)
    before = store.read_bytes()
    result = cli("runs", *arguments)
    assert (result.code, result.out) == (2, "")
    assert f"{message} (got both); leave one out" in result.err
    assert store.read_bytes() == before


def test_a_limit_is_for_the_list_alone(cli: Cli, store: Path, tmp_path: Path) -> None:
    fill(store)
    for output in (("--json",), ("--csv", tmp_path / "runs.csv"), ("--share", tmp_path / "runs.jsonl")):
        told = cli("runs", "--limit", "2", *output).err.splitlines()
        assert told[-1] == "--limit is for the list alone; all 6 runs that match are taken"
        assert "--limit" not in cli("runs", *output).err
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 6


def test_a_file_that_is_no_store_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine" * 1000)
    result = cli("runs", "--store", tmp_path / "notes.txt")
    assert result.code == 2
    assert "must be a new file or one that fastglt wrote" in result.err


def kept(store: Path) -> list[tuple[Any, ...]]:
    return [(row["kind"], row["command"], row["seed"], row["folder"]) for row in Store(store).rows()]


def test_find_records_a_ticket_and_its_dense_twin(find: Cli, store: Path, tmp_path: Path) -> None:
    metrics = find("--out", tmp_path / "run", "--seed", "5", "--json").document
    place = str(tmp_path / "run")
    assert kept(store) == [("ticket", "find", 5, place), ("dense", "find", 5, place)]
    ticket, dense = Store(store).rows()
    assert ticket["ticket"] == f"{place}/ticket.safetensors"
    assert (ticket["dataset"], ticket["model"], ticket["method"]) == (metrics["dataset"], "gcn", "fastglt")
    assert (ticket["graph_sparsity"], ticket["weight_sparsity"]) == (0.2, 0.9)
    assert ticket["search_test"] == metrics["search_test"]
    assert ticket["isolated_test"] == metrics["isolated_test"]
    assert ticket["seconds"] == metrics["search_seconds"] + metrics["isolated_seconds"]
    assert (dense["dense_test"], dense["seconds"]) == (metrics["dense_test"], metrics["dense_seconds"])
    assert {**ticket["metrics"], **dense["metrics"]} == {
        name: value for name, value in metrics.items() if not name.startswith("winning_")
    }


def test_find_records_again_only_what_it_has_run_again(find: Cli, store: Path, tmp_path: Path) -> None:
    for name in ("a", "a", "b"):
        assert find("--out", tmp_path / name).code == 0
    assert [Path(folder).name for _, _, _, folder in kept(store)] == ["a", "a", "b", "b"]


def test_a_finished_run_that_was_killed_before_it_was_recorded_gets_in_later(
    find: Cli, store: Path, tmp_path: Path
) -> None:
    find("--out", tmp_path / "run", "--store", tmp_path / "lost.sqlite")
    assert find("--out", tmp_path / "run").code == 0
    assert kept(store) == kept(tmp_path / "lost.sqlite")


def test_a_store_that_cannot_be_is_told_before_anything_runs(find: Cli, tmp_path: Path) -> None:
    result = find("--out", tmp_path / "run", "--store", tmp_path)
    assert result.code == 1
    assert "it is a folder; name a file" in result.err
    assert not (tmp_path / "run").exists()


def test_a_home_folder_is_found(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FASTGLT_STORE", "~/one.sqlite")
    for arguments, name in (((), "one"), (("--store", "~/other.sqlite"), "other")):
        assert f"no run is recorded in '{tmp_path / name}.sqlite' yet" in cli("runs", *arguments).err


def test_a_name_that_no_file_can_have_is_named(cli: Cli) -> None:
    for arguments in (("runs", "--store", "a" * 300), ("show", "a" * 300)):
        result = cli(*arguments)
        assert result.code == 1
        assert f"cannot read '{'a' * 300}': File name too long" in result.err


def test_a_generated_graph_is_found_by_what_was_typed(cli: Cli, find: Cli, tmp_path: Path) -> None:
    kept = ("--store", tmp_path / "made.sqlite")
    assert find("--quiet", "--out", tmp_path / "run", *kept).code == 0
    rows = cli("runs", "--dataset", TINY, "--json", *kept).document
    assert sorted(row["kind"] for row in rows) == ["dense", "ticket"]
    assert all(row["dataset"].startswith(f"{TINY},") for row in rows)
    both = cli("runs", "--dataset", f"cora,{TINY}", "--json", *kept).document
    assert both == rows


class TestDamage:
    """`--check` and `--repair`."""

    def change(self, store: Path, statement: str) -> None:
        with contextlib.closing(sqlite3.connect(store, isolation_level=None)) as file:
            file.execute(statement)

    def test_a_sound_store_is_told_so(self, cli: Cli, store: Path) -> None:
        fill(store)
        for flag in ("--check", "--repair"):
            result = cli("runs", flag)
            assert (result.code, result.err) == (0, "")
            assert result.out == f"rows in '{store}': 6 whole, 0 damaged, 0 of before, without a digest\n"

    def test_a_damaged_row_is_told_and_left_out_by_a_repair(self, cli: Cli, store: Path) -> None:
        fill(store)
        self.change(store, "UPDATE runs SET search_test = 0.99 WHERE id = 2")
        listed = cli("runs")
        assert listed.code == 2
        assert "is damaged (row 2: its digest does not match); `fastglt runs --check` says" in listed.err
        checked = cli("runs", "--check")
        assert checked.code == 1
        assert lines(checked.out) == [
            f"rows in '{store}': 5 whole, 1 damaged, 0 of before, without a digest",
            "row 2: its digest does not match",
        ]
        repaired = cli("runs", "--repair")
        assert repaired.code == 0
        assert f"the old one is '{store}.damaged-1'" in repaired.out
        assert [row["id"] for row in cli("runs", "--json").document] == [1, 3, 4, 5, 6]
        assert cli("runs", "--check").code == 0

    def test_json_tells_the_same(self, cli: Cli, store: Path) -> None:
        fill(store)
        self.change(store, "UPDATE runs SET search_test = 0.99 WHERE id = 2")
        document = cli("runs", "--check", "--json").document
        assert document == {
            "whole": [1, 3, 4, 5, 6],
            "without_digest": [],
            "damaged": {"2": "its digest does not match"},
            "notes": [],
            "old": None,
        }

    def test_noise_is_one_clear_line(self, cli: Cli, store: Path) -> None:
        fill(store)
        content = bytearray(store.read_bytes())
        content[100:4096] = b"\xff" * 3996
        store.write_bytes(content)
        for arguments in ((), ("--repair",)):
            result = cli("runs", *arguments)
            assert (result.code, result.out) == (2, "")
            assert f"the results store '{store}' is damaged (" in result.err
            assert result.err.count("\n") == 1
        assert cli("runs", "--check").code == 1


def test_a_finished_run_whose_ticket_is_gone_is_not_printed_again(find: Cli, tmp_path: Path) -> None:
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    ticket = tmp_path / "run" / "ticket.safetensors"
    content = ticket.read_bytes()
    for damage in (ticket.unlink, lambda: ticket.write_bytes(content[:-1])):
        damage()
        result = find("--out", tmp_path / "run")
        assert (result.code, result.out) == (2, "")
        assert "is finished, but its ticket.safetensors" in result.err
        assert f"put it back, or remove '{tmp_path / 'run' / 'metrics.json'}' to run it again" in result.err
    (tmp_path / "run" / "metrics.json").unlink()
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    assert ticket.read_bytes() == content


def test_runs_of_another_machine_are_added_and_listed(cli: Cli, store: Path, tmp_path: Path) -> None:
    fill(store)
    file, elsewhere = tmp_path / "runs.jsonl", str(tmp_path / "elsewhere.sqlite")
    shared = cli("runs", "--dataset", "cora", "--share", str(file))
    assert (shared.out, shared.err) == ("", f"3 runs written to '{file}'\n")
    taken = cli("runs", "--take", str(file), "--store", elsewhere)
    assert (taken.code, taken.out.split()[:2]) == (0, ["3", "runs"])
    assert len(json.loads(cli("runs", "--json", "--store", elsewhere).out)) == 3
    assert "0 runs" in (again := cli("runs", "--take", str(file), "--store", elsewhere).out)
    assert "3 were there already" in " ".join(again.split())


def test_no_file_is_written_where_no_run_fits(cli: Cli, store: Path, tmp_path: Path) -> None:
    fill(store)
    told = cli("runs", "--seed", "77", "--share", str(tmp_path / "runs.jsonl"))
    assert "no seed is 77" in " ".join(told.err.split())
    assert not (tmp_path / "runs.jsonl").exists()


def test_a_comparison_takes_what_another_machine_has_trained(cli: Cli, store: Path, tmp_path: Path) -> None:
    command = ("compare", "--dataset", TINY, "--methods", "random", "--seeds", "0", "--hidden", "4", "--quiet")
    short = ("--oneshot-epochs", "1", "--denoise-epochs", "2", "--interval", "1", "--jobs", "1", "--json")
    first = json.loads(cli(*command, *short, "--out", str(tmp_path / "a")).out)
    cli("runs", "--share", str(tmp_path / "runs.jsonl"))
    other = ("--store", str(tmp_path / "other.sqlite"))
    cli("runs", "--take", str(tmp_path / "runs.jsonl"), *other)
    planned = cli(*command, *short[:-1], "--out", str(tmp_path / "b"), *other, "--dry-run")
    assert "0 finished in their folders, 2 reused from the store" in planned.out
    again = json.loads(cli(*command, *short, "--out", str(tmp_path / "b"), *other).out)
    (trained,), (taken,) = (document["cells"][0].pop("runs") for document in (first, again))
    assert {**taken, "folder": None} == {**trained, "folder": None}
    assert {**again, "out": None} == {**first, "out": None}
    assert list((tmp_path / "a").rglob("ticket.safetensors"))
    assert not list((tmp_path / "b").rglob("ticket.safetensors"))
