"""Our whole search against our own dense training and against stock PyG's."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from fastglt.bench import Note, silent
from fastglt.bench.memory import peaks
from fastglt.bench.runs import SteppedSearch, Work, seconds, stock_epochs, warm_up
from fastglt.bench.stock import FORMS
from fastglt.errors import require
from fastglt.methods import FixedMasks, Method
from fastglt.runs.experiment import Experiment, Prepared
from fastglt.system.seeds import own_random_state

_TURN = 10  # epochs that a side of ours runs before the other's turn
_SAMPLES = 5  # times in a run that stock PyG has its turn, at most


@dataclass(frozen=True, kw_only=True)
class Sample:
    """How much of stock PyG's training is timed beside each run of ours; the whole could take hours."""

    epochs: int = 20
    seconds: float = 20.0  # after which its turn ends, though not before an epoch

    def __post_init__(self) -> None:
        require("be at least 1", pyg_epochs=self.epochs)
        require("not be negative", pyg_seconds=self.seconds)


class Timed:
    """A whole run of ours and the seconds it takes: its start, epochs, cut, swaps and last look."""

    def __init__(self, prepared: Prepared, method: Method) -> None:
        # a task of its own: what one run finds out about the graph must not save time in another
        task = (
            type(prepared.task)
            .from_data(prepared.dataset.data, metric=prepared.task.metric, **prepared.task.options)
            .to(prepared.task.device)
        )
        self._prepared, self._method, self._task = prepared, method, task
        self._run: SteppedSearch | None = None
        self.seconds = 0.0

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self._run is not None and self._run.finished

    @property
    def run(self) -> SteppedSearch:
        """The run itself, begun when it is first needed."""
        if self._run is None:
            seed = self._prepared.experiment.seed
            self._run = SteppedSearch(self._prepared.network, self._task, self._method, seed=seed)
        return self._run

    def take_turn(self) -> None:
        """Some more epochs, if there are any left."""
        self.seconds += seconds(self._epochs, self._task.device)

    def _epochs(self) -> None:
        for _ in range(_TURN):
            if not self.run.finished:
                self.run.epoch()


@dataclass(frozen=True, kw_only=True)
class Result:
    """Seconds of one repetition."""

    search: float
    dense: float
    pyg_epochs: dict[str, list[float]]  # for each form of the graph, the epochs that were timed


def measure(experiment: Experiment, *, repeats: int, sample: Sample, note: Note = silent) -> dict[str, Any]:
    """A row: seconds of the search and of both dense trainings of as many epochs, medians, and peak memory.

    Search and dense training take turns, a few epochs each, so that both see the same machine; PyG's epochs
    are sampled in between, and their mean stands for the rest.
    """
    prepared = experiment.prepare()
    memory, budget, device = peaks(prepared, note), prepared.method.budget, prepared.task.device
    with own_random_state(device):
        note("warming up")
        _warm_up(prepared)
        stock = stock_epochs(prepared)
        for work in stock.values():
            warm_up(work, device)
        results = []
        for repeat in range(repeats):
            note(f"run {repeat + 1}/{repeats}")
            results.append(_race(prepared, stock, sample, note))
    search, dense = median(result.search for result in results), median(result.dense for result in results)
    means = {form: [_mean(result.pyg_epochs[form]) for result in results] for form in FORMS}
    pyg = {form: budget.epochs * median(means[form]) for form in FORMS}
    faster = min(FORMS, key=lambda form: pyg[form])
    return {
        "dataset": experiment.dataset,
        "model": experiment.model,
        "epochs": budget.epochs,
        "search_seconds": search,
        "dense_seconds": dense,
        "pyg_dense_seconds": pyg[faster],
        "ratio_to_dense": search / dense,
        "ratio_to_pyg": search / pyg[faster],
        **{f"pyg_{form}_dense_seconds": pyg[form] for form in FORMS},
        "pyg_faster": faster,
        "pyg_epochs_timed": sum(len(result.pyg_epochs[faster]) for result in results),
        **memory,
        "peak_mb_pyg": memory[f"peak_mb_pyg_{faster}"],
    }


def _race(prepared: Prepared, stock: Mapping[str, Work], sample: Sample, note: Note) -> Result:
    """One whole search and one whole dense training, in turns, and a sample of PyG's epochs."""
    method = prepared.method
    sides = {"search": Timed(prepared, method), "dense": Timed(prepared, FixedMasks(budget=method.budget))}
    turns = math.ceil(method.epochs / _TURN)
    samples = min(_SAMPLES, turns, sample.epochs)
    sampled = {(i + 1) * turns // samples for i in range(samples)}
    timed: dict[str, list[float]] = {form: [] for form in stock}
    for turn in range(1, turns + 1):
        for side in list(sides.values())[:: 1 if turn % 2 else -1]:
            side.take_turn()
        note(f"epoch {min(turn * _TURN, method.epochs)}/{method.epochs}")
        if turn in sampled:
            for form, work in stock.items():
                note(f"stock PyG with {form}")
                timed[form] += _take_sample(work, math.ceil(sample.epochs / samples), sample.seconds, prepared)
    assert all(side.finished for side in sides.values()), "a run has as many epochs as its budget"
    return Result(search=sides["search"].seconds, dense=sides["dense"].seconds, pyg_epochs=timed)


def _take_sample(work: Work, epochs: int, limit: float, prepared: Prepared) -> list[float]:
    spent = [seconds(work, prepared.task.device)]
    while len(spent) < epochs and sum(spent) < limit:
        spent.append(seconds(work, prepared.task.device))
    return spent


def _warm_up(prepared: Prepared) -> None:
    """A search in short, for the kernels to be compiled."""
    short = replace(prepared.method.budget, oneshot_epochs=1, denoise_epochs=2, interval=1)
    run = Timed(prepared, replace(prepared.method, budget=short))
    while not run.finished:
        run.take_turn()


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
