"""`fastglt extreme`: how sparse a method's tickets can be and still win."""

import json
from typing import Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import JUDGED, WHAT
from fastglt.cli.shared.dry_run import told_dry_run
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.series import tell_failures, told_how_to_go_on
from fastglt.cli.shared.setup import Many, Setup

EXAMPLES = (
    "Examples: [bold]fastglt extreme[/] (weights, on the bundled digits graph) · "
    "[bold]fastglt extreme --dataset cora --methods fastglt,ugs --graph-sparsity bisect --rule non-inferior[/] · "
    "[bold]fastglt extreme --dataset pubmed --graph-sparsity 0.1:0.5:0.1 --seeds 0-2 --score isolated[/] · "
    "[bold]fastglt extreme --graph-sparsity 0:0.4:0.1 --weight-sparsity 0.5,0.8,0.9,0.95[/] (the front of both)"
)


@gather
def extreme(
    setup: Setup,
    many: Many,
    methods: arguments.Methods = "fastglt",
    graph_sparsity: Annotated[
        str | None,
        typer.Option(
            help="Share of edges to remove. A number stays fixed (default 0; bisect if the weights' is a number); "
            "bisect looks for the extreme to a point (bisect:0.3 starts there; default 0.5); a list or "
            "FIRST:LAST:STEP is tried to the first loss.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    weight_sparsity: Annotated[
        str | None,
        typer.Option(
            help="Share of weights, likewise (default: bisect from 0.99, or 0 while edges vary). Lists of both "
            "give the front of both.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            help="plain: mean at least dense; non-inferior: shown to be no worse than the margin; comma-separated.",
            rich_help_panel=JUDGED,
        ),
    ] = "plain,non-inferior",
    score: Annotated[
        str,
        typer.Option(
            help="search: at its end; isolated: retrained from initial weights; comma-separated.",
            rich_help_panel=JUDGED,
        ),
    ] = "search,isolated",
    seeds: Annotated[str, typer.Option(help="That choose, as in 0-4 or 0,2,5.", rich_help_panel=JUDGED)] = "0-4",
    fresh_seeds: Annotated[
        str | None,
        typer.Option(
            help="That confirm (default: as many, after the last that chooses); none: do not confirm.",
            rich_help_panel=JUDGED,
        ),
    ] = None,
    margin: arguments.Margin = 0.01,
    level: arguments.Level = 0.05,
) -> None:
    """Find the extreme sparsity: the largest at which a method's tickets still win.

    Sparsities are tried by bisection, or along a grid until the first loss, on validation scores; each with
    every seed's own Θ0, search and dense twin. The last that wins is then confirmed on test scores of fresh seeds.
    Several rules, scores and methods share their runs. Stopped or killed, the same command goes on where it was.
    With --distill the extreme is that against the plain dense network; the confirmation against a dense network
    that was taught in the same way is told beside it.
    """
    from fastglt.studies.extreme import extreme as run
    from fastglt.studies.extreme.report import print_document

    with told_how_to_go_on(), told_dry_run(as_json=many.json_output):
        result = run(
            **setup.as_arguments,
            **many.as_arguments(methods, device=setup.device),
            graph_sparsity=graph_sparsity,
            weight_sparsity=weight_sparsity,
            rules=rule,
            scores=score,
            seeds=seeds,
            fresh_seeds=fresh_seeds,
            margin=margin,
            level=level,
        )
    found = result.document()
    if many.json_output:
        typer.echo(json.dumps(found))
    else:
        print_document(found)
    tell_failures(result.failures)
