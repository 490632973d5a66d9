"""How time is taken: with a clock of our own, so that a slow machine changes nothing."""

import contextlib
from collections.abc import Callable, Iterator

import pytest
import torch

from fastglt.bench.runs import SteppedSearch, calls, interleaved, seconds, stock_epochs, stock_runs, warm_up
from fastglt.system.seeds import own_random_state
from fastglt.training.loop import Training, train

from .conftest import tiny_experiment

CPU = torch.device("cpu")


class Clock:
    """Time that passes only when work is done; it remembers who worked."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, list[str]()

    def work(self, name: str, *durations: float) -> Callable[[], None]:
        """Work that takes these seconds, one after the other, and then always the last."""
        left = list(durations)

        def run() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]
            self.log.append(name)

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("fastglt.bench.runs.time.perf_counter", lambda: made.now)
    return made


def test_seconds_of_several_times(clock: Clock) -> None:
    assert seconds(clock.work("a", 2.0, 3.0), CPU, times=3) == 8.0


def test_warming_up_ends_after_three_epochs_or_a_second(clock: Clock) -> None:
    assert warm_up(clock.work("fast", 0.3, 0.2, 0.1), CPU) == pytest.approx(0.1)
    assert warm_up(clock.work("slow", 5.0), CPU) == 5.0
    assert clock.log == ["fast"] * 3 + ["slow"]


def test_every_round_takes_each_side_in_turn_and_the_median_counts(clock: Clock) -> None:
    sides = {"a": clock.work("a", 9.0, 1.0, 2.0, 30.0), "b": clock.work("b", 7.0)}
    notes: list[str] = []
    found = interleaved(sides, repeats=3, device=CPU, note=notes.append)
    assert "".join(clock.log) == "ab" + "ab" + "ba" + "ab", "warm-up, then rounds in alternating order"
    assert found == {"a": 2.0, "b": 7.0}
    assert notes == ["warming up a", "warming up b", "round 1/3", "round 2/3", "round 3/3"]


def test_a_fast_side_runs_a_few_epochs_at_a_time(clock: Clock) -> None:
    found = interleaved({"a": clock.work("a", 0.05), "b": clock.work("b", 1e-6)}, repeats=1, device=CPU)
    assert clock.log[6:] == ["a"] * 5 + ["b"] * 10
    assert found == pytest.approx({"a": 0.05, "b": 1e-6})


def test_first_calls_and_calls_in_a_row_are_told_apart(clock: Clock) -> None:
    sides = {"a": clock.work("a", 5.0, 2.0, 0.02, 0.01), "b": clock.work("b", 7.0)}
    found = calls(sides, repeats=2, device=CPU)
    assert found["a"].first == pytest.approx([2.0, 0.01])
    assert found["a"].in_a_row == pytest.approx([0.01, 0.01])
    assert found["b"].in_a_row == pytest.approx([7.0, 7.0])
    assert "".join(clock.log) == "ab" + "aaaa" + "bb" + "bb" + "aaaaa"


@pytest.mark.parametrize("method", ["fastglt", "oneshot", "random"])
def test_a_run_is_the_training_loop_bit_for_bit(method: str) -> None:
    prepared = tiny_experiment(method=method).prepare()
    wanted = Training(prepared.network, prepared.task, prepared.method.budget.recipe, seed=0)
    train(wanted, prepared.method)
    with own_random_state(CPU):
        run = SteppedSearch(prepared.network, prepared.task, prepared.method, seed=0)
        while not run.finished:
            torch.rand(1)  # others draw random numbers in between
            run.epoch()
    assert run.training.history == wanted.history
    assert run.training.best is not None
    assert wanted.best is not None
    assert run.training.best.masks == wanted.best.masks


@pytest.mark.parametrize("large", [False, True])
def test_peers_on_large_graphs_return_their_memory(monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    seen = []

    @contextlib.contextmanager
    def noted() -> Iterator[None]:
        seen.append("begun")
        yield
        seen.append("ended")

    prepared = tiny_experiment().prepare()
    monkeypatch.setattr("fastglt.bench.runs.returning_large_memory", noted)
    monkeypatch.setattr(type(prepared.task.graph), "is_large", large)
    for epoch in stock_epochs(prepared).values():
        epoch()
    assert seen == ["begun", "ended"] * 2 * large


def test_the_peers_are_trained_with_the_same_recipe_and_network() -> None:
    prepared = tiny_experiment(model="gat").prepare()
    peers = stock_runs(prepared)
    assert set(peers) == {"edge_index", "csr"}
    for form, peer in peers.items():
        assert (peer.graph.layout == torch.sparse_csr) == (form == "csr")
        assert (peer.optimizer.defaults["lr"], peer.optimizer.defaults["weight_decay"]) == (0.01, 5e-4)
        assert peer.network.dropout == prepared.network.dropout
        ours, theirs = (sum(p.numel() for p in n.parameters()) for n in (prepared.network, peer.network))
        assert ours == theirs
