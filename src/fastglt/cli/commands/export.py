"""`fastglt export`: a ticket in a format that is read without fastglt."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.compiled import OtherGraph, TicketPath, compiled
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.tickets import OwnGraph
from fastglt.report.tables import say

EXAMPLES = (
    "Examples: [bold]fastglt export runs/a --to pyg --out cora[/] (then [bold]python cora/model.py[/]) · "
    "[bold]fastglt export runs/a --to onnx --out cora.onnx[/] · "
    "[bold]fastglt export cora.safetensors --dataset cora --to npz --out cora.npz[/]"
)


@gather
def export(
    ticket: TicketPath,
    graph: OwnGraph,
    to: Annotated[
        str, typer.Option(help="pyg (a folder), torch (.pt2), onnx (.onnx) or npz (.npz).", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The folder or file to write.", show_default=False)],
    other_graph: OtherGraph = False,
    json_output: arguments.AsJson = False,
) -> None:
    """Write a ticket with its pruned graph so that others can use it without fastglt.

    pyg: an ordinary PyG model and its Data in safetensors, with the code that puts them together. torch: a
    torch.export program. onnx: an ONNX model. npz: plain arrays. What was written is read again and compared with
    the masked network; the largest difference of any output is told.
    """
    from fastglt.deploy.exports import check, export

    check(to, out)
    predictor, *_ = compiled(ticket, graph, other_graph=other_graph)
    done = export(predictor, out, to=to)
    facts = {
        "format": to,
        "files": done.files,
        "bytes": sum(done.files.values()),
        "max_difference": done.max_difference,
        "live_units": predictor.live_units,
        "used_features": predictor.used_features,
    }
    if json_output:
        typer.echo(json.dumps(facts))
        return
    for path, size in done.files.items():
        say(f"{path}  {size:,} bytes")
    say(f"read again: outputs differ from the masked network's by at most {done.max_difference:.1e}")
