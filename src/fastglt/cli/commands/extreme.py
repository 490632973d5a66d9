"""`fastglt extreme`: how sparse a method's tickets can be and still win."""

import json
from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fastglt.cli.shared import arguments
from fastglt.cli.shared.arguments import JUDGED, WHAT
from fastglt.cli.shared.batch import tell_failures
from fastglt.cli.shared.gather import gather
from fastglt.cli.shared.lists import read_methods, read_names, read_options, read_seeds
from fastglt.cli.shared.setup import Many, Setup
from fastglt.errors import InputError, require

if TYPE_CHECKING:
    from fastglt.methods import Targets
    from fastglt.studies.extreme import Rules, Walk
    from fastglt.studies.extreme.hunt import Row, Trial

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
            help="plain: mean at least dense; non-inferior: shown to be no worse than the margin; commas between.",
            rich_help_panel=JUDGED,
        ),
    ] = "plain,non-inferior",
    score: Annotated[
        str,
        typer.Option(help="search: at its end; isolated: alone from Θ0; commas between.", rich_help_panel=JUDGED),
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
    from fastglt.studies.extreme import Hunt, Question
    from fastglt.studies.extreme.report import document, print_document

    start = _walk(graph_sparsity, weight_sparsity)
    rules = _rules(read_seeds(seeds), fresh_seeds, margin, level)
    names, batch = read_methods(methods), many.batch("extreme", setup, shown="val")
    options = read_options(names, many.option or [])
    failures: list[dict[str, Any]] = []

    def measure(trials: "Iterable[Trial]", seeds: "Iterable[int]") -> "Iterable[Row]":
        experiments = [
            setup.experiment(
                method=names[name], options=options[names[name]], targets=targets, seed=seed, threads=many.threads
            )
            for seed, (name, targets) in product(seeds, trials)
        ]
        results = batch.results(experiments)
        failures.extend(results.failures)
        return results.rows

    if rules.fresh_seeds:
        _require_test_nodes(setup)
    asked = product(names, read_names("rule", rule), read_names("score", score))
    hunt = Hunt([Question(method=name, rule=how, score=which) for name, how, which in asked], rules, measure)
    found = {"dataset": setup.dataset, "model": setup.model_name, "out": str(batch.out)}
    found |= document(hunt, hunt.run(start))
    if many.json_output:
        typer.echo(json.dumps(found))
    else:
        print_document(found)
    tell_failures(failures)


def _walk(graph: str | None, weight: str | None) -> "Callable[[], Walk[Targets]]":
    """What was said of the two sparsities; what was not said varies if the other does not."""
    from fastglt.studies.extreme.levels import Levels, plan_walk

    edges = None if graph is None else Levels.read("graph_sparsity", graph, start=0.5)
    weights = None if weight is None else Levels.read("weight_sparsity", weight)
    if edges is None:
        free = weights is not None and weights.fixed
        edges = Levels.read("graph_sparsity", "bisect" if free else "0", start=0.5)
    if weights is None:
        weights = Levels.read("weight_sparsity", "bisect" if edges.fixed else "0")
    return plan_walk(edges, weights)


def _require_test_nodes(setup: Setup) -> None:
    from fastglt.data import load

    found = load(setup.dataset, root=setup.data_root, split_seed=setup.split_seed, directed=setup.directed)
    if not bool(found.tensors["test_mask"].any()):
        rule = "an extreme sparsity needs test nodes to be confirmed on (got none)"
        raise InputError(f"{rule}; --fresh-seeds none leaves it unconfirmed")


def _rules(seeds: list[int], fresh: str | None, margin: float, level: float) -> "Rules":
    from fastglt.studies.extreme import Rules

    if fresh is None:
        confirming = list(range(max(seeds) + 1, max(seeds) + 1 + len(seeds)))
        require("lie below 2^63", fresh_seeds=confirming[-1])
    else:
        confirming = [] if fresh == "none" else read_seeds(fresh)
    return Rules(seeds=tuple(seeds), fresh_seeds=tuple(confirming), margin=margin, level=level)
