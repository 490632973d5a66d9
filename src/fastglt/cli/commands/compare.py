"""`fastglt compare`: methods side by side, over seeds and sparsities."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import RUN, WHAT
from fastglt.cli.shared.dry_run import told_dry_run
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.series import tell_failures, told_how_to_go_on
from fastglt.cli.shared.setup import Many, Setup

if TYPE_CHECKING:
    from fastglt.studies.compare import Comparison

EXAMPLES = (
    "Examples: [bold]fastglt compare[/] (three methods, five seeds, the bundled digits graph) · "
    "[bold]fastglt compare --dataset cora --methods all --dry-run[/] (how many runs, how long?) · "
    "[bold]fastglt compare --dataset cora --graph-sparsity 0.2,0.05 --weight-sparsity 0.9,0.95 --csv cora.csv[/] "
    "(two pairs of sparsities) · "
    r"[bold]fastglt compare --methods 'fastglt,fastglt\[ramp=1]' --seeds 0-9[/] (one option, with and without)"
)


@gather
def compare(
    setup: Setup,
    many: Many,
    methods: arguments.Methods = "fastglt,oneshot,random",
    graph_sparsity: Annotated[
        str, typer.Option(help="Shares of edges to remove, comma-separated.", rich_help_panel=WHAT)
    ] = "0.2",
    weight_sparsity: Annotated[
        str,
        typer.Option(
            help="Shares of weights to remove, paired with those of edges; one alone goes with all.",
            rich_help_panel=WHAT,
        ),
    ] = "0.9",
    seeds: Annotated[str, typer.Option(help="As in 0-4 or 0,2,5.", rich_help_panel=WHAT)] = "0-4",
    split_seeds: Annotated[
        str | None,
        typer.Option(
            help="Several seeds of the random split, as in 0-2: every run once for each.", rich_help_panel=WHAT
        ),
    ] = None,
    rounds: Annotated[
        bool,
        typer.Option(
            "--rounds", help="Print the sparsity curves of methods that have rounds.", rich_help_panel=RUN
        ),
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables in LaTeX (booktabs).", rich_help_panel=RUN)
    ] = False,
    csv: Annotated[Path | None, typer.Option(help="File for a table of all runs.", rich_help_panel=RUN)] = None,
) -> None:
    """Compare methods: the same graph, model, seeds and sparsities, mean and deviation over seeds.

    Every ticket is found, and retrained from its initial weights, in a process and a folder of its own; the dense
    network of a seed is trained once, for all methods. Stopped or killed, the same command goes on where it was;
    what is finished, here or in the results store, is never computed again. A run that fails is told at the end,
    and the others are kept. With --distill every ticket is a distilled one, and has a second verdict, against a
    dense network that was taught in the same way.
    """
    from fastglt.studies.compare import compare as run

    with told_how_to_go_on(), told_dry_run(as_json=many.json_output):
        results = run(
            **setup.as_arguments,
            **many.as_arguments(methods, device=setup.device),
            graph_sparsity=graph_sparsity,
            weight_sparsity=weight_sparsity,
            seeds=seeds,
            split_seeds=split_seeds,
        )
    _report(results, rounds=rounds, csv=csv, latex=latex, json_output=many.json_output)


def _report(results: "Comparison", *, rounds: bool, csv: Path | None, latex: bool, json_output: bool) -> None:
    from fastglt.system.storage import write_atomically

    document = results.document()
    if csv is not None:
        write_atomically(csv, results.csv().encode())
    if json_output:
        typer.echo(json.dumps(document))
    elif latex:
        from fastglt.studies.compare.showing import as_latex

        typer.echo(as_latex(document), nl=False)
    else:
        from rich.console import Console

        from fastglt.studies.compare.table import print_cells, print_rounds

        console = Console()
        print_cells(document, console)
        if rounds:
            print_rounds(document, console)
    tell_failures(document["failures"])
