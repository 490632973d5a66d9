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

    entries = [asdict(entry) for entry in catalogue(data_root)]
    if json_output:
        typer.echo(json.dumps(entries))
        return
    table = Table()
    for column in entries[0]:
        table.add_column(column)
    for entry in entries:
        table.add_row(*("" if value is None else str(value) for value in entry.values()))
    Console().print(table)
