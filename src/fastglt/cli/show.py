"""`fastglt show`: what is in a ticket."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def show(
    ticket: Annotated[Path, typer.Argument(help="A ticket file, or a run's folder.")],
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Describe a ticket: what it keeps, how it was found, how it scored. Its checksum is verified."""
    from fastglt.container import nan_as_null
    from fastglt.ticket_file import load

    path = ticket / "ticket.safetensors" if ticket.is_dir() else ticket
    found = load(path)
    masks = found.masks
    facts: dict[str, Any] = {
        "method": found.config["method"],
        "options": found.config["options"],
        "model": dict(found.model),
        "seed": found.seed,
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
    if json_output:
        typer.echo(json.dumps(facts))
    else:
        _print(facts)


def _print(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from fastglt.cli.tables import percent

    model = facts["model"]
    table = Table(show_header=False, title="a fastglt ticket", title_justify="left")
    table.add_row("model", ", ".join(f"{name} {value}" for name, value in model.items()))
    table.add_row("method", f"{facts['method']}, seed {facts['seed']}")
    for option, value in facts["options"].items():
        table.add_row("", f"{option} {value}")
    table.add_row(
        "edges", f"{facts['edges_kept']:,} of {facts['edges_total']:,} (−{percent(facts['graph_sparsity'])})"
    )
    kept = f"{facts['weights_kept']:,} of {facts['weights_total']:,} (−{percent(facts['weight_sparsity'])})"
    table.add_row("weights", kept)
    for name, (count, size) in facts["matrices"].items():
        table.add_row("", f"{name}: {count:,} of {size:,}")
    for name, value in facts["scores"].items():
        table.add_row(name.replace("_", " "), percent(value))
    table.add_row(
        "Θ0", {"recipe": "from the model's seed", "file": "in init.safetensors"}[facts["initial_weights"]]
    )
    table.add_row("graph", facts["graph_fingerprint"][:16] + "…")
    table.add_row("file", f"{facts['bytes']:,} bytes, checksum verified")
    table.add_row("made with", ", ".join(f"{name} {value}" for name, value in facts["versions"].items()))
    Console().print(table)
