"""Tables and figures of scores: over edges removed, with κ, of one-shot and FastGLT, and what tickets cost."""

from collections.abc import Sequence
from typing import Any

from fastglt.report.charts import Picture
from fastglt.studies.compare import Comparison, figures
from fastglt.studies.compare.showing import picture_cells
from fastglt.studies.paper import published as paper
from fastglt.studies.paper.reproduction import Line, Reproduction, made, told
from fastglt.studies.paper.scope import GRAPHS, Answer, Ask, Scope, published

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_FEW_LEVELS = (0.1, 0.5)
_RIVALS = ("fastglt", "ugs")


def fig1_asks(scope: Scope) -> list[Ask]:
    """The paper's is of GAT, which takes ten times as long as GCN."""
    (graph, *_), (model, *_) = (
        scope.graphs("cora"),
        scope.backbones("gat" if scope.size == "full" else "gcn", "gat"),
    )
    levels = list(_LEVELS if scope.size != "quick" else _FEW_LEVELS)
    return [Ask(graph=graph, model=model, methods=_RIVALS, edges=levels, weights=0.9)]


def fig1(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """Accuracy over graph sparsity with 90 % of weights removed, and the time of a search."""
    (answer,) = answers
    found = answer.comparison
    lines = [time_line(found, answer.ask, method) for method in _RIVALS]
    for cell in found.cells():
        what = f"{answer.at}, {cell['method']}, {100 * cell['graph_sparsity']:g} % of edges removed"
        lines.append(Line(what=what, ours=scores_of(cell)))
    between = [test for test in found.document()["between_methods"] if test["score"] == "search"]
    better = sum(test["outcome"] == "worse" for test in between)  # UGS's
    sentence = f"FastGLT is shown to be better than UGS at {better} of {len(between)} sparsities (the paper: all)."
    return made("fig1", fig1, lines, [sentence], curves(found), answers)


def table1_asks(scope: Scope) -> list[Ask]:
    """FastGLT at the weight sparsities that the paper has as its extremes."""
    return [
        Ask(graph=graph, model=model, methods=("fastglt",), weights=paper.WEIGHTS.get((graph, model), 93.0) / 100)
        for graph in scope.graphs()
        for model in scope.backbones()
    ]


def table1(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """The sparsest winning tickets: accuracy, search time, MACs and their savings."""
    lines = list[Line]()
    for answer in answers:
        (cell,), at, pair = answer.comparison.cells(), answer.at, answer.ask.pair
        dense, ticket = (published(pair[0], table.get(pair)) for table in (paper.DENSE, paper.TICKETS))
        removed = f"{100 * answer.ask.weights:g} % of weights removed"
        alone = Line(
            what=f"{at}, fastglt, retrained alone", ours=scores_of(cell, "isolated"), note="not in the paper"
        )
        lines += [
            Line(what=f"{at}, dense", ours=scores_of(cell, "dense"), published=dense),
            Line(what=f"{at}, fastglt, {removed}, end of search", ours=scores_of(cell), published=ticket),
            alone,
            time_line(answer.comparison, answer.ask, "fastglt"),
            *_macs_lines(cell, at),
        ]
    return made("table1", table1, lines, told(lines), [], answers)


def table6_asks(scope: Scope) -> list[Ask]:
    """Three decays."""
    methods = tuple(f"fastglt[decay={decay}]" for decay in (1, 2, 3))
    return [
        Ask(graph=graph, model=model, methods=methods, edges=paper.DECAY_EDGES.get(graph, 0.3), weights=0.9)
        for graph in scope.graphs("cora", "citeseer")
        for model in scope.backbones()
    ]


def table6(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """The decay κ of swaps: 1, 2 and 3."""
    lines, pictures = list[Line](), list[Picture]()
    for answer in answers:
        graph, model = answer.ask.graph, answer.ask.model
        known = paper.DECAY.get(answer.ask.pair, {})
        lines += [
            Line(what=f"{answer.at}, κ = {d}", ours=scores_of(cell), published=published(graph, known.get(d)))
            for d, cell in enumerate(answer.comparison.cells(), 1)
        ]
        pictures += figures.side_by_side(f"{graph} · {model}", picture_cells(answer.comparison))
    return made("table6", table6, lines, told(lines), pictures, answers)


def table7_asks(scope: Scope) -> list[Ask]:
    """Each method at its own extreme."""
    return [
        Ask(graph=graph, model=model, methods=(method,), edges=table.get((graph, model), (0, 35.0))[1] / 100)
        for graph in scope.graphs()
        for model in scope.backbones("gcn", "gat")
        for method, table in paper.AT_EXTREME.items()
    ]


def table7(scope: Scope, answers: Sequence[Answer]) -> Reproduction:
    """One-shot pruning and FastGLT, each at the extreme graph sparsity that the paper has for it."""
    lines = list[Line]()
    for answer in answers:
        (method,), (cell,) = answer.ask.methods, answer.comparison.cells()
        score, _ = paper.AT_EXTREME[method].get(answer.ask.pair, (None, 0.0))
        what = f"{answer.at}, {method}, {100 * answer.ask.edges:g} % of edges removed"
        lines.append(Line(what=what, ours=scores_of(cell), published=published(answer.ask.graph, score)))
    return made("table7", table7, lines, told(lines), [], answers)


def curves(found: Comparison) -> list[Picture]:
    """Scores over sparsity, as pictures."""
    document = found.document()
    return list(figures.over_sparsity(f"{document['dataset']} · {document['model']}", picture_cells(found)))


def scores_of(cell: dict[str, Any], score: str = "search") -> list[float]:
    """A cell's test scores, seed by seed."""
    return [row[f"{score}_test"] for row in cell["runs"] if row[f"{score}_test"] is not None]


def time_line(found: Comparison, ask: Ask, method: str) -> Line:
    """The time of a search, relative to one dense training of ours."""
    times = [row["relative_time"] for row in found.rows if row["method"] == method and row["relative_time"]]
    published_time = paper.RELATIVE_TIME.get(method, {}).get(ask.model) if ask.graph in GRAPHS else None
    return Line(
        what=f"{ask.graph} {ask.model}, {method}, time of a search",
        value=f"{sum(times) / len(times):.2f} × dense" if times else "–",
        paper="–" if published_time is None else f"{published_time:g} × dense",
        note="against a dense training of ours, each timed as its machine was then",
    )


def _macs_lines(cell: dict[str, Any], at: str) -> list[Line]:
    """MACs as the paper counts them, and those that are really needed."""
    rows = [row for row in cell["runs"] if row["macs_dense"]]
    if not rows:
        return []
    row = rows[0]
    counts = {"as the paper counts": "macs_paper", "really needed": "macs"}
    ends = {name: (row[f"{key}_dense"] / 1e6, row[f"{key}_ticket"] / 1e6) for name, key in counts.items()}
    return [
        Line(
            what=f"{at}, MACs {name}",
            value=f"{dense:,.0f} M dense, {ticket:,.0f} M ticket (−{100 * (1 - ticket / dense):.1f} %)",
            note="an exact count",
        )
        for name, (dense, ticket) in ends.items()
    ]
