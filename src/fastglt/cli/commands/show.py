"""`fastglt show`: what is in a ticket, what it costs and what its masks have done."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.tickets import OwnGraph, open_ticket
from fastglt.errors import InputError

if TYPE_CHECKING:
    from fastglt.tickets.ticket import Ticket

EXAMPLES = (
    "Examples: [bold]fastglt show runs/a[/] · "
    "[bold]fastglt show runs/a --cost --analysis[/] (the graph is the run's) · "
    "[bold]fastglt show cora.safetensors --cost --dataset cora --json[/]"
)


@gather
def show(
    ticket: Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")],
    graph: OwnGraph,
    cost: Annotated[
        bool, typer.Option("--cost", help="Parameters, MACs and bytes of each operation, dense beside ticket.")
    ] = False,
    analysis: Annotated[
        bool, typer.Option("--analysis", help="Degrees, components, homophily, dead units: before and after.")
    ] = False,
    json_output: arguments.AsJson = False,
    wide: arguments.Wide = False,
) -> None:
    """Describe a ticket: what it keeps, how it was found, how it scored. Its checksum is verified."""
    if not (cost or analysis):
        _refuse_graph(graph)
    found, path = open_ticket(ticket)
    facts = _facts(found, path)
    if cost or analysis:
        from fastglt.cli.shared import show_more
        from fastglt.runs.own_graph import classes_seen, task_and_hidden

        dataset = graph.load(path)
        task, hidden = task_and_hidden(found, dataset)
        if cost:
            facts["cost"] = show_more.cost_facts(found, path, task)
        if analysis:
            facts["analysis"] = show_more.analysis_facts(found, task, classes_seen(dataset, task, hidden))
    if json_output:
        from fastglt.cli.shared.facts import as_document

        typer.echo(json.dumps(as_document(facts)))
    else:
        _print(facts)


def _refuse_graph(graph: OwnGraph) -> None:
    """A graph is looked at only for what it costs, and what its masks have done."""
    given = {"--dataset": graph.dataset, "--split-seed": graph.split_seed, "--directed": graph.directed or None}
    for flag, value in given.items():
        if value is not None:
            raise InputError(f"{flag} must come with --cost or --analysis (got {value!r} without); leave it out")


def _facts(found: "Ticket", path: Path) -> dict[str, Any]:
    from fastglt.system.container import nan_as_null

    masks = found.masks
    return {
        "method": found.config["method"],
        "options": found.config["options"],
        "findings": found.config.get("findings", {}),
        "model": dict(found.model),
        "seed": found.seed,
        "distill": found.config["budget"].get("distill", 0.0),
        "graph_sparsity": masks.graph_sparsity,
        "edges_kept": masks.edges.count,
        "edges_total": masks.edges.size,
        "weight_sparsity": masks.weight_sparsity,
        "weights_kept": masks.weights_kept,
        "weights_total": masks.weights_total,
        "matrices": {name: [mask.count, mask.size] for name, mask in masks.weights.items()},
        "scores": nan_as_null(found.scores),
        "metric": found.config["metric"],
        "budget": found.config["budget"],
        "graph_fingerprint": found.graph_fingerprint,
        "initial_weights": found.initial_from,
        "versions": dict(found.versions),
        "bytes": path.stat().st_size,
    }


def _print(facts: dict[str, Any]) -> None:
    from rich.console import Console

    from fastglt.cli.shared.tables import percent
    from fastglt.models.links import KEY as DECODER
    from fastglt.report.tables import PlainTable
    from fastglt.report.wording import phase_title

    model = dict(facts["model"])
    table = PlainTable(show_header=False, title="a fastglt ticket", title_justify="left")
    decoder = model.pop(DECODER, None)
    table.add_row("model", ", ".join(f"{name} {value}" for name, value in model.items()))
    if decoder is not None:
        table.add_row("decoder", ", ".join(f"{name} {value}" for name, value in decoder.items()))
    table.add_row("method", f"{facts['method']}, seed {facts['seed']}")
    if facts["distill"]:
        table.add_row("distilled", f"taught by the dense network, weight {facts['distill']:g}")
        for name, value in facts["budget"].items():
            if name.startswith("distill_"):
                table.add_row("", f"{name.removeprefix('distill_')} {value}")
    for option, value in facts["options"].items():
        table.add_row("", f"{option} {value}")
    if "edge_rule" in facts["findings"]:
        trials = facts["findings"]["edge_rule_trials"]
        scores = ", ".join(f"{name} {percent(score)}" for name, score in trials.items())
        table.add_row("edge rule", f"{facts['findings']['edge_rule']} (validation scores on trial: {scores})")
    table.add_row(
        "edges", f"{facts['edges_kept']:,} of {facts['edges_total']:,} (−{percent(facts['graph_sparsity'])})"
    )
    kept = f"{facts['weights_kept']:,} of {facts['weights_total']:,} (−{percent(facts['weight_sparsity'])})"
    table.add_row("weights", kept)
    for name, (count, size) in facts["matrices"].items():
        table.add_row("", f"{name}: {count:,} of {size:,}")
    for name, value in facts["scores"].items():
        table.add_row(phase_title(name), percent(value))
    table.add_row(
        "Θ0", {"recipe": "from the model's seed", "file": "in init.safetensors"}[facts["initial_weights"]]
    )
    table.add_row("graph", facts["graph_fingerprint"][:16])
    table.add_row("file", f"{facts['bytes']:,} bytes, checksum verified")
    table.add_row("made with", ", ".join(f"{name} {value}" for name, value in facts["versions"].items()))
    Console().print(table)
    if {"cost", "analysis"} & set(facts):
        from fastglt.cli.shared.show_more import print_more

        print_more(facts)
