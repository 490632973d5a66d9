"""Whole runs from names and numbers; what the command line adds is tested with it."""

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fastglt import Ticket
from fastglt.data import load
from fastglt.data.disk import opening
from fastglt.data.disk.prepare import prepare
from fastglt.data.disk.sources import open_stream
from fastglt.report.wording import phase_title
from fastglt.runs.experiment import Prepared
from fastglt.runs.run_folder import RunFolder
from fastglt.training.loop import Training
from tests.bench.conftest import tiny_experiment

# 20 % of 200 edges in two rounds, 90 % of the weights in three
UGS = {"round_epochs": 2, "edge_share": 0.15, "weight_share": 0.6}


def run(prepared: Prepared, path: Path, *, stop_after: int | None = None, phase: str = "search") -> dict[str, Any]:
    folder = RunFolder(path, prepared.settings)

    def stop(now: str, training: Training, epochs: int) -> None:
        folder.stop = (now, training.epoch + 1) == (phase, stop_after)

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


def test_links_of_a_large_prepared_graph_are_those_of_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out = "synthetic:nodes=200,edges=900,classes=3,features=8", tmp_path / "graph.fgr"
    source = partial(open_stream, name, partial(load, name))
    prepare(source, out, memory=1 << 26, directed=False, asked=name, tell=lambda line: None)
    monkeypatch.setattr(opening, "LARGE", 1)
    links = replace(tiny_experiment(dataset=str(out)), task="link", metric="roc_auc")
    prepared = links.prepare()
    assert prepared.dataset.compressed is not None
    assert prepared.task.digests == replace(links, dataset=name).prepare().task.digests


class TestDistilled:
    def prepared(self, method: str = "fastglt") -> Prepared:
        budget = replace(tiny_experiment().budget, distill=2.0)
        return tiny_experiment(method=method, budget=budget).prepare()

    @pytest.mark.parametrize("phase", ["teacher", "search", "isolated", "dense_distilled"])
    def test_a_run_stopped_in_any_phase_comes_to_the_same(self, tmp_path: Path, phase: str) -> None:
        prepared = self.prepared()
        whole = run(prepared, tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt, match=f"{phase_title(phase)}, epoch 7"):
            run(prepared, tmp_path / "stopped", stop_after=7, phase=phase)
        again = run(prepared, tmp_path / "stopped")
        assert tickets(tmp_path / "stopped") == tickets(tmp_path / "whole")
        histories = [(tmp_path / name / "history.csv").read_text() for name in ("whole", "stopped")]
        assert histories[0] == histories[1]
        assert {key: value for key, value in again.items() if "seconds" not in key} == {
            key: value for key, value in whole.items() if "seconds" not in key
        }

    def test_both_opponents_are_in_the_metrics(self, tmp_path: Path) -> None:
        metrics, plain = run(self.prepared(), tmp_path / "a"), run(tiny_experiment().prepare(), tmp_path / "b")
        assert metrics["distill"] == 2.0
        assert metrics["dense_test"] == metrics["teacher_test"] == plain["dense_test"]
        assert metrics["dense_seconds"] == metrics["teacher_seconds"]
        for run_of, ending, twin in (
            ("search", "", "dense"),
            ("isolated", "", "dense"),
            ("search", "_distilled", "dense_distilled"),
            ("isolated", "_distilled", "dense_distilled"),
        ):
            wins = metrics[f"{run_of}_test"] >= metrics[f"{twin}_test"]
            assert metrics[f"winning_{run_of}{ending}"] == wins
        assert not any("distill" in name or "teacher" in name for name in plain)

    def test_a_distilled_twin_alone_is_that_of_the_whole_run(self, tmp_path: Path) -> None:
        prepared = self.prepared("random")
        whole = run(prepared, tmp_path / "whole")
        folder = RunFolder(tmp_path / "twin", prepared.twins["dense_distilled"])
        with folder.open():
            twin = prepared.run_dense(folder, "dense_distilled")
        assert twin["dense_distilled_test"] == whole["dense_distilled_test"]
        assert twin["dense_distilled_val"] == whole["dense_distilled_val"]
        assert twin["teacher_test"] == whole["teacher_test"]
        assert "dense_test" not in twin

    def test_a_rehearsal_is_taught_if_the_run_is(self) -> None:
        for prepared, weight in ((self.prepared(), 2.0), (tiny_experiment().prepare(), None)):
            teacher = prepared.rehearse(prepared.method).teacher
            assert (None if teacher is None else teacher.weight) == weight
            prepared.warm_up()
            prepared.warm_up(dense=True)
