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


def test_a_graph_from_a_file_needs_its_path(cli: Cli, tmp_path: Path) -> None:
    nodes = np.arange(60)
    x = np.eye(3, dtype=np.float32)[nodes % 3]
    edges = np.stack([nodes, (nodes + 1) % 60])
    ring = tmp_path / "cora.npz"  # which is not the graph of that name
    np.savez(ring, edge_index=edges, x=x, y=nodes % 3)
    short = ("--hidden", "4", "--oneshot-epochs", "1", "--denoise-epochs", "2", "--interval", "1", "--threads", "1")
    arguments = ("--dataset", ring, "--directed", *short, "--quiet", "--out", tmp_path / "run")
    assert cli("find", *arguments).code == 0
    ticket, file = open_ticket(tmp_path / "run")
    with pytest.raises(InputError, match=r"came from a file \(got 'cora.npz'\); pass its path as --dataset"):
        OwnGraph().load(file)
    task = task_of(ticket, OwnGraph(dataset=str(ring), directed=True).load(file))
    assert task.graph.directed
    with pytest.raises(InputError, match="with --directed"):
        task_of(ticket, OwnGraph(dataset=str(ring)).load(file))


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
