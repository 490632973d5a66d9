"""Tickets and their graphs from what a user typed."""

import json
from pathlib import Path

import numpy as np
import pytest

from fastglt.cli.shared.tickets import OwnGraph, open_ticket, run_settings, task_of
from fastglt.data import load
from fastglt.errors import InputError
from fastglt.system import digests
from fastglt.tasks import NodeClassification
from fastglt.tickets.ticket import Ticket
from tests.cli.conftest import TINY, Cli


def test_a_runs_folder_and_its_file_are_the_same_ticket(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    for path in (tmp_path, tmp_path / "ticket.safetensors"):
        found, file = open_ticket(path)
        assert found.masks == ticket.masks
        assert file == tmp_path / "ticket.safetensors"


def test_the_graph_is_that_of_the_run(find: Cli, tmp_path: Path) -> None:
    find("--quiet", "--split-seed", "3", "--method", "ugs", "--option", "round_epochs=2", "--out", tmp_path / "run")
    for path in (tmp_path / "run", tmp_path / "run" / "rounds" / "01.safetensors"):
        ticket, file = open_ticket(path)
        assert run_settings(file)["split_seed"] == 3
        found = task_of(ticket, OwnGraph().load(file))
        expected = NodeClassification.from_tensors(load(TINY, split_seed=3).tensors)
        assert found.digests == expected.digests
        other = task_of(ticket, OwnGraph(split_seed=0).load(file))
        assert other.digests != found.digests


def test_another_graph_is_refused(find: Cli, tmp_path: Path) -> None:
    find("--quiet", "--out", tmp_path / "run")
    ticket, file = open_ticket(tmp_path / "run")
    with pytest.raises(InputError, match=r"found on another graph \(got 'digits'\); pass that one as --dataset"):
        task_of(ticket, OwnGraph(dataset="digits").load(file))


def test_a_ticket_alone_needs_its_graph_named(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    with pytest.raises(InputError, match=r"must be named \(got no run.json beside .*; pass --dataset"):
        OwnGraph().load(tmp_path / "ticket.safetensors")


RUN = [
    "--hidden",
    "4",
    "--oneshot-epochs",
    "1",
    "--denoise-epochs",
    "2",
    "--interval",
    "1",
    "--threads",
    "1",
    "--quiet",
]


def write_ring(folder: Path) -> Path:
    nodes = np.arange(60)
    folder.mkdir(exist_ok=True)
    ring = folder / "cora.npz"  # which is not the graph of that name
    edges = np.stack([nodes, (nodes + 1) % 60])
    np.savez(ring, edge_index=edges, x=np.eye(3, dtype=np.float32)[nodes % 3], y=nodes % 3)
    return ring


def write_csv(folder: Path) -> Path:
    folder.mkdir()
    rows = [f"n{node},{node % 3},{node % 2},{node % 5}" for node in range(60)]
    (folder / "nodes.csv").write_text("\n".join(["id,label,a,b", *rows]))
    pairs = [f"n{node},n{(node + 1) % 60}" for node in range(60)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *pairs]))
    return folder / "edges.csv"


