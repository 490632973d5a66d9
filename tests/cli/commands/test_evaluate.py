"""`fastglt evaluate` on tiny graphs, through the command line."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fastglt.data import load
from fastglt.judge import Contest
from fastglt.runs.store import Store
from fastglt.tasks import NodeClassification
from fastglt.tickets.ticket import Ticket
from tests.cli.conftest import SHORT, TINY, Cli
from tests.processes import Process
from tests.toy_data import USER_MODELS, quick_ticket, seeded

ONE_THREAD = ("--threads", "1")


@pytest.fixture
def run(find: Cli, tmp_path: Path) -> Path:
    """The folder of a finished search."""
    assert find("--quiet", "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def trainings(store: Path) -> list[dict[str, Any]]:
    return [row for row in Store(store).rows() if row["kind"] == "evaluation"]


def test_a_verdict_with_all_its_numbers(cli: Cli, run: Path) -> None:
    result = cli("evaluate", run, "--seeds", "0-2", *ONE_THREAD, "--json")
    assert result.code == 0, result.err
    found, metrics = result.document, json.loads((run / "metrics.json").read_text())
    assert (found["n"], found["seeds"], found["margin"], found["level"]) == (3, [0, 1, 2], 0.01, 0.05)
    assert found["dense_scores"][0] == metrics["dense_test"], "the search's own seed"
    assert found["ticket_scores"][0] == metrics["isolated_test"]
    for name in ("search_val", "search_test", "search_unweighted_val", "search_unweighted_test"):
        assert found[name] == metrics[name]
    expected: dict[str, Any] = {
        "ticket": str(run / "ticket.safetensors"),
        "model": "gcn",
        "method": "fastglt",
        "metric": "accuracy",
    }
    expected |= {"fresh_init": False, "same_split": True, "epochs": 16, "graph_sparsity": 0.2}
    assert {name: found[name] for name in expected} == expected
    task = NodeClassification.from_tensors(load(TINY).tensors)
    verdict = Contest.prepare(Ticket.load(run / "ticket.safetensors"), None, task).verdict([0, 1, 2])
    assert {name: found[name] for name in verdict.as_dict()} == verdict.as_dict()


def test_people_get_a_table_and_a_sentence(cli: Cli, run: Path) -> None:
    arguments = ("evaluate", run, "--seeds", "0-2", "--margin", "0.005", "--level", "0.1", *ONE_THREAD)
    result = cli(*arguments)
    found = cli(*arguments, "--json").document
    lines = [" ".join(line.replace("│", " ").split()) for line in result.out.splitlines()]
    assert found["sentence"] in lines
    dense, ticket = (
        f"{100 * found[f'{side}_mean']:.2f} ± {100 * found[f'{side}_std']:.2f}" for side in ("dense", "ticket")
    )
    (row,) = [line for line in lines if line.startswith("retrained from initial weights, n = 3")]
    assert f"{dense} {ticket}" in row
    assert f"end of the search {100 * found['search_test']:.2f}" in lines
    assert "80 % interval" in result.out
    assert "ticket, seed 2: epoch 16/16" in result.err


def test_seeds_that_change_nothing_have_no_interval(cli: Cli, find: Cli, tmp_path: Path) -> None:
    still = tmp_path / "still"
    assert find("--model-option", "dropout=0", "--quiet", "--out", still).code == 0
    told = cli("evaluate", still, "--seeds", "0-1", *ONE_THREAD).out
    assert "nan" not in told


def test_what_is_in_the_store_is_not_trained_again(cli: Cli, run: Path, store: Path) -> None:
    first = cli("evaluate", run, "--seeds", "0-2", *ONE_THREAD, "--json")
    assert len(trainings(store)) == 4  # both of seed 0 are the run's own
    assert f"2 of 6 trainings were in '{store}' or the ticket already\n" in first.err
    again = cli("evaluate", run, "--seeds", "0-2", *ONE_THREAD, "--json")
    assert again.document == first.document
    assert again.err == f"6 of 6 trainings were in '{store}' or the ticket already\n"
    more = cli("evaluate", run, "--seeds", "2-3", *ONE_THREAD, "--json")
    assert "2 of 4 trainings" in more.err
    assert more.document["ticket_scores"][0] == first.document["ticket_scores"][2]
    rows = trainings(store)
    assert [(row["seed"], row["dense_test"] is None) for row in rows] == [
        *((1, False), (1, True), (2, False), (2, True)),
        *((3, False), (3, True)),
    ]
    assert {row["dataset"] for row in rows} == {load(TINY).name}
    assert [row["isolated_test"] for row in rows[1:4:2]] == first.document["ticket_scores"][1:]
    assert rows[1]["ticket"] == str(run / "ticket.safetensors")


def test_several_tickets_share_dense_twins(cli: Cli, find: Cli, run: Path, store: Path, tmp_path: Path) -> None:
    assert find("--quiet", "--weight-sparsity", "0.5", "--out", tmp_path / "other").code == 0
    arguments = ("evaluate", run, tmp_path / "other", "--seeds", "0,1", *ONE_THREAD)
    first, second = cli(*arguments, "--json").document
    assert first["dense_scores"] == second["dense_scores"]
    assert (first["weight_sparsity"], second["weight_sparsity"]) == pytest.approx((0.9, 0.5), abs=0.01)
    assert len(trainings(store)) == 3  # those of seed 1; the runs have trained those of seed 0
    text = cli(*arguments, "--quiet").out
    assert text.index(first["sentence"]) < text.index(str(tmp_path / "other")) < text.rindex(second["sentence"])


def test_fresh_starts(cli: Cli, run: Path, store: Path) -> None:
    own = cli("evaluate", run, "--seeds", "0-1", *ONE_THREAD, "--json").document
    fresh = cli("evaluate", run, "--seeds", "0-1", "--fresh-init", *ONE_THREAD, "--json").document
    assert fresh["fresh_init"]
    assert len({row["settings"]["initial"] for row in trainings(store)}) == 3
    assert (fresh["dense_scores"], fresh["ticket_scores"]) != (own["dense_scores"], own["ticket_scores"])
    assert (
        "trained from fresh initial weights"
        in cli("evaluate", run, "--seeds", "0-1", "--fresh-init", *ONE_THREAD).out
    )


def test_another_split_is_told(cli: Cli, run: Path, store: Path) -> None:
    result = cli("evaluate", run, "--seeds", "0", "--split-seed", "1", *ONE_THREAD, "--json")
    assert len(trainings(store)) == 2  # what the run has trained is of no use here
    assert result.document["same_split"] is False
    assert "labels or split are not the search's" in result.err


def test_a_ticket_alone_needs_its_graph(cli: Cli, run: Path, tmp_path: Path) -> None:
    alone = (run / "ticket.safetensors").rename(tmp_path / "alone.safetensors")
    refused = cli("evaluate", alone, "--seeds", "0", *ONE_THREAD)
    assert (refused.code, "pass --dataset" in refused.err) == (2, True)
    result = cli("evaluate", alone, "--dataset", TINY, "--seeds", "0", *ONE_THREAD, "--json")
    assert (result.document["n"], result.document["same_split"], result.document["p_value"]) == (1, None, None)


def test_a_users_model_is_sent_to_python(cli: Cli, store: Path, tmp_path: Path) -> None:
    quick_ticket(seeded(USER_MODELS["GCN"]), isolated=False).save(tmp_path / "ticket.safetensors")
    result = cli("evaluate", tmp_path, "--dataset", TINY)
    assert result.code == 2
    assert "use fastglt.evaluate(ticket, model, data) in Python" in result.err
    assert not store.exists()


BAD = {
    "seeds": (("--seeds", "3-1"), "seeds must be as in 0-4 or 0,2,5 (got '3-1')"),
    "margin": (("--margin", "2"), "margin must lie in [0, 1) (got 2.0)"),
    "level": (("--level", "0.6"), "level must lie in (0, 0.5) (got 0.6)"),
    "threads": (("--threads", "-1"), "threads must not be negative (got -1)"),
    "dataset": (("--dataset", "digits"), "the ticket was found on another graph (got 'digits')"),
    "device": (("--device", "gpu"), "unknown device (got 'gpu')"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_clear_line(cli: Cli, run: Path, arguments: tuple[str, ...], message: str) -> None:
    result = cli("evaluate", run, *arguments)
    assert (result.code, message in result.err, "Traceback" in result.err) == (2, True, False), result.err


def start(run: Path, *arguments: str) -> Process:
    return Process("-m", "fastglt", "evaluate", run, "--seeds", "0-39", *ONE_THREAD, "--json", *arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_or_killed_it_goes_on(cli: Cli, store: Path, tmp_path: Path, number: signal.Signals) -> None:
    long = tuple("40" if word == "12" else word for word in SHORT)
    assert cli("find", "--dataset", TINY, *long, "--quiet", "--out", tmp_path / "run").code == 0
    with start(tmp_path / "run") as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and len(trainings(store)) < 3:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode in (130, -number), err
    assert out == ""
    if number == signal.SIGINT:
        assert "the same command goes on from there" in err
    done = len(trainings(store))
    assert 3 <= done < 80
    result = cli("evaluate", tmp_path / "run", "--seeds", "0-3", *ONE_THREAD, "--json")
    assert f"{min(2 + done, 8)} of 8 trainings were in" in result.err
    assert result.document["n"] == 4
