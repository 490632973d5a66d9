"""A search epoch of users' PyG models against the same models' plain PyG training epoch, interleaved.

    python benchmarks/own_models.py --dataset cora --hidden 256 --repeats 15 --threads 1

GraphSAGE, GAT and GCN of torch_geometric.nn with two layers and dropout 0.5. *Search* is the first stage of FastGLT
(soft masks on every edge and weight, a training step, then an evaluation) as `find_ticket` runs it; *cut* the
second stage, under hard masks and a soft edge mask. *Plain* is the training step of PyG's examples with Adam, then
one forward pass for validation and test, the graph given as `edge_index`, and as a matrix (`csr`) where the model
takes one. *Ratio* is search / plain by edge_index; where its messages do not fit the memory, by csr. Times are
those of the processor, so that others on the machine do not matter.
"""

import argparse
import copy
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from statistics import median
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from fastglt.bench.runs import SteppedSearch, Work
from fastglt.bench.stock import FORMS, StockTraining
from fastglt.data.loading import load
from fastglt.kernels import set_threads
from fastglt.methods import Budget, Targets, make
from fastglt.models import PyGNetwork
from fastglt.system.process import available_memory, keep_freed_memory
from fastglt.system.quiet import quiet_import
from fastglt.system.seeds import own_random_state
from fastglt.tasks import NodeClassification

with quiet_import():
    from torch_geometric import nn as pyg

MODELS = ("GraphSAGE", "GAT", "GCN")
_FOREVER = 10**9  # epochs: a stage that does not end while it is measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora", help="comma-separated")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    keep_freed_memory()
    set_threads(given.threads)
    table = Table("dataset", "model", "search ms", "cut ms", "plain ms", "csr ms", "ratio", title=_title(given))
    for dataset in given.dataset.split(","):
        data = load(dataset).data
        for name in given.models.split(","):
            found = measure(name, data, hidden=given.hidden, repeats=given.repeats)
            table.add_row(dataset, name, *_cells(found))
    Console(width=100).print(table)


def measure(name: str, data: Any, *, hidden: int, repeats: int) -> dict[str, float]:
    """The median seconds of an epoch of each side."""
    torch.manual_seed(0)
    classes = int(data.y.max()) + 1
    model = getattr(pyg, name)(data.num_features, hidden, num_layers=2, out_channels=classes, dropout=0.5)
    task = NodeClassification.from_data(data)
    budget = Budget(oneshot_epochs=_FOREVER, lr=0.01)
    cut = replace(budget, oneshot_epochs=1, denoise_epochs=_FOREVER, interval=_FOREVER)
    targets = Targets(graph_sparsity=0.2, weight_sparsity=0.9)
    with own_random_state(task.device):
        network = PyGNetwork(model)
        stages = {"search": budget, "cut": cut}
        runs = {
            stage: SteppedSearch(network, task, make("fastglt", targets=targets, budget=chosen), seed=0)
            for stage, chosen in stages.items()
        }
        runs["cut"].epoch()  # the one before the cut
        sides: dict[str, Work] = {stage: run.epoch for stage, run in runs.items()}
        for form, training in _plain(model, data).items():
            sides[form] = training.run_epoch
        return _interleaved(sides, repeats)


def _interleaved(sides: Mapping[str, Work], repeats: int) -> dict[str, float]:
    """Median processor seconds of an epoch: every round takes each side once, every other round in reverse."""
    for work in [*sides.values()] * 3:
        work()  # kernels compile and caches fill
    times: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(repeats):
        for name in list(sides)[:: -1 if round_ % 2 else 1]:
            began = time.process_time()
            sides[name]()
            times[name].append(time.process_time() - began)
    return {name: median(found) for name, found in times.items()}


def _plain(model: nn.Module, data: Any) -> dict[str, StockTraining]:
    """The plain trainings that this machine's memory and the model allow."""
    found = {}
    for form in FORMS:
        widest = data.num_features if isinstance(model, pyg.GraphSAGE) else model.hidden_channels
        if form == "edge_index" and 4 * widest * data.num_edges > available_memory() / 3:
            continue
        training = _PlainTraining(copy.deepcopy(model), data, form, lr=0.01, weight_decay=5e-4)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                training.network(data.x, training.graph)
        except (ValueError, NotImplementedError, AttributeError, RuntimeError, AssertionError):
            continue  # a model that takes no matrix
        found[form] = training
    return found


class _PlainTraining(StockTraining):
    """PyG's own model says by its layers whether it adds self-loops."""

    def __init__(self, network: Any, data: Any, form: str, **recipe: float) -> None:
        network.adds_loops = not isinstance(network, pyg.GraphSAGE)
        super().__init__(network, data, form, **recipe)


def _title(given: argparse.Namespace) -> str:
    return f"{given.hidden} hidden units, {given.threads} threads, medians of {given.repeats} interleaved rounds"


def _cells(found: Mapping[str, float]) -> list[str]:
    plain = found.get("edge_index", found.get("csr", float("nan")))
    times = [
        f"{1000 * found[side]:.1f}" if side in found else "-" for side in ("search", "cut", "edge_index", "csr")
    ]
    return [*times, f"{found['search'] / plain:.2f}"]


if __name__ == "__main__":
    main()
