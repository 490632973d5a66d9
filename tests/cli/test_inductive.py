"""Hidden nodes on the command line: found, judged and compared, with both scores of them everywhere."""

import json
from pathlib import Path

from fastglt.runs.store import Store
from tests.cli.conftest import SHORT, TINY, Cli

HIDE = ("--inductive", "0.15")
SCORES = ("isolated_new", "isolated_new_kept", "search_new", "search_new_kept", "dense_new")


def test_found_judged_and_refused(find: Cli, cli: Cli, tmp_path: Path) -> None:
    told = find(*HIDE, "--method", "forest", "--out", tmp_path / "run")
    assert told.code == 0, told.err
    text = " ".join(told.out.split())
    assert "… of 12 hidden nodes, with all their edges" in text
    assert "with edges that the ticket's rule keeps" in text
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["inductive"], metrics["hidden_nodes"], metrics["new_test_nodes"]) == (0.15, 12, 12)
    assert set(SCORES) <= set(metrics)
    ask = ("evaluate", tmp_path / "run", "--seeds", "0,1", "--threads", "1")
    judged = cli(*ask, "--json")
    assert judged.code == 0, judged.err
    document = judged.document
    assert document["new"]["ticket_scores"][0] == metrics["isolated_new"], "taken from the run"
    assert document["new_kept"]["ticket_scores"][0] == metrics["isolated_new_kept"]
    assert document["new"]["dense_scores"] == document["new_kept"]["dense_scores"]
    again = cli(*ask, "--json")
    assert "4 of 4 trainings were in" in again.err
    assert again.document == document
    assert "hidden nodes, with all their edges" in cli(*ask, "--inductive", "0.15").out
    other = cli(*ask, "--inductive", "0.2")
    assert other.code == 2
    assert "hidden from its search" in " ".join(other.err.split())
    assert cli("show", tmp_path / "run", "--cost").code == 0
    clean = tmp_path / "clean.npz"
    for command, use in (
        (("predict", tmp_path / "run"), "compiled"),
        (("suspects", "--ticket", tmp_path / "run", "--clean", clean), "asked for suspects"),
    ):
        refused = cli(*command)
        assert refused.code == 2
        assert refused.err.count("\n") == 1
        assert f"a ticket that is {use} must have seen its whole graph" in refused.err
        assert "find one without inductive" in refused.err
    assert not clean.exists()


def test_compared_and_taken_from_the_store(find: Cli, cli: Cli, store: Path, tmp_path: Path) -> None:
    ask = ("compare", "--dataset", TINY, *SHORT, *HIDE, "--methods", "random", "--seeds", "0", "--jobs", "1")
    found = cli(*ask, "--quiet", "--json", "--out", tmp_path / "out")
    assert found.code == 0, found.err
    (cell,) = found.document["cells"]
    assert found.document["inductive"] == 0.15
    whole = find(*HIDE, "--method", "random", "--json", "--quiet", "--out", tmp_path / "find").document
    assert {name: cell["mean"][name] for name in SCORES} == {name: whole[name] for name in SCORES}
    rows = [row for row in Store(store).rows() if "inductive" in row["settings"]]
    keys = {row["key"]: set(row["metrics"]) for row in rows}
    assert len(rows) == 4
    assert len(keys) == 2, "both commands make the same entries"
    told = cli(*ask, "--quiet", "--out", tmp_path / "out").out
    assert "dense new" in told
    assert "new kept" in told


def test_the_split_seed_draws_and_plain_runs_are_others(find: Cli, tmp_path: Path) -> None:
    wrong = find("--inductive", "0.9", "--out", tmp_path / "no")
    assert wrong.code == 2
    assert "hides no training or validation nodes" in " ".join(wrong.err.split())
    plain = find("--quiet", "--json", "--out", tmp_path / "plain").document
    assert not any("new" in name.split("_") for name in plain)


def test_shown_and_drawn_as_it_was_seen(find: Cli, cli: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert find(*HIDE, "--quiet", "--out", run).code == 0
    shown = cli("show", run, "--analysis", "--json")
    assert shown.code == 0, shown.err
    graph = shown.document["analysis"]["graph"]
    assert (graph["nodes"], graph["edges_before"]) == (68, shown.document["edges_total"])
    assert graph["homophily"] is not None
    for name in ("graph", "effects", "cost"):
        drawn = cli("plot", name, run, "--out", tmp_path / f"{name}.svg")
        assert drawn.code == 0, drawn.err
