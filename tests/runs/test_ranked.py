"""Several processes of one run. Two of them give what one gives, bit for bit, on whatever number a run goes on."""

import json
import signal
import time
from pathlib import Path

import pytest
import torch

from fastglt.errors import InputError
from fastglt.runs.build import build_experiment
from fastglt.runs.experiment import Experiment
from fastglt.runs.ranked import RankedJournal, check_ranks
from fastglt.runs.run_folder import RunFolder
from fastglt.system.ranks import World, world
from tests.processes import Process, run_ranks, start_ranks
from tests.runs.ranked_tickets import digests

DATASET, EPOCHS = "synthetic:nodes=120,edges=400,features=8", {"oneshot_epochs": 4, "denoise_epochs": 26}
BY_PARTS = {"parts": 6, "parts_per_step": 2, "shares": 2}


def experiment(**parts: int) -> Experiment:
    return build_experiment(
        training={**EPOCHS, "interval": 2, "lr": 0.01, **BY_PARTS, **parts},
        options={},
        graph_sparsity=0.2,
        weight_sparsity=0.9,
        dataset=DATASET,
        model="gcn",
        method="fastglt",
        hidden=8,
        threads=1,
    )


def start(out: Path, size: int) -> list[Process]:
    """The processes of a run."""
    words = f"find --dataset {DATASET} --hidden 8 --lr 0.01 --interval 2 --threads 1 --quiet --checkpoint-every 0"
    words += " --oneshot-epochs 4 --denoise-epochs 26 --parts 6"
    return start_ranks(size, "-m", "fastglt", *words.split(), "--out", out, "--store", f"{out}.db")


def test_two_processes_one_of_them_killed_and_one_that_goes_on(tmp_path: Path) -> None:
    both = start(tmp_path / "run", 2)
    checkpoint = tmp_path / "run" / "checkpoint" / "search.part"
    try:
        until = time.monotonic() + 100
        while not checkpoint.exists() and time.monotonic() < until and both[0].poll() is None:
            time.sleep(0.02)
        both[1].send_signal(signal.SIGKILL)
        told = both[0].communicate(timeout=60)
    finally:
        for one in both:
            one.kill()
            one.communicate()
    assert both[0].returncode == 1, told
    assert told[1].startswith("error: another process of this run has ended")
    assert told[1].strip().endswith("the same command goes on from the last checkpoint")
    assert checkpoint.exists(), told

    prepared = experiment().prepare()
    for name in ("run", "undisturbed"):  # the one goes on with one process
        folder = RunFolder(tmp_path / name, prepared.settings, checkpoint_every=0)
        with folder.open() as finished:
            assert finished is None
            prepared.run(folder)
    disturbed, whole = ((tmp_path / name / "ticket.safetensors").read_bytes() for name in ("run", "undisturbed"))
    assert disturbed == whole


def test_a_run_of_one_process_goes_on_with_three_and_then_with_two(tmp_path: Path) -> None:
    prepared = experiment(parts_per_step=3, shares=3).prepare()
    whole, begun = (RunFolder(tmp_path / name, prepared.settings) for name in ("undisturbed", "run"))
    with whole.open():
        prepared.run(whole)
    with begun.open():
        begun.stop = True
        with pytest.raises(KeyboardInterrupt):
            prepared.find(begun)
    checkpoint = tmp_path / "run" / "checkpoint" / "search.part"
    written, three = checkpoint.stat().st_mtime_ns, start(tmp_path / "run", 3)
    try:
        until = time.monotonic() + 100
        while checkpoint.exists() and checkpoint.stat().st_mtime_ns == written and time.monotonic() < until:
            time.sleep(0.02)
        three[2].kill()
        told = three[0].communicate(timeout=60)
    finally:
        for one in three:
            one.kill()
            one.communicate()
    assert three[0].returncode == 1, told
    assert checkpoint.exists(), told
    for one in (two := start(tmp_path / "run", 2)):
        told = one.communicate(timeout=100)
        assert one.returncode == 0, told
    tickets = [(tmp_path / name / "ticket.safetensors").read_bytes() for name in ("undisturbed", "run")]
    assert tickets[0] == tickets[1]
    ranks = json.loads((tmp_path / "run" / "metrics.json").read_text())["ranks"]
    assert ranks["processes"] == len(two)
    assert min(*ranks["bytes_per_epoch"]["edges"], *ranks["bytes_per_epoch"]["masks"]) > 0


def test_three_processes_cut_and_swap_edges_as_one_does_whatever_the_method() -> None:
    assert run_ranks(3, "-m", "tests.runs.ranked_tickets") == [f"{digests()}\n"] * 3


class TestAlone:
    def test_a_world_of_one_hands_nothing_over(self) -> None:
        numbers = torch.ones(3)
        assert world().add_up(numbers, "edges") is numbers
        assert world().all_rows(numbers.view(3, 1), [3], "rows", numbers.device).shape == (3, 1)
        assert world().from_first({"x": numbers}, {"a": 1})[1] == {"a": 1}
        assert world().report(7) == {
            "processes": 1,
            "bytes_per_epoch": {"gradients": [0], "edges": [0], "rows": [0], "masks": [0]},
            "peak_bytes": [7],
        }

    def test_items_are_dealt_out_in_order(self) -> None:
        assert World(size=3).dealt([1, 2, 3, 4]) == [[1, 2], [3], [4]]
        assert World(rank=1, size=3).mine([1]) == []

    def test_a_journal_of_one_process_is_the_folder(self, tmp_path: Path) -> None:
        prepared = experiment().prepare()
        journal = RankedJournal(RunFolder(tmp_path / "run", prepared.settings))
        with journal.open() as finished:
            assert finished is None
            journal.stop = True
            with pytest.raises(KeyboardInterrupt):
                prepared.find(journal)
        assert (tmp_path / "run" / "checkpoint" / "search.part").exists()


class TestRefused:
    @pytest.mark.parametrize(
        ("size", "parts", "shares", "rule"),
        [
            (2, None, None, r"parts must be at least the number of processes, 2 \(got 1\)"),
            (9, 8, None, r"parts must be at least the number of processes, 9 \(got 8\)"),
            (3, 8, 2, r"shares must be at least the number of processes, 3 \(got 2\)"),
        ],
    )
    def test_processes_without_work(self, size: int, parts: int | None, shares: int | None, rule: str) -> None:
        with pytest.raises(InputError, match=rule):
            check_ranks(size, parts=parts, shares=shares)
