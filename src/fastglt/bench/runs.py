"""What is timed: our runs and stock PyG's, both one epoch at a time."""

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import NamedTuple

import torch

from fastglt.bench import Note, silent
from fastglt.bench.stock import FORMS, StockTraining
from fastglt.methods import Method
from fastglt.models.base import Network
from fastglt.models.twins import build_twin
from fastglt.runs.experiment import Prepared
from fastglt.system.process import returning_large_memory
from fastglt.tasks import Task
from fastglt.training.loop import Training

Work = Callable[[], object]

_WARM_UP_SECONDS, _WARM_UP_EPOCHS = 1.0, 3
_BLOCK_SECONDS, _BLOCK_EPOCHS = 0.25, 10
_ROW_SECONDS, _ROW_CALLS = 0.03, 100


class SteppedSearch:
    """A method at work, begun and driven exactly as `training.train` does, but an epoch at a time."""

    def __init__(self, network: Network, task: Task, method: Method, *, seed: int) -> None:
        self.method = method
        self.training = Training(network, task, method.recipe, seed=seed)
        method.begin(self.training)

    @property
    def finished(self) -> bool:
        """Whether the method is at its end."""
        return self.method.finished(self.training)

    def epoch(self) -> None:
        """Train and evaluate, then let the method revise its masks."""
        self.training.run_epoch(self.method)
        self.method.after_epoch(self.training)


def stock_runs(prepared: Prepared) -> dict[str, StockTraining]:
    """Stock PyG's training of the same network on the same data, one for each form of the graph."""
    recipe, network = prepared.method.budget.recipe, prepared.network
    data = copy.copy(prepared.dataset.data).to(prepared.task.device)
    return {
        form: StockTraining(
            build_twin(network.twin, network.spec), data, form, lr=recipe.lr, weight_decay=recipe.weight_decay
        )
        for form in FORMS
    }


def stock_epochs(prepared: Prepared) -> dict[str, Work]:
    """An epoch of stock PyG for each form of the graph.

    On a large graph it returns memory as any process of PyTorch's does: if it kept what ours is told to keep, both
    sides and both forms together would soon need more than there is.
    """
    epochs: dict[str, Work] = {form: run.run_epoch for form, run in stock_runs(prepared).items()}
    if not prepared.task.graph.is_large:
        return epochs
    return {form: returning_large_memory()(epoch) for form, epoch in epochs.items()}


def seconds(work: Work, device: torch.device, times: int = 1) -> float:
    """How long some work takes, the device's part of it included."""
    _wait(device)
    began = time.perf_counter()
    for _ in range(times):
        work()
    _wait(device)
    return time.perf_counter() - began


def warm_up(work: Work, device: torch.device) -> float:
    """Let kernels compile and caches fill, which is not counted; returns the seconds of the last, warm epoch."""
    spent = [seconds(work, device)]
    while len(spent) < _WARM_UP_EPOCHS and sum(spent) < _WARM_UP_SECONDS:
        spent.append(seconds(work, device))
    return spent[-1]


def interleaved(
    sides: Mapping[str, Work], *, repeats: int, device: torch.device, note: Note = silent
) -> dict[str, float]:
    """The median seconds of each side's epoch: every round takes each in turn, fast ones a few epochs at a time."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for name, epochs in _turns(sides, repeats, device, note):
        times[name].append(seconds(sides[name], device, epochs) / epochs)
    return {name: median(found) for name, found in times.items()}


class Calls(NamedTuple):
    """The seconds of a side's calls, one number for each turn."""

    first: list[float]  # of the first call of a turn, which finds the caches as the others left them
    in_a_row: list[float]  # of each of the calls that follow it at once, on average


def calls(
    sides: Mapping[str, Work], *, repeats: int, device: torch.device, note: Note = silent
) -> dict[str, Calls]:
    """The seconds of single calls and of calls in a row; in each turn the one, then the others."""
    times = {name: Calls([], []) for name in sides}
    for name, _ in _turns(sides, repeats, device, note):
        times[name].first.append(seconds(sides[name], device))
        times[name].in_a_row.append(_each_in_a_row(sides[name], device))
    return times


def _each_in_a_row(work: Work, device: torch.device) -> float:
    """The mean seconds of a call among as many in a row as take some hundredths of a second, all of them warm."""
    once = seconds(work, device)
    times = min(_ROW_CALLS, max(1, round(_ROW_SECONDS / max(once, 1e-9))))
    return once if times == 1 else seconds(work, device, times) / times


def _turns(sides: Mapping[str, Work], repeats: int, device: torch.device, note: Note) -> Iterator[tuple[str, int]]:
    """Whose turn it is, and for how many epochs a fast one stays; in every other round the last comes first."""
    often = {}
    for name, work in sides.items():
        note(f"warming up {name}")
        often[name] = min(_BLOCK_EPOCHS, max(1, round(_BLOCK_SECONDS / max(warm_up(work, device), 1e-9))))
    for round_ in range(repeats):
        note(f"round {round_ + 1}/{repeats}")
        for name in list(sides) if round_ % 2 == 0 else list(sides)[::-1]:
            yield name, often[name]


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
