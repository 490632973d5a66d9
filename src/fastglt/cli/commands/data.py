"""`fastglt data`: the graphs one can name."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The graphs that can be named.", no_args_is_help=True)


@app.callback()
def _data() -> None:
    pass


@app.command("list")
def list_datasets(
    data_root: Annotated[Path | None, typer.Option(help="Folder of raw datasets.", envvar="FASTGLT_DATA")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """List the datasets and which are at hand."""
    from rich.console import Console
    from rich.table import Table

    from fastglt.data import catalogue

    entries = catalogue(data_root)
    if json_output:
        typer.echo(json.dumps([asdict(entry) for entry in entries]))
        return
    table = Table()
    table.add_column("name", no_wrap=True)
    table.add_column("graph")
    table.add_column("where", overflow="fold")
    for entry in entries:
        sizes = {"nodes": entry.nodes, "edges": entry.edges, "features": entry.features, "classes": entry.classes}
        known = [f"{size:,} {name}" for name, size in sizes.items() if size is not None]
        table.add_row(entry.name, "\n".join([entry.about, ", ".join(known)]).strip(), entry.where)
    Console().print(table)
