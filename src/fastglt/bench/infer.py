"""The outputs for all nodes: a compiled ticket against our dense network and stock PyG's."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fastglt.bench import Note, silent
from fastglt.bench.memory import in_own_process
from fastglt.bench.runs import Calls, Work, calls
from fastglt.bench.stock import FORMS, adjacency
from fastglt.data import Dataset
from fastglt.deploy.compiling import compile_for, compile_network
from fastglt.deploy.predictor import Predictor
from fastglt.errors import InputError
from fastglt.models import build
from fastglt.models.twins import build_twin
from fastglt.tickets.ticket import Ticket

_PERCENTILES = (90, 99)


def measure(
    ticket: Ticket, file: Path, dataset: Dataset, source: dict[str, Any], *, repeats: int, note: Note = silent
) -> dict[str, Any]:
    """A row: milliseconds for all nodes' outputs over interleaved calls and over calls in a row, memory, sizes.

    The dense networks are the ticket's before pruning, on the whole graph: ours as training evaluates it, ours
    compiled as the ticket is (the rest is what pruning gives), and PyG's, the faster of its two ways to hold a
    graph. `source` tells a process of its own how to load the dataset.
    """
    if ticket.task.of_pairs:
        raise InputError(f"inference is measured for nodes (got a ticket of the task '{ticket.task.name}')")
    metric, options = ticket.config["metric"], {**dataset.direction, **ticket.task_options}
    task = ticket.task.from_tensors(dataset.tensors, metric=metric, **options).to(source["device"])
    note("compiling")
    predictor = compile_for(ticket, task.graph, task.x)
    dense = build(dict(ticket.model)).to(source["device"]).eval()
    sides: dict[str, Callable[[], Tensor]] = {
        "ticket": predictor.logits,
        "dense": lambda: dense(task.x, task.graph),
        "compiled_dense": compile_network(copy.deepcopy(dense), task.graph, task.x).logits,
        **_stock(dense.twin, ticket, dataset, source["device"]),
    }
    with torch.no_grad():
        works: dict[str, Work] = dict(sides)
        spent = calls(works, repeats=repeats, device=task.device, note=note)
        masked = predictor.network(predictor.x, predictor.graph, predictor.score)
        difference = float((predictor.logits() - masked).abs().max())
    ms = {side: 1000 * float(np.median(found.first)) for side, found in spent.items()}
    faster = min(FORMS, key=lambda form: ms[f"pyg_{form}"])
    ms["pyg"] = ms[f"pyg_{faster}"]
    return {
        "dataset": dataset.name,
        "model": ticket.model["name"],
        "ticket": str(file),
        "graph_sparsity": ticket.graph_sparsity,
        "weight_sparsity": ticket.weight_sparsity,
        **{f"{side}_ms": value for side, value in ms.items()},
        "ratio_to_dense": ms["dense"] / ms["ticket"],
        "ratio_to_compiled_dense": ms["compiled_dense"] / ms["ticket"],
        "ratio_to_pyg": ms["pyg"] / ms["ticket"],
        "pyg_faster": faster,
        **_percentiles(spent),
        **_in_a_row(spent, f"pyg_{faster}"),
        **_fastest(spent),
        "max_difference": difference,
        **_sizes(ticket, file, predictor),
        **_peaks(dense.twin, ticket, file, source, faster, note),
    }


def _stock(twin: str, ticket: Ticket, dataset: Dataset, device: str) -> dict[str, Callable[[], Tensor]]:
    """Stock PyG's dense network with either form of the graph."""
    data = copy.copy(dataset.data).to(device)
    found: dict[str, Callable[[], Tensor]] = {}
    for form in FORMS:
        network = build_twin(twin, dict(ticket.model)).to(device).eval()
        found[f"pyg_{form}"] = partial(network, data.x, adjacency(network, data, form))
    return found


def _percentiles(spent: dict[str, Calls]) -> dict[str, float]:
    return {
        f"{side}_p{percent}_ms": 1000 * float(np.percentile(found.first, percent))
        for side, found in spent.items()
        for percent in _PERCENTILES
    }


def _in_a_row(spent: dict[str, Calls], pyg: str) -> dict[str, float]:
    """Calls of one side in a row, as a server has them: code and data are in the caches, as far as they fit."""
    ms = {side: 1000 * float(np.median(found.in_a_row)) for side, found in spent.items()}
    others = {"dense": ms["dense"], "compiled_dense": ms["compiled_dense"], "pyg": ms[pyg]}
    return {
        **{f"{side}_in_a_row_ms": value for side, value in ms.items()},
        **{f"in_a_row_ratio_to_{side}": value / ms["ticket"] for side, value in others.items()},
    }


def _fastest(spent: dict[str, Calls]) -> dict[str, float]:
    """The fastest first call of each side: what is left of a time where other processes keep the cores busy."""
    found = {side: min(times.first) for side, times in spent.items()}
    ratio = found["compiled_dense"] / found["ticket"]
    times = {f"{side}_fastest_ms": 1000 * seconds for side, seconds in found.items()}
    return {**times, "fastest_ratio_to_compiled_dense": ratio}


def _sizes(ticket: Ticket, file: Path, predictor: Predictor) -> dict[str, Any]:
    about = predictor.about()
    state = build(dict(ticket.model)).state_dict()
    return {
        "live_units": about["live_units"],
        "used_features": about["used_features"],
        "features": predictor.x.num_features,
        "layouts": about["layouts"],
        "ticket_bytes": file.stat().st_size,
        "dense_bytes": sum(value.numel() * value.element_size() for value in state.values()),
    }


def _peaks(
    twin: str, ticket: Ticket, file: Path, source: dict[str, Any], faster: str, note: Note
) -> dict[str, float]:
    """The most memory, in MB, of a process that does nothing else; of PyG's two forms the faster."""
    note("memory")
    jobs = {
        "ticket": {"side": "ticket", "file": str(file), **source},
        "pyg": {"side": "pyg_inference", "twin": twin, "spec": dict(ticket.model), "form": faster, **source},
    }
    return {f"peak_mb_{side}": in_own_process(job) / 2**20 for side, job in jobs.items()}