def test_a_graph_from_a_file_is_found_again(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ring(tmp_path / "my")
    monkeypatch.chdir(tmp_path)
    assert cli("find", "--dataset", "my/cora.npz", "--directed", *RUN, "--out", "runs/a").code == 0
    monkeypatch.chdir("/")
    ticket, file = open_ticket(tmp_path / "runs" / "a")
    assert task_of(ticket, OwnGraph().load(file)).graph.directed, "as it was read"
    with pytest.raises(InputError, match="with --directed"):
        task_of(ticket, OwnGraph(dataset=str(tmp_path / "my" / "cora.npz")).load(file))
    assert str(tmp_path).encode() not in file.read_bytes(), "a ticket that is passed on tells no paths"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for part in ("my", "runs"):
        (tmp_path / part).rename(moved / part)
    ticket, file = open_ticket(moved / "runs" / "a")
    task_of(ticket, OwnGraph().load(file))


def test_each_direction_counts_where_it_was_said_though_every_edge_goes_both_ways(cli: Cli, tmp_path: Path) -> None:
    nodes = np.arange(60)
    ways = np.stack([nodes, (nodes + 1) % 60])
    ring, folder = tmp_path / "ring.npz", tmp_path / "ring.fgr"
    np.savez(ring, edge_index=np.hstack([ways, ways[::-1]]), x=np.eye(3, dtype=np.float32)[nodes % 3], y=nodes % 3)
    assert cli("data", "prepare", ring, "--directed", "--out", folder).code == 0
    for name, found in (
        ("file", cli("find", "--dataset", ring, "--directed", *RUN, "--out", tmp_path / "file", "--json")),
        ("prepared", cli("find", "--dataset", folder, *RUN, "--out", tmp_path / "prepared", "--json")),
    ):
        assert found.document["edges_total"] == 120
        for command in (("predict",), ("show", "--cost"), ("evaluate", "--seeds", "0", "--threads", 1, "--quiet")):
            result = cli(command[0], tmp_path / name, *command[1:])
            assert (result.code, result.err) == (0, ""), (name, command)
        ticket = Ticket.load(tmp_path / name / "ticket.safetensors", load(str(ring)).data)
        assert ticket.directed, "PyG's data does not say it"


def test_an_older_ticket_of_such_a_graph_has_one_edge_for_both_ways(cli: Cli, tmp_path: Path) -> None:
    ring = write_ring(tmp_path / "my")
    arrays = dict(np.load(ring))
    np.savez(ring, **{**arrays, "edge_index": np.hstack([arrays["edge_index"], arrays["edge_index"][::-1]])})
    assert cli("find", "--dataset", ring, *RUN, "--out", tmp_path / "older").code == 0
    ticket, _ = open_ticket(tmp_path / "older")
    assert task_of(ticket, load(str(ring), directed=True)).graph.num_edges == 60


@pytest.mark.parametrize("form", ["my/edges.csv", "my", "my/edges.csv+my/nodes.csv"])
def test_every_command_finds_csv_files_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    edges = write_csv(tmp_path / "my")
    monkeypatch.chdir(tmp_path)
    assert cli("find", "--dataset", form, *RUN, "--out", "runs/a").code == 0
    transfer = ("transfer", "runs/a", "--seed", 7, "--seeds", "0", *RUN[2:6], "--threads", 1, "--quiet")
    for command in (
        ("predict", "runs/a"),
        ("show", "runs/a", "--cost"),
        ("evaluate", "runs/a", "--seeds", "0", "--threads", 1, "--quiet"),
        ("diff", "runs/a", "runs/a"),
        transfer if form == "my/edges.csv" else ("show", "runs/a"),
    ):
        result = cli(*command)
        assert (result.code, result.err) == (0, ""), command
    text = edges.read_text()
    edges.write_text(text.replace("n0,n1\n", ""))
    changed = cli("predict", "runs/a")
    assert changed.code == 2
    assert f"'{edges}' has changed since the ticket was found; pass the graph as --dataset" in changed.err
    assert changed.err.count("\n") == 1
    edges.unlink()
    gone = cli("predict", "runs/a")
    assert (gone.code, gone.err.count("\n")) == (2, 1)
    assert f"the ticket's graph is gone (got no file '{edges}'); pass the graph as --dataset" in gone.err
    assert cli("diff", "runs/a", "runs/a").code == 0, "what needs no graph goes on"


def test_directed_is_refused_where_the_ticket_s_run_has_read_its_graph_otherwise(cli: Cli, tmp_path: Path) -> None:
    ring = write_ring(tmp_path / "my")
    for name, flags in (("both", ()), ("one", ("--directed",))):
        made = cli("find", "--dataset", ring, *flags, *RUN, "--out", tmp_path / name)
        assert made.code == 0, made.err
    for command in (
        ("evaluate", tmp_path / "both", "--seeds", "0", "--threads", 1, "--quiet"),
        ("show", tmp_path / "both", "--cost"),
        ("predict", tmp_path / "both"),
        ("update", tmp_path / "both", "--to", ring, "--epochs", 0, "--threads", 1),
    ):
        result = cli(*command, "--directed")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), command
        assert "--directed must come with --dataset, or with a ticket whose run has read its graph so" in result.err
    assert cli("show", tmp_path / "one", "--cost", "--directed").code == 0, "as it was"


