"""`fastglt data`: the graphs one can name, and graphs prepared on disk."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared import arguments

if TYPE_CHECKING:
    from fastglt.data.disk.layout import Manifest

app = typer.Typer(help="The graphs that can be named, and graphs prepared on disk.", no_args_is_help=True)


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


@app.command("prepare")
def prepare(
    source: Annotated[
        str,
        typer.Argument(
            help="A .npz file, a folder of the same arrays as .npy files, edges.csv+nodes.csv, "
            "edges.parquet+nodes.parquet, a folder or zip in OGB's layout, or a name."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder to make, such as graph.fgr.")],
    memory: Annotated[str, typer.Option(help="How much to sort with at a time, such as 500MB.")] = "2GB",
    directed: arguments.Directed = False,
    data_root: arguments.DataRoot = None,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Prepare a graph on disk, once: edges sorted, distinct and both ways, rows and features ready to be mapped.

    The edges need not fit into memory. Afterwards --dataset graph.fgr is the same graph to every command, with the
    same fingerprints and tickets; with --parts a training reads it part by part. Stopped or killed, the same
    command goes on where it was, and the folder is there once it is whole.
    """
    from fastglt.cli.shared.series import teller
    from fastglt.data import load
    from fastglt.data.disk.prepare import prepare as make
    from fastglt.data.disk.prepare import read_memory
    from fastglt.data.disk.sources import open_stream

    tell = teller(quiet=quiet)
    manifest = make(
        lambda: open_stream(source, lambda: load(source, root=data_root, directed=directed)),
        out,
        memory=read_memory(memory),
        directed=directed,
        asked=source,
        tell=tell if callable(tell) else lambda line: None,
    )
    _show(out, manifest, as_json=json_output)


@app.command("show")
def show(
    folder: Annotated[Path, typer.Argument(help="A prepared graph, such as graph.fgr.")],
    verify: Annotated[bool, typer.Option("--verify", help="Compare all files with their checksums.")] = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Show what a prepared graph holds, after a look at its files' sizes."""
    from fastglt.data.disk.layout import Arrays, Manifest

    manifest = Manifest.read(folder)
    arrays = Arrays(folder, manifest)
    if verify:
        arrays.verify()
    _show(folder, manifest, as_json=json_output, verified=verify)


def _show(folder: Path, manifest: "Manifest", *, as_json: bool, verified: bool = False) -> None:
    from fastglt.data.disk.layout import Arrays
    from fastglt.report.tables import say

    size = Arrays(folder, manifest).size
    if as_json:
        typer.echo(json.dumps({"folder": str(folder), "bytes": size, "verified": verified, **asdict(manifest)}))
        return
    kind = "directed" if manifest.directed else "undirected"
    loops = f", {manifest.loops:,} self-loops" if manifest.loops else ""
    say(f"{folder}: {manifest.name}")
    say(f"  {manifest.nodes:,} nodes, {manifest.edges:,} edges ({kind}){loops}, {manifest.features:,} features")
    checked = ", all as their checksums say" if verified else ""
    say(f"  split {manifest.split}, metric {manifest.metric}")
    say(f"  {size / 2**20:,.1f} MB in {len(manifest.arrays)} arrays{checked}")
    say(f"  made of '{manifest.source['asked']}' by fastglt {manifest.source['fastglt']}")
