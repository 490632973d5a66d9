"""What `fastglt find` tells before and after: the graph in two lines; then where all went, and what to do next."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fastglt.report.tables import print_text
from fastglt.report.wording import OPPONENTS, against_dense

if TYPE_CHECKING:
    from fastglt.runs.experiment import Prepared

_RUNS = {"search": "at the end of the search", "isolated": "retrained from initial weights"}


def tell_graph(prepared: "Prepared") -> None:
    """Sum up the graph on standard error."""
    console = Console(stderr=True)
    for line in graph_lines(prepared):
        print_text(line, console)


def graph_lines(prepared: "Prepared") -> Iterator[str]:
    """What is trained on: sizes, how edges were read, and the split."""
    task, dataset = prepared.task, prepared.dataset
    kind = "directed" if task.graph.directed else "undirected"
    if dataset.reversed_edges:
        kind += f", {dataset.reversed_edges:,} of them listed one way in the file"
    facts = task.facts()
    yield (
        f"{dataset.name}: {facts['nodes']:,} nodes, {facts['edges']:,} edges ({kind}), "
        f"{facts['features']:,} features" + ("" if task.of_pairs else f", {task.num_outputs:,} {task.answers}")
    )
    if sizes := task.sizes():
        nodes = "" if task.of_pairs else " nodes"
        yield f"split: {', '.join(f'{size} {name}' for name, size in sizes.items())}{nodes}"


def outcome_lines(metrics: Mapping[str, Any]) -> Iterator[str]:
    """How the ticket lies to dense, in the words of `fastglt evaluate`, which one seed cannot decide."""
    for twin, dense in OPPONENTS.items():
        if f"{twin}_test" not in metrics:
            continue
        found = _differences(metrics, twin)
        if not found:
            yield f"Undecided against {dense}: without test nodes nothing can be judged."
            continue
        parts = " and ".join(
            f"{against_dense(difference, dense)} {_RUNS[run]}" for run, difference in found.items()
        )
        yield f"Undecided, as one seed proves nothing: the ticket is {parts}."


def hint(metrics: Mapping[str, Any]) -> str:
    """What may help a ticket that is below dense; nothing for one that is not."""
    found = _differences(metrics, "dense")
    if all(difference >= 0 for difference in found.values()):
        return ""
    graph, weight = metrics["graph_sparsity"], metrics["weight_sparsity"]
    milder = f" --graph-sparsity {_short(graph / 2)}" if graph else ""
    milder += f" --weight-sparsity {_short(max(0.0, 2 * weight - 1))}" if weight else ""
    ways = [f"prune less ({milder.strip()})"] if milder else []
    if "distill" not in metrics:
        ways.append("let the dense network teach it (--distill)")
    if graph and metrics["method"] != "forest":
        ways.append("choose edges by what predictions agree on (--method forest)")
    return f"To bring it closer to dense: {', or '.join(ways)}." if ways else ""


def tell_next(metrics: Mapping[str, Any], folder: Path, console: Console, *, use: Sequence[str] = ()) -> None:
    """Where the run is, and the commands that take it further; those have to be told of classes from outside."""
    run, fastglt = shlex.quote(str(folder)), shlex.join(["fastglt", *(["--use", ",".join(use)] if use else [])])
    print_text(f"Written to {folder}/: ticket.safetensors, metrics.json, history.csv", console)
    print_text("Next:", console)
    commands = {
        f"{fastglt} evaluate {run}": "is it a winning ticket? ten seeds",
        f"{fastglt} show {run} --cost": "what it keeps, and what that saves",
        f"{fastglt} predict {run}": "its answer for every node; or export, serve",
    }
    if metrics.get("task") == "link":
        del commands[f"{fastglt} predict {run}"]
        commands[f"{fastglt} predict {run} --pairs pairs.csv"] = "how likely is each pair? or export, serve"
    if all(metrics[f"{name}_test"] is None for name in ("dense", "isolated")):
        del commands[f"{fastglt} evaluate {run}"]
    width = max(map(len, commands))
    for command, about in commands.items():
        beside = f"  {command:<{width}}  # {about}"
        print_text(beside if len(beside) <= console.width else f"  {command}", console)


def _differences(metrics: Mapping[str, Any], twin: str) -> dict[str, float]:
    """Ticket minus dense on test nodes; nothing where there are none."""
    dense, scores = metrics[f"{twin}_test"], {run: metrics[f"{run}_test"] for run in _RUNS}
    return {run: score - dense for run, score in scores.items() if score is not None and dense is not None}


def _short(share: float) -> str:
    return f"{round(share, 3):g}"
