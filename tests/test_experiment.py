"""Whole runs from names and numbers; what the command line adds is tested with it."""

import csv
from pathlib import Path
from typing import Any

import pytest

from fastglt import Ticket
from fastglt.experiment import Prepared
from fastglt.run_folder import RunFolder
from fastglt.training import Training
from tests.bench.conftest import tiny_experiment

# 20 % of 200 edges in two rounds, 90 % of the weights in three
UGS = {"round_epochs": 2, "edge_share": 0.15, "weight_share": 0.6}


def run(prepared: Prepared, path: Path, *, stop_after: int | None = None) -> dict[str, Any]:
    folder = RunFolder(path, prepared.settings)

    def stop(phase: str, training: Training, epochs: int) -> None:
        folder.stop = (phase, training.epoch + 1) == ("search", stop_after)

    with folder.open() as finished:
        assert finished is None
        return prepared.run(folder, stop)


def tickets(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*.safetensors")}


class TestRounds:
    def test_each_has_a_file_and_a_line_in_the_metrics(self, tmp_path: Path) -> None:
        metrics = run(tiny_experiment(method="ugs", options=UGS).prepare(), tmp_path)
        assert set(tickets(tmp_path)) == {"ticket.safetensors", *(f"rounds/0{n}.safetensors" for n in (1, 2, 3))}
        assert len(metrics["rounds"]) == 3
        for number, line in enumerate(metrics["rounds"], start=1):
            ticket = Ticket.load(tmp_path / "rounds" / f"0{number}.safetensors")
            assert line == {
                "round": number,
                "graph_sparsity": ticket.graph_sparsity,
                "weight_sparsity": ticket.weight_sparsity,
                "search_val": ticket.scores["search_val"],
                "search_test": ticket.scores["search_test"],
            }
        assert [line["graph_sparsity"] for line in metrics["rounds"]] == [0.15, 0.2, 0.2]
        assert [round(line["weight_sparsity"], 2) for line in metrics["rounds"]] == [0.6, 0.84, 0.9]
        assert metrics["rounds"][-1]["search_test"] == metrics["search_test"]

    def test_a_stopped_run_has_the_same_files(self, tmp_path: Path) -> None:
        prepared = tiny_experiment(method="ugs", options=UGS).prepare()
        run(prepared, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            run(prepared, tmp_path / "stopped", stop_after=6)
        assert tickets(tmp_path / "stopped") == {}
        run(prepared, tmp_path / "stopped")
        assert tickets(tmp_path / "stopped") == tickets(tmp_path / "whole")

    def test_other_methods_have_none(self, tmp_path: Path) -> None:
        metrics = run(tiny_experiment().prepare(), tmp_path)
        assert metrics["rounds"] == []
        assert not (tmp_path / "rounds").exists()


def test_epochs_of_the_search_are_told_apart_from_those_of_the_protocol(tmp_path: Path) -> None:
    metrics = run(tiny_experiment(method="ugs", options=UGS).prepare(), tmp_path)
    assert (metrics["search_epochs"], metrics["epochs"]) == (12, 16)
    rows = list(csv.DictReader((tmp_path / "history.csv").read_text().splitlines()))
    phases = [row["phase"] for row in rows]
    assert [phases.count(phase) for phase in ("search", "isolated", "dense")] == [12, 16, 16]


def test_a_search_of_fastglt_takes_the_protocols_epochs(tmp_path: Path) -> None:
    metrics = run(tiny_experiment().prepare(), tmp_path)
    assert (metrics["search_epochs"], metrics["epochs"]) == (16, 16)
