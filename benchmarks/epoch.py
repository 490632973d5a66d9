"""Where an epoch goes: each kernel's time, and how far it is from what the machine allows.

    python benchmarks/epoch.py cora gcn gin gat

One thread, stage 2 of a search (hard masks, soft edge scores). Two rates are measured in the same process: the
arithmetic of a large matrix product, and the bandwidth of a copy that does not fit the caches. The bound of a
kernel is its arithmetic at the first rate or its inputs and outputs, each moved once, at the second, whichever
takes longer; `x bound` is its time divided by that. A sparse product also gathers one row for each entry, from
whichever cache holds it: `gather` is that rate. What is left over is PyTorch's own work and Python.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from fastglt.kernels import CSR, _numba, set_threads
from fastglt.methods import Targets
from fastglt.methods.settings import budget_for
from fastglt.runs.experiment import Experiment
from fastglt.system.process import keep_freed_memory
from fastglt.training.loop import Training


@dataclass
class Cost:
    calls: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    moved: float = 0.0  # bytes, each input and output once
    gathered: float = 0.0  # bytes of rows fetched, one for each entry


def gather_cost(csr: CSR, columns: int) -> tuple[float, float]:
    """Flops and gathered bytes of one multiply-add per entry and column."""
    return 2.0 * csr.num_entries * columns, 4.0 * csr.num_entries * columns


def watch(costs: dict[str, Cost]) -> None:
    """Let every kernel of the compiled back end add to its cost."""

    def wrap(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments)
            taken = time.perf_counter() - began
            cost = costs[label(name, arguments)]
            cost.calls += 1
            cost.seconds += taken
            outputs = result if isinstance(result, tuple) else (result,)
            tensors = [part for part in (*arguments, *outputs) if isinstance(part, Tensor)]
            csrs = [part for part in arguments if isinstance(part, CSR)]
            cost.moved += sum(part.numel() * part.element_size() for part in tensors)
            cost.moved += sum(4.0 * csr.num_entries + 8.0 * csr.num_rows for csr in csrs)
            if csrs and name in ("aggregate", "sddmm"):
                dense = arguments[2]
                flops, gathered = gather_cost(csrs[0], dense.shape[1])
                cost.flops += flops
                cost.gathered += gathered
            elif name == "matmul":
                cost.flops += 2.0 * arguments[0].numel() * arguments[1].shape[1]
            else:
                cost.flops += max(part.numel() for part in tensors)
            return result

        return run

    for name in ("aggregate", "sddmm", "matmul", "activation_backward", "dropout", "attention", "head_dots"):
        setattr(_numba, name, wrap(name, getattr(_numba, name)))
    for name in ("attention_backward", "head_dots_backward", "adam"):
        setattr(_numba, name, wrap(name, getattr(_numba, name)))


def label(name: str, arguments: tuple[Any, ...]) -> str:
    """What a reader calls it: sparse products differ by what is sparse."""
    if name != "aggregate":
        return name
    csr, _, dense = arguments[:3]
    wide = "narrow " if dense.shape[1] < 64 else ""
    features = csr.num_columns if csr.num_columns in _FEATURES else csr.num_rows
    kind = "features" if features in _FEATURES else "messages"
    return f"{wide}{kind}" + (", backward" if csr.num_rows in _FEATURES else "")


_FEATURES: set[int] = set()


def machine() -> tuple[float, float]:
    """Flops and bytes per second that one core reaches."""
    matrix, block = torch.rand(1024, 1024), torch.rand(2**24)
    out, copied = torch.empty_like(matrix), torch.empty_like(block)
    product = best_time(lambda: torch.mm(matrix, matrix, out=out))
    copy = best_time(lambda: copied.copy_(block))
    return 2 * 1024**3 / product, 2 * 4 * 2**24 / copy


def best_time(run: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def profile(dataset: str, model: str, epochs: int) -> None:
    """Print the table of one pair."""
    targets = Targets(graph_sparsity=0.2, weight_sparsity=0.9)
    prepared = Experiment(
        dataset=dataset, model=model, targets=targets, budget=budget_for(dataset, model)
    ).prepare()
    method = prepared.method
    training = Training(prepared.network, prepared.task, method.recipe, seed=0)
    method.begin(training)
    training.run_epoch(method)
    training.epoch = method.budget.oneshot_epochs
    method.after_epoch(training)
    for _ in range(3):
        training.run_epoch(method)
    _FEATURES.clear()
    _FEATURES.add(prepared.task.x.num_features)
    COSTS.clear()
    times = []
    for _ in range(epochs):
        began = time.perf_counter()
        training.run_epoch(method)
        times.append(time.perf_counter() - began)
    show(f"{dataset} {model}", COSTS, sum(times) / epochs, median(times), epochs)


def show(title: str, costs: dict[str, Cost], mean: float, middle: float, epochs: int) -> None:
    flop_rate, byte_rate = machine()
    table = Table(
        title=f"{title}: {1000 * middle:.1f} ms an epoch (median of {epochs}); the core reaches "
        f"{flop_rate / 1e9:.0f} GFLOP/s and {byte_rate / 1e9:.0f} GB/s",
        title_justify="left",
    )
    for heading in ("kernel", "calls", "ms", "share", "bound ms", "x bound", "GFLOP/s", "gather GB/s"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    total = 0.0
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].seconds):
        seconds = cost.seconds / epochs
        total += seconds
        bound = max(cost.flops / flop_rate, cost.moved / byte_rate) / epochs
        gather = f"{cost.gathered / cost.seconds / 1e9:.0f}" if cost.gathered else ""
        table.add_row(
            name,
            f"{cost.calls / epochs:g}",
            f"{1000 * seconds:.2f}",
            f"{seconds / mean:.0%}",
            f"{1000 * bound:.2f}",
            f"{seconds / bound:.1f}",
            f"{cost.flops / cost.seconds / 1e9:.1f}",
            gather,
        )
    rest = mean - total
    table.add_row("PyTorch and Python", "", f"{1000 * rest:.2f}", f"{rest / mean:.0%}", "", "", "", "")
    Console(width=120).print(table)


COSTS: dict[str, Cost] = defaultdict(Cost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--epochs", type=int, default=20)
    arguments = parser.parse_args()
    keep_freed_memory()
    set_threads(1)
    watch(COSTS)
    for model in arguments.models:
        profile(arguments.dataset, model, arguments.epochs)


if __name__ == "__main__":
    main()
