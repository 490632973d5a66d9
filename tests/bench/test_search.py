"""The row of `fastglt bench search`."""

from dataclasses import replace

import pytest

from fastglt import Budget, InputError
from fastglt.bench import search
from fastglt.bench.search import Sample, Timed, measure
from fastglt.training.loop import Training, train

from .conftest import PEAKS, tiny_experiment


def test_ratios_are_shares_of_time(no_processes: list[str]) -> None:
    notes: list[str] = []
    row = measure(tiny_experiment(), repeats=2, sample=Sample(epochs=3), note=notes.append)
    assert row["epochs"] == 16
    assert row["ratio_to_dense"] == pytest.approx(row["search_seconds"] / row["dense_seconds"])
    assert row["ratio_to_pyg"] == pytest.approx(row["search_seconds"] / row["pyg_dense_seconds"])
    both = row["pyg_edge_index_dense_seconds"], row["pyg_csr_dense_seconds"]
    assert row["pyg_dense_seconds"] == min(both) == row[f"pyg_{row['pyg_faster']}_dense_seconds"] > 0
    assert row["pyg_epochs_timed"] == 2 * 4, "three epochs in two blocks of equal size, twice"
    assert no_processes == ["memory"]
    assert row["peak_mb_pyg"] == PEAKS[f"peak_mb_pyg_{row['pyg_faster']}"]
    assert row.items() >= PEAKS.items()
    assert [note for note in notes if note.startswith("epoch")] == ["epoch 10/16", "epoch 16/16"] * 2


def test_peers_epochs_are_scaled_to_the_budget(no_processes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "seconds", lambda work, device: work() and 0.5)  # only PyG's epochs return scores
    monkeypatch.setattr(search.Timed, "take_turn", take_turn_of_one_second)
    row = measure(tiny_experiment(), repeats=1, sample=Sample(epochs=2))
    assert row["pyg_dense_seconds"] == 16 * 0.5
    assert row["search_seconds"] == row["dense_seconds"] == 2.0
    assert (row["ratio_to_dense"], row["ratio_to_pyg"]) == (1.0, 0.25)


def take_turn_of_one_second(timed: Timed) -> None:
    timed._epochs()
    timed.seconds += 1.0


def test_taking_turns_changes_nothing() -> None:
    prepared = tiny_experiment().prepare()
    wanted = Training(prepared.network, prepared.task, prepared.method.budget.recipe, seed=0)
    train(wanted, prepared.method)
    sides = [Timed(prepared, prepared.method), Timed(prepared, prepared.method)]
    while not all(side.finished for side in sides):
        for side in sides:
            before = side.seconds
            side.take_turn()
            assert side.seconds > before
    for side in sides:
        assert side.run.training.history == wanted.history


def test_each_run_finds_out_about_its_graph_itself() -> None:
    prepared = tiny_experiment().prepare()
    first, second = Timed(prepared, prepared.method), Timed(prepared, prepared.method)
    assert first.run.training.task.graph is not second.run.training.task.graph
    assert first.run.training.task.graph is not prepared.task.graph


def test_a_slow_peer_stops_early(no_processes: list[str]) -> None:
    experiment = tiny_experiment(budget=Budget(oneshot_epochs=20, denoise_epochs=100, interval=10))
    row = measure(experiment, repeats=1, sample=Sample(epochs=50, seconds=0.0))
    assert row["pyg_epochs_timed"] == 5, "one epoch in each of five blocks"


def test_the_sample_must_make_sense() -> None:
    with pytest.raises(InputError, match=r"pyg_epochs must be at least 1 \(got 0\)"):
        Sample(epochs=0)
    for wrong in (-1.0, float("nan")):
        with pytest.raises(InputError, match="pyg_seconds must not be negative"):
            replace(Sample(), seconds=wrong)
