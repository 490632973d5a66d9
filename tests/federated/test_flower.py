"""Flower carries the messages: a SuperLink and SuperNodes as processes on this machine, one of which is killed."""

import json
from pathlib import Path

import pytest

from fastglt import MachineError, Ticket
from fastglt.federated import Plan
from fastglt.federated.job import Job
from fastglt.federated.launch import Loopback, require_flower
from fastglt.federated.rounds import InProcess

GRAPH = "synthetic:nodes=120,edges=400,features=16,classes=3"


def job() -> Job:
    plan = Plan(clients=2, parts="random", rounds=3, warmup=1, weight_sparsity=0.5)
    return Job(dataset=GRAPH, plan=plan, hidden=8)


def test_a_job_is_what_it_was_after_its_way_through_json() -> None:
    assert Job.of(json.dumps(job().settings)) == job()


def test_without_the_extra_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastglt.federated.launch.find_spec", lambda name: None)
    with pytest.raises(MachineError, match=r"needs flwr; run pip install 'fastglt\[federated\]'"):
        require_flower()


def test_flower_brings_the_same_ticket_and_the_killed_client_is_named(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="Flower is not installed; make federated sets it up")
    told: list[dict[str, object]] = []
    rounds = Loopback(job=job(), out=tmp_path, patience=90).run(told.append, killed=[(1, 1)])
    assert told == rounds
    assert [one["number"] for one in rounds] == [1, 2, 3, 4]
    late = [number for number, one in enumerate(rounds, start=1) if one["left_out"]]
    assert late
    assert all(set(rounds[number - 1]["left_out"]) == {"1"} for number in late)
    federation = job().federation()
    faults = {(number, 1): lambda reply: None for number in late}
    here = federation.run(InProcess(members=federation.members(), faults=faults))
    assert [one.scores for one in here.rounds] == [one["scores"] for one in rounds]
    ticket = Ticket.load(tmp_path / "ticket.safetensors")
    assert ticket.masks == here.ticket.masks
