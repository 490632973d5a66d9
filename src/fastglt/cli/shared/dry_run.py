"""`fastglt find --dry-run`: what would run, and a measured guess of what it costs."""

import json
import time
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from fastglt.report.tables import PlainTable, print_table
from fastglt.report.wording import duration

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared

_PROBE_EPOCHS = 3
_PLAIN = ("ticket retrained", "dense")
_DISTILLED = ("ticket retrained", "dense as the teacher", "dense distilled")


def describe(prepared: "Prepared", *, as_json: bool) -> None:
    """Print the plan; the time is extrapolated from a few real epochs of the search."""
    from fastglt.methods.parts.schedules import kept_count
    from fastglt.system.process import peak_memory

    per_epoch = _seconds_per_epoch(prepared)
    task, targets, budget = prepared.task, prepared.method.targets, prepared.method.budget
    weights = sum(shape.numel() for shape in prepared.network.weight_shapes.values())
    others = _DISTILLED if budget.distill > 0 else _PLAIN
    epochs = prepared.method.epochs + len(others) * budget.epochs
    seconds = per_epoch * epochs
    plan = {
        "dataset": prepared.dataset.name,
        **task.facts(),
        "model": prepared.network.name,
        "weights": weights,
        "method": prepared.method.name,
        "edges_to_keep": kept_count(targets.graph_sparsity, task.graph.num_edges),
        "weights_to_keep": kept_count(targets.weight_sparsity, weights),
        "epochs": epochs,
        "seconds": seconds,
        "memory_mb": peak_memory() / 2**20,
    }
    if as_json:
        typer.echo(json.dumps(plan))
        return
    table = PlainTable(title="would run (nothing is written)", title_justify="left", show_header=False)
    rows = {
        "graph": f"{plan['dataset']}: {plan['nodes']:,} nodes, {plan['edges']:,} edges, "
        f"{plan['features']:,} features, {task.num_outputs} {task.answers}",
        "network": f"{plan['model']}, {plan['weights']:,} prunable weights",
        "ticket": f"{plan['method']}: {plan['edges_to_keep']:,} edges and {plan['weights_to_keep']:,} weights",
        "epochs": f"{plan['epochs']:,} (search, {', '.join(others)})",
        "time": f"about {duration(seconds)}",
        "memory": f"about {plan['memory_mb']:,.0f} MB",
    }
    for name, text in rows.items():
        table.add_row(name, text)
    print_table(table, Console())


def _seconds_per_epoch(prepared: "Prepared") -> float:
    from fastglt.system.container import to_bytes
    from fastglt.system.seeds import own_random_state
    from fastglt.training.checkpoint import pack

    method = prepared.method
    with own_random_state(prepared.task.device):
        training = prepared.rehearse(method)
        training.run_epoch(method)  # compiles and warms up
        began = time.monotonic()
        for _ in range(_PROBE_EPOCHS):
            training.run_epoch(method)
        seconds = time.monotonic() - began
        to_bytes(*pack(training))  # for the memory that a checkpoint takes
    return seconds / _PROBE_EPOCHS
