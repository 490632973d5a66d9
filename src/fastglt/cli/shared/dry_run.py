"""`--dry-run`: what would run, what is there already, and a measured guess of what it costs."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from fastglt.report.tables import PlainTable
from fastglt.report.wording import duration

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared
    from fastglt.tasks import Task

_THERE = {
    None: "",
    "begun": "'{}' has begun, and would go on from its last checkpoint",
    "finished": "'{}' is finished; nothing would be trained",
}
_OF_TRAINING = ("epochs", "time", "memory")
_TOLD = {"dense_distilled": "dense distilled", "dense_same_lr": "dense at the ticket's learning rate"}


def describe(prepared: "Prepared", folder: Path, *, as_json: bool) -> None:
    """Print the plan; the time is extrapolated from a few real epochs of the search.

    A folder that holds another run is refused, as it would be without --dry-run.
    """
    from fastglt.methods.parts.schedules import kept_count
    from fastglt.runs.run_folder import RunFolder
    from fastglt.system.process import peak_memory

    run = RunFolder(folder, prepared.settings, origin=prepared.origin)
    finished = run.result() is not None
    per_epoch = 0.0 if finished else _seconds_per_epoch(prepared)
    task, targets, budget = prepared.task, prepared.method.targets, prepared.method.budget
    weights = sum(shape.numel() for shape in prepared.network.weight_shapes.values())
    dense = "dense as the teacher" if budget.distill > 0 else "dense"
    others = ("ticket retrained", *(_TOLD.get(twin, dense) for twin in prepared.twins))
    epochs = 0 if finished else prepared.method.epochs + len(others) * budget.epochs
    seconds = per_epoch * epochs
    plan = {
        "dataset": prepared.dataset.name,
        **task.facts(),
        "model": prepared.network.spec["name"],
        "weights": weights,
        "method": prepared.method.name,
        "edges_to_keep": kept_count(targets.graph_sparsity, task.graph.num_edges),
        "weights_to_keep": kept_count(targets.weight_sparsity, weights),
        "folder": str(folder),
        "there": "finished" if finished else "begun" if run.is_begun else None,
        "epochs": epochs,
        "seconds": seconds,
        "memory_mb": peak_memory() / 2**20,
    }
    if as_json:
        typer.echo(json.dumps(plan))
        return
    rows = {
        "graph": f"{plan['dataset']}: {plan['nodes']:,} nodes, {plan['edges']:,} edges, "
        f"{plan['features']:,} features{_answers(task)}",
        "network": f"{plan['model']}, {plan['weights']:,} prunable weights",
        "ticket": f"{plan['method']}: {plan['edges_to_keep']:,} edges and {plan['weights_to_keep']:,} weights",
        "there": _THERE[plan["there"]].format(folder),
        "epochs": f"{plan['epochs']:,} (search, {', '.join(others)})",
        "time": f"about {duration(seconds)}",
        "memory": f"about {plan['memory_mb']:,.0f} MB",
    }
    _print_rows({name: text for name, text in rows.items() if text and not (finished and name in _OF_TRAINING)})


def _answers(task: "Task") -> str:
    """How many classes, or whatever is predicted; of links their split."""
    split = "; ".join(f"{name} {size}" for name, size in task.sizes().items())
    return f"; {split}" if task.of_pairs else f", {task.num_outputs} {task.answers}"


def _seconds_per_epoch(prepared: "Prepared") -> float:
    from fastglt.runs.forecast import probe
    from fastglt.system.container import to_bytes
    from fastglt.system.seeds import own_random_state
    from fastglt.training.checkpoint import pack

    with own_random_state(prepared.task.device):
        training = prepared.rehearse(prepared.method)
        seconds = probe(training, prepared.method)
        to_bytes(*pack(training))  # for the memory that a checkpoint takes
    return seconds


@contextlib.contextmanager
def told_dry_run(*, as_json: bool) -> Iterator[None]:
    """A study that only says what it would do ends the command, with the plan."""
    from fastglt.runs.forecast import DryRun

    try:
        yield
    except DryRun as found:
        print_plan(found.forecast.as_dict(), as_json=as_json)
        raise typer.Exit from None


def print_plan(plan: dict[str, Any], *, as_json: bool) -> None:
    """The runs of a study that would be made."""
    if as_json:
        typer.echo(json.dumps(plan))
        return
    left = [f"{count} × {kind}" for kind, count in plan["left"].items()]
    runs = f"{sum(plan['left'].values())} of {plan['runs']}"
    rows = {
        "runs": f"{runs}, {plan['jobs']} at a time, in '{plan['out']}'" if left else f"{runs}: all are there",
        "": left,
        "there": f"{plan['finished']} finished in their folders, {plan['reused']} reused from the store",
        "epochs": f"{plan['epochs']:,}",
        "time": f"about {duration(plan['seconds'])}",
    }
    if "at_most_more_sparsities" in plan:
        rows["then"] = (
            f"at most {plan['at_most_more_sparsities']} more sparsities, as results decide, then "
            f"{plan['fresh_seeds']} fresh seeds: at most about {duration(plan['at_most_seconds'])} in all"
        )
    _print_rows(rows)


def print_trainings(plan: dict[str, Any], *, as_json: bool) -> None:
    """The trainings of an evaluation that would be made."""
    if as_json:
        typer.echo(json.dumps(plan))
        return
    rows = {
        "trainings": f"{plan['left']} of {plan['trainings']} ({plan['about']})",
        "there": f"{plan['reused']} reused from the store or the ticket's own run",
        "epochs": f"{plan['epochs']:,}",
        "time": f"about {duration(plan['seconds'])}",
    }
    _print_rows(rows)


def _print_rows(rows: Mapping[str, str | Sequence[str]]) -> None:
    """A name and a text in each row, wrapped between words; of several texts, each in a row."""
    table = PlainTable(title="would run (nothing is written)", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, texts in rows.items():
        for text in [texts] if isinstance(texts, str) else texts:
            table.add_row(name, text)
    Console().print(table)