@pytest.mark.parametrize(
    "origin",
    [
        [],
        {"paths": []},
        {"paths": "x", "sha256": [], "directed": False},
        {"paths": [{"path": "a", "from_here": 1}], "sha256": [], "directed": False},
        {"paths": [{"path": "a\0", "from_here": "a"}], "sha256": [], "directed": False},
        {"paths": [{"path": "a", "from_here": "a"}] * 3, "sha256": [], "directed": False},
        {"paths": [{"path": "a", "from_here": "a"}], "sha256": [1], "directed": False},
        {"paths": [{"path": "a", "from_here": "a"}], "sha256": [], "directed": 1},
    ],
)
def test_a_record_of_files_that_no_run_wrote_is_refused(ticket: Ticket, tmp_path: Path, origin: object) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"dataset": "a.npz"}, "graph_from": origin}))
    with pytest.raises(InputError, match=r"run\.json' cannot be read; pass --dataset"):
        OwnGraph().load(tmp_path / "ticket.safetensors")


@pytest.mark.parametrize("place", ["os:system", "digits", "\x1b[2Jx.npz", "/dev/zero"])
def test_a_record_of_files_names_files_and_nothing_else(
    cli: Cli, ticket: Ticket, tmp_path: Path, place: str
) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    origin = {"paths": [{"path": place, "from_here": place}], "sha256": [], "directed": False}
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"dataset": "x.npz"}, "graph_from": origin}))
    result = cli("show", tmp_path, "--cost")
    assert result.code == 2
    assert "the ticket's graph is gone" in result.err
    assert "\x1b" not in result.err


def test_a_folder_of_before_needs_the_path(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"dataset": "cora.npz"}}))
    with pytest.raises(InputError, match=r"came from a file \(got 'cora.npz'\); pass its path as --dataset"):
        OwnGraph().load(tmp_path / "ticket.safetensors")


def test_a_damaged_record_is_named(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"run\.json' cannot be read; pass --dataset"):
        run_settings(tmp_path / "ticket.safetensors")
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"dataset": "digits"}}))
    assert OwnGraph().load(tmp_path / "ticket.safetensors").name == "digits"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"settings": []}',
        '{"settings": {"dataset": 1}}',
        "[" * 100_000,
        '{"settings": ' + "[" * 99_999,
    ],
)
def test_a_damaged_record_of_the_run_is_told(ticket: Ticket, tmp_path: Path, content: str) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"run.json' cannot be read; pass --dataset"):
        run_settings(tmp_path / "ticket.safetensors")


def test_a_changed_record_of_the_run_is_told(ticket: Ticket, tmp_path: Path) -> None:
    ticket.save(tmp_path / "ticket.safetensors")
    record = tmp_path / "run.json"
    record.write_text('{"settings": {"dataset": "cora"}}')
    assert run_settings(tmp_path / "ticket.safetensors") == {"dataset": "cora"}
    digests.record(tmp_path, {"run.json": record.read_bytes()})
    assert run_settings(tmp_path / "ticket.safetensors") == {"dataset": "cora"}
    record.write_text('{"settings": {"dataset": "citeseer"}}')
    with pytest.raises(InputError, match=r"run.json' cannot be read"):
        run_settings(tmp_path / "ticket.safetensors")
