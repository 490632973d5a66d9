"""`fastglt evaluate`: is it a winning ticket?"""

import json
from pathlib import Path
from typing import Annotated

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import RUN, WHAT
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.judging import Loader, Trials, judge, print_verdict
from fastglt.cli.shared.tickets import OwnGraph
from fastglt.studies.lists import read_seeds

EXAMPLES = (
    "Examples: [bold]fastglt evaluate runs/a[/] (ten seeds, margin 1 point) · "
    "[bold]fastglt evaluate runs/a runs/b --seeds 0-4 --margin 0.005 --json[/] · "
    "[bold]fastglt evaluate runs/a --fresh-init[/] (does the structure win without its initial weights?)"
)


@gather
def evaluate(
    tickets: Annotated[list[Path], typer.Argument(help="Ticket files, or runs' folders.", metavar="TICKET")],
    graph: OwnGraph,
    seeds: Annotated[str, typer.Option(help="As in 0-9 or 0,2,5.", rich_help_panel=WHAT)] = "0-9",
    fresh_init: Annotated[
        bool,
        typer.Option(
            "--fresh-init", help="New initial weights for each seed, dense and ticket alike.", rich_help_panel=WHAT
        ),
    ] = False,
    inductive: Annotated[
        float | None,
        typer.Option(
            help="Share of the nodes that must have been hidden from the tickets' searches (default: as they say).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    margin: arguments.Margin = 0.01,
    level: arguments.Level = 0.05,
    threads: Annotated[int, typer.Option(help="0: all cores.", rich_help_panel=RUN)] = 0,
    device: arguments.Device = "cpu",
    store: arguments.Store = arguments.STORE,
    dry_run: arguments.DryRun = False,
    quiet: arguments.Quiet = False,
    json_output: arguments.AsJson = False,
    wide: arguments.Wide = False,
) -> None:
    """Judge tickets: dense and ticket trained from the same initial weights with equal budgets, seed by seed.

    Prints mean ± deviation, the paired difference with its confidence interval, the non-inferiority test, the plain
    rule of papers, and what the search's own weights score. The seeds vary the training noise; the initial weights
    are the ticket's. Stopped or killed, the same command goes on: every finished training is in the store. A
    distilled ticket is taught by the dense network of each seed, and has a second verdict, against a dense network
    that was taught in the same way. One that was found with --inductive is judged on its hidden nodes as well.
    """
    from fastglt.cli.shared.dry_run import print_trainings
    from fastglt.judge.verdict import check_rule
    from fastglt.report.bars import TimeLeft
    from fastglt.runs.experiment import machine_settings, use_machine

    check_rule(margin, level)
    chosen = read_seeds(seeds)
    use_machine(threads)
    load = Loader(graph, device=device, fresh_init=fresh_init)
    judged = [load.open(path) for path in dict.fromkeys(tickets)]
    for one in judged:
        one.require_hidden(inductive)
    trials = Trials(
        seeds=chosen,
        margin=margin,
        level=level,
        machine=machine_settings(threads, device),
        store=store,
        command="evaluate",
        quiet=quiet,
    )
    if dry_run:
        print_trainings(trials.plan(judged), as_json=json_output)
        return
    left, documents = TimeLeft(trials.pending(judged)), []
    for one in judged:
        verdict = judge(one, trials, left)
        documents.append(one.document(verdict))
        if not json_output:
            print_verdict(documents[-1], verdict)
    if json_output:
        typer.echo(json.dumps(documents[0] if len(documents) == 1 else documents))
